'use strict'

// The answer of trace.why: what a resource is, who opened it, who uses it now, for how long, how much data
// passed. A fact that is not known is undefined, and the text says so. Nothing here runs code of the program
// (see node-objects.js).

const { queriedAt, startQuery } = require('../core/clock')
const { contextTag, settlerOf } = require('../core/context')
const { mistake } = require('../errors')
const {
  inspectableReport, inspectableReports, printed, report: textOf, summary: summaryOf
} = require('../format/handles')
const { placeOf } = require('../format/hops')
const { copyChain } = require('../format/chains')
const { paint } = require('../format/paint')
const { idOf } = require('../node-objects')
const { hidden, isObject, own } = require('../objects')
const { transformsOf } = require('../intercept/transforms')
const { settings } = require('../settings')
const { copyHop } = require('../stacks/hop-frames')
const { hops } = require('../stacks/hops')
const { clean } = require('../text')
const { describe, endsOf, hintOf, nounOf } = require('./describe')
const {
  contextOf, contextOfWaiting, find, isFiltered, reportedFacts, withoutOwnWork
} = require('./find')
const { writerOf } = require('./last-user')
const { list, walk } = require('./list')
const registry = require('../core/registry')
const { requestLabel } = require('./request-label')
const { keepsProcessAlive, sideOf, stateOf, trafficOf } = require('./state')
const { isConnection } = require('./subject')

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('../stacks/chain').Hop} Hop
 * @typedef {import('../core/entry').Entry} Entry
 * @typedef {import('./subject').Subject} Subject
 *
 * @typedef {object} Why
 * @property {string} what in words, for example "TCP connection, client to 127.0.0.1:5432, from
 *   127.0.0.1:60350"
 * @property {string} type Node's provider name; "unknown" where no async resource is known
 * @property {number | undefined} asyncId
 * @property {'registered' | 'early' | 'unknown'} origin
 *   early: made before longstack was enabled; unknown: not in the filter, or no async resource
 * @property {'client' | 'server' | undefined} side
 * @property {string | undefined} state
 *   connecting, open, half-open, listening or closed; pending for a timer; settled or pending for a promise
 * @property {string | undefined} local address:port, or the path of a pipe
 * @property {string | undefined} remote address:port, or the path of a pipe
 * @property {Hop[]} opened who opened it, newest hop first; empty where that is not known
 * @property {{ request: string, chain: Hop[] } | undefined} usedBy the request that uses it now
 * @property {{ at: string | undefined, agoMs: number, chain: Hop[] } | undefined} writtenBy who wrote on it
 *   last, where it is a connection that was made here and no client of Node's uses it; at: the program's
 *   innermost frame
 * @property {Array<{ name: string, at: string | undefined }>} through
 *   the transforms of trace.intercept that its bytes go through, in order, and where each was set
 * @property {number | undefined} ageMs since it was made
 * @property {number | undefined} idleMs since data went either way, a request was answered, a timer ran
 * @property {number | undefined} bytesRead
 * @property {number | undefined} bytesWritten
 * @property {boolean | undefined} referenced keeps the process alive
 * @property {string | undefined} hint how to close it
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
  const state = type === 'PROMISE' ? promiseState(object, context) : stateOf(subject, side)
  const usedBy = object === undefined ? undefined : userOf(object, entry)
  const writtenBy = usedBy === undefined ? lastWriter(entry) : undefined
  const active = lastActive(subject)
  /** @type {any} */
  const facts = {
    what: describe(subject, side, ends, processHandles),
    type,
    asyncId: context?.asyncId || undefined,
    origin: originOf(subject),
    side,
    state,
    ...ends,
    opened: copyChain(opened, publicHop),
    usedBy: usedBy && { request: usedBy.request, chain: copyChain(usedBy.hops, publicHop) },
    writtenBy: writtenBy &&
      { at: writtenBy.at, agoMs: writtenBy.agoMs, chain: copyChain(writtenBy.hops, publicHop) },
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
    pooled: object !== undefined && isPooled(object, entry),
    filtered: resource !== undefined && isFiltered(resource)
  }
  Object.defineProperty(facts, 'toString', { value: () => textOf(printedFacts), enumerable: false })
  printed.write(facts, printedFacts)
  return inspectableReport(facts)
}

/** @param {PrintedHop} hop @returns {Hop} */
function publicHop (hop) {
  const copy = copyHop(hop)
  return { ...copy, label: clean(copy.label) }
}

/** @param {Entry | undefined} entry */
function lastWriter (entry) {
  const writer = writerOf(entry)
  if (writer === undefined) return undefined
  const chain = hops(writer)
  const agoMs = Math.max(0, queriedAt() - Number(entry?.writeTime))
  return { at: placeOf(chain[0]?.lines ?? []), agoMs, hops: chain }
}

/**
 * Returns the request on a connection now. http keeps it on the socket; undici reports it through its
 * channels.
 * @param {object} socket
 * @param {Entry | undefined} entry
 * @returns {{ request: string, hops: PrintedHop[] } | undefined}
 */
function userOf (socket, entry) {
  const message = own(socket, '_httpMessage')
  if (isObject(message)) {
    const incoming = own(message, 'req')
    const request = isObject(incoming) ? incoming : message
    return { request: requestLabel(request), hops: hops(contextOf(request) ?? contextOfWaiting(request)) }
  }
  const use = entry?.use
  if (use === undefined || use.isOver || use.request.deref() === undefined) return undefined
  return { request: use.label, hops: hops(withoutOwnWork(use.context)) }
}

/** @param {(type: string) => boolean} isSelected @returns {Why[]} what is open now */
const handles = (isSelected) => inspectableReports(list(isSelected).map(report))

/**
 * Reports on the same with pauses, in which the event loop may go on.
 * @param {(type: string) => boolean} isSelected
 * @returns {Generator<Why | undefined, void>} undefined: a pause
 */
function * open (isSelected) {
  for (const subject of walk(isSelected)) yield subject && report(subject)
}

/** Returns the report of everything open, for a terminal. @param {(type: string) => boolean} isSelected */
function summary (isSelected) {
  startQuery()
  return paint(summaryOf(handles(isSelected)))
}

/** Lists the handles of the child processes. */
function processHandles () {
  const entries = registry.list().filter((entry) => entry.context.type === 'PROCESSWRAP')
  return entries.map((entry) => entry.resource.deref()).filter((handle) => handle !== undefined)
}

/**
 * Reads the ends of a connection, and keeps them for reports after its end.
 * @param {Subject} subject
 */
function endsWithReported (subject) {
  const ends = endsOf(subject)
  const { object, type } = subject
  const before = object && reportedFacts.read(object)
  const local = cleaned(ends.local) ?? before?.local
  const remote = cleaned(ends.remote) ?? before?.remote
  if (object !== undefined && type !== 'unknown') reportedFacts.write(object, { type, local, remote })
  return { local, remote }
}

/**
 * Returns the last activity of a resource, or of what runs over it: HTTP/2 and TLS read past the socket.
 * @param {Subject} subject
 * @returns {number | undefined} ms of the clock
 */
function lastActive ({ object, handle, type, entry }) {
  if (type === 'UDPWRAP' || type === 'PROMISE' || type === 'REQUEST') return undefined
  const session = object === undefined ? undefined : hidden(object, 'session', 'kSession')
  const entries = [entry]
  if (isConnection(type)) {
    if (isObject(session) && session !== handle) entries.push(registry.ofObject(session))
    if (object !== undefined && object !== handle) entries.push(registry.ofObject(object))
  }
  const times = entries.map((candidate) => candidate && registry.lastActive(candidate))
    .filter((time) => time !== undefined)
  return times.length === 0 ? undefined : Math.max(...times)
}

/** @param {object | undefined} promise @param {Context | undefined} context */
function promiseState (promise, context) {
  if (promise === undefined || context === undefined) return undefined
  if (settlerOf(promise) !== undefined) return 'settled'
  return context.done || !registry.sawSettledSince(context.time) ? undefined : 'pending'
}

/** @param {Subject} subject @returns {Why['origin']} */
function originOf ({ object, handle, context, type }) {
  if (context !== undefined) return context.origin === 'early' ? 'early' : 'registered'
  const resource = handle ?? object
  if (resource === undefined || type === 'unknown') return 'unknown'
  if (contextTag.read(resource) !== undefined) return 'unknown'
  return handle === undefined && idOf(resource) === undefined ? 'unknown' : 'early'
}

/**
 * Whether http or undici manages a connection, used by a request now or not.
 * @param {object} socket
 * @param {Entry | undefined} entry
 */
function isPooled (socket, entry) {
  return own(socket, '_httpMessage') !== undefined || entry?.use !== undefined
}

/** @param {string | undefined} text */
function cleaned (text) {
  return text === undefined ? undefined : clean(text)
}

module.exports = { handles, open, report, summary, why }
