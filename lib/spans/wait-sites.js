'use strict'

// The parts of a critical path as text: where each wait was registered (path-sites.js), what ended it, where
// own code ran. Equal ones are merged.

const { typeOfStep } = require('../core/context')
const { connectionTypes } = require('../core/kinds')
const { CHAIN, SPAN, readWord } = require('../core/records')
const { subsystemOf } = require('../subsystems')
const registry = require('../core/registry')
const { addressOf } = require('../node-objects')
const { identityAt, isInside } = require('./identities')
const { siteOf } = require('./path-sites')
const { walkPath } = require('./path-walk')

const MAX_CONNECTIONS = 4 // of one entry
const MAX_TYPES = 1000 // of resources, whose subsystems are remembered

/**
 * @typedef {import('./path-sites').Site} Site
 *
 * @typedef {object} Source of the callback that ended a wait, by the type of its resource
 * @property {string | undefined} subsystem
 * @property {boolean} isConnection
 *
 * @typedef {object} SiteWait equal ones merged
 * @property {number} ms
 * @property {number} delayed ms in which others ran when what it waited for had come
 * @property {number} delayedMax the same, if that had come as early as may be
 * @property {number} count
 * @property {Site} site
 * @property {boolean} unproven that the wait began there, for what ended it was registered elsewhere
 * @property {string | undefined} until what ended it, as far as it is known: subsystem
 * @property {string | undefined} peer of the connection, address:port
 * @property {string | undefined} request another one, in whose run it ended
 * @property {number[] | undefined} on asyncIds of the connections whose callbacks ended it
 * @property {number} sent how many of them were waits for an answer: the request had sent something there
 * @property {number} unsent ms before anything was sent for it on these connections
 * @property {number} beside the request's runs meanwhile that are not on the path
 *
 * @typedef {{ ms: number, delayed: number, count: number, site: Site }} SiteRun own code, by the site that
 *   led to it
 * @typedef {import('./path-walk').Wait} Late
 */

/** Where the time of a span went, in objects that serve one span after another, as path-walk.js has it. */
class Path {
  constructor () {
    /** worst first @type {SiteWait[]} */
    this.waits = []
    this.waitCount = 0
    /** likewise; -1: it is not the outermost span of its process @type {SiteRun[]} */
    this.ran = []
    this.ranCount = 0
    /** ms of own code beside the path */
    this.beside = 0
    /** when it was delayed, newest first @type {Late[]} */
    this.late = []
    this.lateCount = 0
    /** each wait, newest first, and what it was merged into @type {Late[]} */
    this.steps = []
    /** @type {SiteWait[]} */
    this.merged = []
    this.stepCount = 0
  }
}

const path = new Path()

/** @param {number} id of a connection @returns {string | undefined} address:port of the other end */
function peerOf (id) {
  const entry = registry.get(id)
  if (entry === undefined) return undefined
  if (entry.remote === undefined) {
    const handle = entry.resource.deref()
    entry.remote = handle === undefined ? undefined : addressOf(handle, 'getpeername')
  }
  return entry.remote
}

/**
 * Returns the chain of who wrote last on the connection on which a wait ended, if that was the span: it
 * waited for the answer. 0: not known.
 * @param {import('./path-walk').Wait} wait
 * @param {import('./span').Span} span
 */
function writerOf ({ callback }, span) {
  const entry = registry.get(callback)
  if (entry === undefined || entry.lastAsk === 0) return 0
  const writer = readWord(entry.lastAsk, SPAN)
  return writer !== 0 && isInside(writer, span.seq) ? readWord(entry.lastAsk, CHAIN) : 0
}

/**
 * Returns where the time of a span went, until the next one is asked for.
 * @param {import('./span').Span} span that has ended
 * @returns {Path}
 */
function pathOf (span) {
  const { waits, waitCount, ran, ranCount, beside } = walkPath(span)
  const isOutermost = span.outermost === span
  path.waitCount = path.ranCount = path.lateCount = 0
  path.beside = isOutermost ? beside : 0
  path.steps = waits
  path.stepCount = waitCount
  for (let i = 0; i < waitCount; i++) {
    path.merged[i] = addWait(waits[i], span)
    if (waits[i].delayedMax > 0) path.late[path.lateCount++] = waits[i]
  }
  sort(path.waits, path.waitCount)
  if (!isOutermost) {
    path.ranCount = -1
    return path
  }
  for (let i = 0; i < ranCount; i++) addRan(ran[i].ms, siteOf(ran[i].site))
  sort(path.ran, path.ranCount)
  return path
}

/**
 * Adds a wait to that which is equal.
 * @param {Late} wait
 * @param {import('./span').Span} span
 * @returns {SiteWait} the sum
 */
function addWait (wait, span) {
  const origin = span.kind === 'CLIENT' ? span.chain : 0 // what it waits for was asked where it was made
  const { subsystem, isConnection } = sourceOf(wait)
  const proven = wait.proven && wait.site !== 0
  const writer = proven || !isConnection ? 0 : writerOf(wait, span)
  const site = siteOf((writer === 0 ? wait.site : writer) || origin)
  const unproven = !proven && site.at !== undefined
  const request = wait.settler === 0 ? undefined : identityAt(wait.settler)?.name
  const peer = isConnection && request === undefined ? peerOf(wait.callback) : undefined
  const equal = siteWait(site, unproven, subsystem, peer, request)
  equal.ms += wait.ms
  equal.delayed += wait.delayed
  equal.delayedMax += wait.delayedMax
  equal.count++
  equal.sent += wait.sent
  equal.unsent += wait.unsent
  equal.beside += wait.beside
  if (isConnection) addConnection(equal, wait.callback)
  return equal
}

/**
 * Returns the entry of equal waits.
 * @param {Site} site
 * @param {boolean} unproven
 * @param {string | undefined} subsystem
 * @param {string | undefined} peer
 * @param {string | undefined} request of another, whose end is one whatever it was
 */
function siteWait (site, unproven, subsystem, peer, request) {
  const { waits, waitCount } = path
  for (let i = 0; i < waitCount; i++) {
    const wait = waits[i]
    if (wait.site !== site || wait.unproven !== unproven || wait.request !== request) continue
    if (request !== undefined || (wait.until === subsystem && wait.peer === peer)) return wait
  }
  if (waitCount === waits.length) waits.push({ ...NO_WAIT })
  const wait = waits[path.waitCount++]
  wait.ms = wait.delayed = wait.delayedMax = wait.count = wait.sent = wait.unsent = wait.beside = 0
  wait.on = undefined
  wait.site = site
  wait.unproven = unproven
  wait.until = subsystem
  wait.peer = peer
  wait.request = request
  return wait
}

/** Adds own code likewise. @param {number} ms @param {Site} site */
function addRan (ms, site) {
  const { ran } = path
  for (let i = 0; i < path.ranCount; i++) {
    if (ran[i].site !== site) continue
    ran[i].ms += ms
    ran[i].count++
    return
  }
  if (path.ranCount === ran.length) ran.push({ ms, delayed: 0, count: 1, site })
  const run = ran[path.ranCount++]
  run.ms = ms
  run.count = 1
  run.site = site
}

/** by type @type {Map<string, Source>} */
const sources = new Map()

/** @param {import('./path-walk').Wait} wait @returns {Source} */
function sourceOf ({ callback, callbackChain }) {
  const type = callback === 0 ? 'process' : typeOfStep(callbackChain, callback << 1)
  let source = sources.get(type)
  if (source === undefined) {
    const isKnown = type !== 'unknown' && type !== 'process'
    const subsystem = isKnown ? subsystemOf(type) ?? type : undefined
    if (sources.size >= MAX_TYPES) sources.clear()
    sources.set(type, source = { subsystem, isConnection: connectionTypes.has(type) })
  }
  return source
}

/** @type {SiteWait} */
const NO_WAIT = {
  ms: 0,
  delayed: 0,
  delayedMax: 0,
  count: 0,
  site: siteOf(0),
  unproven: false,
  until: undefined,
  peer: undefined,
  request: undefined,
  on: undefined,
  sent: 0,
  unsent: 0,
  beside: 0
}

/**
 * Sorts a few items, the longest first: faster for these than Array.prototype.sort.
 * @param {Array<{ ms: number, delayed: number }>} items
 * @param {number} count
 */
function sort (items, count) {
  for (let i = 1; i < count; i++) {
    const item = items[i]
    const length = item.ms + item.delayed
    let place = i
    for (; place > 0 && items[place - 1].ms + items[place - 1].delayed < length; place--) {
      items[place] = items[place - 1]
    }
    items[place] = item
  }
}

/** @param {SiteWait} wait @param {number} connection asyncId */
function addConnection (wait, connection) {
  if (wait.on === undefined) wait.on = [connection]
  else if (wait.on.length < MAX_CONNECTIONS && !wait.on.includes(connection)) wait.on.push(connection)
}

module.exports = { Path, pathOf, peerOf }
