'use strict'

// The parts of a critical path as text: where each wait was registered (path-sites.js), what ended it, where
// own code ran. Equal ones are merged.

const { typeOfStep } = require('../core/context')
const { connectionTypes } = require('../core/kinds')
const { CHAIN, SPAN, readWord } = require('../core/records')
const { subsystemOf } = require('../subsystems')
const registry = require('../core/registry')
const { addressOf } = require('../node-objects')
const { SiteWait, longestFirst, mergedInto, runsBySite } = require('../encoding/span-figures')
const { identityAt, isInside } = require('./identities')
const { siteOf } = require('./path-sites')
const { walkPath } = require('./path-walk')

/**
 * @typedef {import('../encoding/span-figures').SiteRun} SiteRun
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
    ran: isOutermost ? runsBySite(ran, siteOf) : undefined,
    beside: isOutermost ? beside : 0,
    late: steps.filter(({ delayedMax }) => delayedMax > 0),
    steps,
    merged
  }
}

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
  const equal = mergedInto(waits, new SiteWait(site, unproven, subsystem, peer, request))
  equal.add(wait)
  if (isConnection) equal.addConnection(wait.callback)
  return equal
}

const unknownTypes = new Set(['process', 'unknown'])

/** Returns the type of the resource whose callback ended a wait. @param {import('./path-walk').Wait} wait */
function typeOfEnd ({ callback, callbackChain }) {
  return callback === 0 ? 'process' : typeOfStep(callbackChain, callback << 1)
}

module.exports = { pathOf, peerOf }
