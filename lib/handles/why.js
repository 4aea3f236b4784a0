'use strict'

// Report of trace.why: kind of a resource, its opener, current user, age and traffic. Unknown facts are
// undefined, and the text says so. Nothing here runs code of the program (see node-objects.js).

const { queriedAt, startQuery } = require('../core/clock')
const { contextAt, contextTag } = require('../core/context')
const { connectionTypes } = require('../core/kinds')
const { mistake } = require('../errors')
const {
  inspectableReport, inspectableReports, printed, summary: summaryOf
} = require('../format/handles')
const { copyChain, placeOf } = require('../format/hops')
const { paint } = require('../format/paint')
const { idOf, numberOf, ownerOf } = require('../node-objects')
const { hidden, isObject, own } = require('../objects')
const { transformsOf } = require('../intercept/connection')
const { settings } = require('../settings')
const { hops } = require('../stacks/chain')
const { clean } = require('../text')
const { describe, endsOf, hintOf, nounOf } = require('./describe')
const { find, isFiltered, reportedFacts, userOf } = require('./find')
const { list, walk } = require('./list')
const registry = require('../core/registry')
const { keepsProcessAlive, sideOf, stateOf, trafficOf } = require('./state')

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('../stacks/chain').Hop} Hop
 * @typedef {import('../core/entry').Entry} Entry
 * @typedef {import('./subject').Subject} Subject
 *
 * @typedef {object} Why
 * @property {string} what description, for example "TCP connection, client to 127.0.0.1:5432, from
 *   127.0.0.1:60350"
 * @property {string} type Node's provider name; "unknown" if no async resource is known, "DESCRIPTOR" for a
 *   file without one
 * @property {number | undefined} asyncId
 * @property {'registered' | 'early' | 'unknown'} origin
 *   early: created before longstack was enabled; unknown: not in the filter, or no
 *   async resource
 * @property {'client' | 'server' | undefined} side
 * @property {string | undefined} state
 *   connecting, open, half-open, listening or closed; pending for a timer; settled or pending for a promise
 * @property {string | undefined} local address:port, or the path of a pipe or descriptor
 * @property {string | undefined} remote address:port, or the path of a pipe
 * @property {Hop[]} opened chain that opened it, newest hop first; empty if unknown
 * @property {{ request: string, chain: Hop[] } | undefined} usedBy request that uses it now
 * @property {{ at: string | undefined, agoMs: number, chain: Hop[] } | undefined} writtenBy last
 *   writer, if it is an outgoing connection that no HTTP client of Node uses; at: innermost frame of the
 *   program
 * @property {Array<{ name: string, at: string | undefined }>} through
 *   transforms of trace.intercept on its bytes, in order, and the place that set each
 * @property {number | undefined} ageMs since it was created
 * @property {number | undefined} idleMs since the last data in or out, response, or timer run
 * @property {number | undefined} bytesRead
 * @property {number | undefined} bytesWritten
 * @property {boolean | undefined} referenced keeps the process alive
 * @property {string | undefined} hint call that closes it
 * @property {() => string} toString the report as text
 */

/**
 * @param {unknown} target
 * @returns {Why}
 */
function why (target) {
  if (typeof target !== 'object' || target === null) throw mistake('INVALID_TARGET', target)
  return report(find(target))
}

/**
 * @param {import('./subject').Subject} subject
 * @returns {Why}
 */
function report (subject) {
  const { object, handle, type, context, entry } = subject
  registry.connected(entry)
  const opened = hops(context)
  const ends = endsWithReported(subject)
  const side = sideOf({ ...subject, entry: entry ?? /** @type {any} */ ({ remote: ends.remote }) })
  const state = stateOf(subject, side)
  const user = object === undefined ? undefined : userOf(object, entry)
  const usedBy = user && { request: user.label, hops: hops(user.context) }
  const writtenBy = usedBy === undefined ? lastWriter(entry) : undefined
  const active = lastActive(subject)
  /** @type {any} */
  const facts = {
    what: describe(subject, side, ends),
    type,
    asyncId: context?.asyncId || undefined,
    origin: originOf(subject),
    side,
    state,
    ...ends,
    opened: copyChain(opened, clean),
    usedBy: usedBy && withChain(usedBy),
    writtenBy: writtenBy && withChain(writtenBy),
    through: object === undefined ? [] : transformsOf(object),
    ageMs: context === undefined || context.origin === 'early' ? undefined : queriedAt() - context.time,
    idleMs: active === undefined ? undefined : Math.max(0, queriedAt() - active),
    ...trafficOf(subject),
    referenced: state === 'closed' ? undefined : keepsProcessAlive(subject),
    hint: hintOf(subject, state)
  }
  const resource = handle ?? object
  const printedFacts = {
    ...facts,
    noun: nounOf(subject, side),
    opened,
    usedBy,
    writtenBy,
    ran: context !== undefined && active !== undefined && active > context.time,
    enabled: settings.enabled,
    // Whether http or undici manages it, busy or not
    pooled: object !== undefined && (own(object, '_httpMessage') !== undefined || entry?.use !== undefined),
    filtered: resource !== undefined && isFiltered(resource)
  }
  printed.write(facts, printedFacts)
  return inspectableReport(facts)
}

/** @template {{ hops: PrintedHop[] }} T @param {T} facts */
const withChain = ({ hops, ...facts }) => ({ ...facts, chain: copyChain(hops, clean) })

/**
 * Returns the last writer on a connection.
 * @param {Entry | undefined} entry
 * @returns {{ at: string | undefined, agoMs: number, hops: PrintedHop[] } | undefined} undefined if a
 *   client of Node uses it, if nothing was sent, or if the writer is unknown
 */
function lastWriter (entry) {
  if (entry === undefined || entry.use !== undefined || entry.lastAsk === 0) return undefined
  const handle = entry.resource.deref()
  if (handle !== undefined && numberOf(handle, 'bytesWritten') === 0) return undefined
  const socket = handle && ownerOf(handle)
  // Data in the stream's buffer was written later, by an unknown writer
  if (socket !== undefined && own(socket, '_writableState')?.bufferedRequestCount > 0) return undefined
  const writer = contextAt(entry.lastAsk)
  if (writer === undefined) return undefined
  const chain = hops(writer)
  const agoMs = Math.max(0, queriedAt() - Number(entry.writeTime))
  return { at: placeOf(chain), agoMs, hops: chain }
}

/** @param {(type: string) => boolean} isSelected @returns {Why[]} reports on open resources */
const handles = (isSelected) => inspectableReports(list(isSelected).map(report))

/**
 * Reports on the same with pauses, in which the event loop may run.
 * @param {(type: string) => boolean} isSelected
 * @returns {Generator<Why | undefined, void>} undefined: a pause
 */
function * open (isSelected) {
  for (const subject of walk(isSelected)) yield subject && report(subject)
}

/** Returns the report on all open resources, for a terminal. @param {(type: string) => boolean} isSelected */
function summary (isSelected) {
  startQuery()
  return paint(summaryOf(handles(isSelected)))
}

/**
 * Reads the addresses of a connection, and keeps them for reports after it closes.
 * @param {Subject} subject
 */
function endsWithReported (subject) {
  const ends = endsOf(subject)
  const { object, type } = subject
  const before = object && reportedFacts.read(object)
  const local = (ends.local && clean(ends.local)) ?? before?.local
  const remote = (ends.remote && clean(ends.remote)) ?? before?.remote
  if (object !== undefined && type !== 'unknown') reportedFacts.write(object, { type, local, remote })
  return { local, remote }
}

/**
 * Returns the last activity of a resource or of the layers on it: HTTP/2 and TLS bypass the socket to read.
 * @param {Subject} subject
 * @returns {number | undefined} ms of the clock
 */
function lastActive ({ object, handle, type, entry }) {
  if (type === 'UDPWRAP' || type === 'PROMISE' || type === 'REQUEST') return undefined
  const session = object === undefined ? undefined : hidden(object, 'session', 'kSession')
  const entries = [entry]
  if (connectionTypes.has(type)) {
    if (isObject(session) && session !== handle) entries.push(registry.ofObject(session))
    if (object !== undefined && object !== handle) entries.push(registry.ofObject(object))
  }
  const times = entries.map((candidate) => candidate && registry.lastActive(candidate))
    .filter((time) => time !== undefined)
  return times.length === 0 ? undefined : Math.max(...times)
}

/** @param {Subject} subject @returns {Why['origin']} */
function originOf ({ object, handle, context, type }) {
  if (context !== undefined) return context.origin === 'early' ? 'early' : 'registered'
  const resource = handle ?? object
  if (resource === undefined || type === 'unknown') return 'unknown'
  if (contextTag.read(resource) !== undefined) return 'unknown'
  return handle === undefined && idOf(resource) === undefined ? 'unknown' : 'early'
}

module.exports = { handles, lastWriter, open, report, summary, why }
