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

/**
 * @typedef {import('./path-sites').Site} Site
 *
 * @typedef {{ ms: number, delayed: number, count: number, site: Site }} SiteRun own code, by the site that
 *   led to it
 * @typedef {import('./path-walk').Wait} Late
 *
 * @typedef {object} Path where the time of a span went
 * @property {SiteWait[]} waits worst first
 * @property {SiteRun[] | undefined} ran likewise; undefined: it is not the outermost span of its process
 * @property {number} beside ms of own code beside the path
 * @property {Late[]} late when it was delayed, newest first
 * @property {Late[]} steps each wait, newest first
 * @property {SiteWait[]} merged what each was merged into
 */

/** Equal waits. */
class SiteWait {
  /**
   * @param {Site} site
   * @param {boolean} unproven that the wait began there, for what ended it was registered elsewhere
   * @param {string | undefined} until what ended it, as far as it is known: subsystem
   * @param {string | undefined} peer of the connection, address:port
   * @param {string | undefined} request another one, in whose run it ended
   */
  constructor (site, unproven, until, peer, request) {
    this.ms = 0
    /** ms in which others ran when what it waited for had come */
    this.delayed = 0
    /** the same, if that had come as early as may be */
    this.delayedMax = 0
    this.count = 0
    this.site = site
    this.unproven = unproven
    this.until = until
    this.peer = peer
    this.request = request
    /** asyncIds of the connections whose callbacks ended it @type {number[] | undefined} */
    this.on = undefined
    /** how many of them were waits for an answer: the request had sent something there */
    this.sent = 0
    /** ms before anything was sent for it on these connections */
    this.unsent = 0
    /** the request's runs meanwhile that are not on the path */
    this.beside = 0
  }
}

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

/** @param {import('./span').Span} span that has ended @returns {Path} */
function pathOf (span) {
  const { waits: steps, ran, beside } = walkPath(span)
  const isOutermost = span.outermost === span
  /** @type {SiteWait[]} */
  const waits = []
  const merged = steps.map((wait) => addWait(waits, wait, span))
  return {
    waits: waits.sort(longestFirst),
    ran: isOutermost ? runsBySite(ran).sort(longestFirst) : undefined,
    beside: isOutermost ? beside : 0,
    late: steps.filter(({ delayedMax }) => delayedMax > 0),
    steps,
    merged
  }
}

/** @typedef {{ ms: number, delayed: number }} Part */
/** @param {Part} a @param {Part} b */
const longestFirst = (a, b) => b.ms + b.delayed - a.ms - a.delayed

/**
 * Adds a wait to that which is equal.
 * @param {SiteWait[]} waits
 * @param {Late} wait
 * @param {import('./span').Span} span
 * @returns {SiteWait} the sum
 */
function addWait (waits, wait, span) {
  const origin = span.kind === 'CLIENT' ? span.chain : 0 // what it waits for was asked where it was made
  const type = typeOfEnd(wait)
  const subsystem = subsystemOf(type) ?? (unknownTypes.has(type) ? undefined : type)
  const isConnection = connectionTypes.has(type)
  const proven = wait.proven && wait.site !== 0
  const writer = proven || !isConnection ? 0 : writerOf(wait, span)
  const site = siteOf((writer === 0 ? wait.site : writer) || origin)
  const unproven = !proven && site.at !== undefined
  const request = wait.settler === 0 ? undefined : identityAt(wait.settler)?.name
  const peer = isConnection && request === undefined ? peerOf(wait.callback) : undefined
  // What another request ended is one, whatever that was
  let equal = waits.find((other) => {
    if (other.site !== site || other.unproven !== unproven || other.request !== request) return false
    return request !== undefined || (other.until === subsystem && other.peer === peer)
  })
  if (equal === undefined) {
    equal = new SiteWait(site, unproven, subsystem, peer, request)
    waits.push(equal)
  }
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

/** Adds up own code by site. @param {Array<{ ms: number, site: number }>} ran @returns {SiteRun[]} */
function runsBySite (ran) {
  /** @type {SiteRun[]} */
  const runs = []
  for (const { ms, site: chain } of ran) {
    const site = siteOf(chain)
    const equal = runs.find((other) => other.site === site)
    if (equal === undefined) runs.push({ ms, delayed: 0, count: 1, site })
    else {
      equal.ms += ms
      equal.count++
    }
  }
  return runs
}

const unknownTypes = new Set(['process', 'unknown'])

/** Returns the type of the resource whose callback ended a wait. @param {import('./path-walk').Wait} wait */
function typeOfEnd ({ callback, callbackChain }) {
  return callback === 0 ? 'process' : typeOfStep(callbackChain, callback << 1)
}

/** @param {SiteWait} wait @param {number} connection asyncId */
function addConnection (wait, connection) {
  if (wait.on === undefined) wait.on = [connection]
  else if (wait.on.length < MAX_CONNECTIONS && !wait.on.includes(connection)) wait.on.push(connection)
}

module.exports = { pathOf, peerOf }
