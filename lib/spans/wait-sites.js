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

const MAX_CONNECTIONS = 4 // of one entry
const MAX_TYPES = 1000 // of resources, whose subsystems are remembered

/**
 * @typedef {import('./path-sites').Site} Site
 *
 * @typedef {object} Source of the callback that ended a wait, by the type of its resource
 * @property {string | undefined} subsystem
 * @property {boolean} isConnection
 *
 * @typedef {object} Until what ended a wait, as far as it is known
 * @property {string} [until] subsystem
 * @property {string} [peer] of the connection, address:port
 * @property {string} [request] another one, in whose run it ended
 *
 * @typedef {object} SiteWait equal ones merged
 * @property {number} ms
 * @property {number} delayed ms in which others ran when what it waited for had come
 * @property {number} delayedMax the same, if that had come as early as may be
 * @property {number} count
 * @property {Site} site
 * @property {boolean} unproven that the wait began there, for what ended it was registered elsewhere
 * @property {Until} until
 * @property {number[] | undefined} on asyncIds of the connections whose callbacks ended it
 * @property {number} sent how many of them were waits for an answer: the request had sent something there
 * @property {number} unsent ms before anything was sent for it on these connections
 * @property {number} beside the request's runs meanwhile that are not on the path
 *
 * @typedef {{ ms: number, count: number, site: Site }} SiteRun own code, by the site that led to it
 *
 * @typedef {object} Path where the time of a span went, worst first
 * @property {SiteWait[]} waits
 * @property {SiteRun[] | undefined} ran of the outermost span of its process
 * @property {number} beside ms of own code beside the path; likewise
 * @property {Late[]} late when it was delayed, newest first
 *
 * @typedef {import('./path-walk').Wait} Late
 */

/**
 * @param {import('./path-walk').Wait} wait
 * @param {Source} source
 * @returns {Until}
 */
function untilOf ({ callback, settler }, { subsystem, isConnection }) {
  const request = settler === 0 ? undefined : identityAt(settler)?.name
  const peer = isConnection && request === undefined ? peerOf(callback) : undefined
  return { until: subsystem, peer, request }
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

/**
 * Returns waits with equal ones merged, the longest first.
 * @param {import('./path-walk').Wait[]} waits
 * @param {import('./span').Span} span
 */
function mergeWaits (waits, span) {
  const origin = span.kind === 'CLIENT' ? span.chain : 0 // what it waits for was asked where it was made
  /** @type {SiteWait[]} */
  const merged = []
  for (const wait of waits) {
    const source = sourceOf(wait)
    const proven = wait.proven && wait.site !== 0
    const writer = proven || !source.isConnection ? 0 : writerOf(wait, span)
    const site = siteOf((writer === 0 ? wait.site : writer) || origin)
    const until = untilOf(wait, source)
    const unproven = !proven && site.at !== undefined
    let equal = findWait(merged, site, until, unproven)
    if (equal === undefined) {
      equal = newWait(site, unproven, until)
      merged.push(equal)
    }
    equal.ms += wait.ms
    equal.delayed += wait.delayed
    equal.delayedMax += wait.delayedMax
    equal.count++
    equal.sent += wait.sent
    equal.unsent += wait.unsent
    equal.beside += wait.beside
    if (source.isConnection) addConnection(equal, wait.callback)
  }
  return sorted(merged, lengthOf)
}

/** Returns runs likewise. @param {import('./path-walk').Ran[]} runs */
function mergeRuns (runs) {
  /** @type {SiteRun[]} */
  const merged = []
  for (const { ms, site: chain } of runs) {
    const site = siteOf(chain)
    let equal
    for (const other of merged) if (other.site === site) equal = other
    if (equal === undefined) {
      merged.push({ ms, count: 1, site })
    } else {
      equal.ms += ms
      equal.count++
    }
  }
  return sorted(merged, runOf)
}

/**
 * Returns where the time of a span went.
 * @param {import('./span').Span} span that has ended
 * @returns {Path}
 */
function pathOf (span) {
  const { waits, ran, beside } = span.pathParts()
  const isOutermost = span.outermost === span
  return {
    waits: mergeWaits(waits, span),
    ran: isOutermost ? mergeRuns(ran) : undefined,
    beside: isOutermost ? beside : 0,
    late: waits.filter(isLate)
  }
}

/**
 * @param {SiteWait[]} waits
 * @param {Site} site
 * @param {Until} until
 * @param {boolean} unproven
 */
function findWait (waits, site, until, unproven) {
  for (const wait of waits) {
    if (wait.site === site && wait.unproven === unproven && isSameEnd(wait.until, until)) return wait
  }
  return undefined
}

/** @param {Until} a @param {Until} b */
function isSameEnd (a, b) {
  return a.request === b.request && (a.request !== undefined || (a.until === b.until && a.peer === b.peer))
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

/**
 * @param {Site} site
 * @param {boolean} unproven
 * @param {Until} until
 * @returns {SiteWait} that takes no time yet
 */
function newWait (site, unproven, until) {
  return {
    ms: 0,
    delayed: 0,
    delayedMax: 0,
    count: 0,
    on: undefined,
    sent: 0,
    unsent: 0,
    beside: 0,
    site,
    unproven,
    until
  }
}

/** @param {import('./path-walk').Wait} wait */
const isLate = (wait) => wait.delayedMax > 0
/** @param {SiteWait} wait */
const lengthOf = (wait) => wait.ms + wait.delayed
/** @param {SiteRun} run */
const runOf = (run) => run.ms

/**
 * Sorts a few items, the longest first: faster for these than Array.prototype.sort.
 * @template T
 * @param {T[]} items
 * @param {(item: T) => number} measure
 */
function sorted (items, measure) {
  for (let i = 1; i < items.length; i++) {
    const item = items[i]
    const length = measure(item)
    let place = i
    for (; place > 0 && measure(items[place - 1]) < length; place--) items[place] = items[place - 1]
    items[place] = item
  }
  return items
}

/** @param {SiteWait} wait @param {number} connection asyncId */
function addConnection (wait, connection) {
  if (wait.on === undefined) wait.on = [connection]
  else if (wait.on.length < MAX_CONNECTIONS && !wait.on.includes(connection)) wait.on.push(connection)
}

module.exports = { pathOf }
