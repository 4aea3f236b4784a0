'use strict'

// The answer to "why is this here": what it is, who opened it, who uses it now, how long, how much. Facts that
// are not known are undefined, and the text says so. Nothing here runs code of the program (see inside.js).

const { types } = require('node:util')
const { OWN_WORK, settlerOf, contextTag } = require('../context/context')
const { createTag } = require('../context/tag')
const { mistake } = require('../errors')
const { clean, shortFrame } = require('../text')
const { report: textOf, printed } = require('../format/handles')
const { endsOf, hintOf, isConnection, isOpen, isServer, nounOf, referencedOf, sideOf, stateOf, trafficOf, whatOf } = require('./describe')
const { ask, handleOf, idOf, ownerOf, portState, providerOf } = require('../node-objects')
const { requestLabel } = require('./request-label')
const { writerOf } = require('./last-user')
const { className, hidden, isObject, own } = require('../objects')

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('../stacks/chain').Hop} Hop
 * @typedef {import('./registry').Entry} Entry
 * @typedef {import('./describe').Subject} Subject
 *
 * @typedef {object} Why
 * @property {string} what in words, for example "TCP connection, client to 127.0.0.1:5432, from 127.0.0.1:60350"
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
 * @property {{ at: string | undefined, agoMs: number, chain: Hop[] } | undefined} writtenBy who wrote on it last, where it
 *   is a connection that was made here and no client of Node's uses it; at: the program's innermost frame
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
 * What was once asked for; a handle from before enabling has no entry that keeps it.
 * @type {ReturnType<typeof createTag<{ type: string, local: string | undefined, remote: string | undefined }>>}
 */
const asked = createTag()

/** Requests on a handle that is listed itself. */
const partOfHandle = /^(TCPCONNECTWRAP|PIPECONNECTWRAP|WRITEWRAP|SHUTDOWNWRAP|UDPSENDWRAP|HTTP2PING|HTTP2SETTINGS)$/

/** Where Node makes a timer that the program asked for. */
const forTimers = /^node:(internal\/)?(timers|abort_controller|util)\b/

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('./registry').createRegistry>} deps.registry
 * @param {(context: Context | undefined) => PrintedHop[]} deps.hops
 * @param {(hop: PrintedHop) => Hop} deps.plain
 * @param {(context: Context) => import('../stacks/frames').Stack | undefined} deps.stackOf
 * @param {() => number} deps.askedAt when the present question was asked
 * @param {() => boolean} deps.enabled
 * @param {(socket: object) => Why['through']} deps.through
 */
function createReports ({ registry, hops, plain, stackOf, askedAt, enabled, through }) {
  /**
   * @param {unknown} target
   * @returns {Why}
   */
  function why (target) {
    if (typeof target !== 'object' || target === null) throw mistake('INVALID_TARGET', target)
    return report(subjectOf(inner(target)))
  }

  /**
   * What stands behind an object; its context may be that of an outer one where a filter leaves its own out.
   * @param {object} target
   */
  function find (target) {
    const object = inner(target)
    const subject = subjectOf(object)
    return { ...subject, context: subject.context ?? visible(contextTag.read(subject.handle ?? object)) }
  }

  /**
   * From a request or response to its connection, from a wrapper to what it wraps.
   * @param {object} target
   * @returns {object}
   */
  function inner (target) {
    let object = target
    if (types.isProxy(object)) return sessionSocket(object) ?? object
    for (let step = 0; step < 3 && !types.isNativeError(object); step++) {
      if (handleOf(object) !== undefined || idOf(object) !== undefined) break
      const next = ['socket', 'client', 'req'].map((name) => own(object, name)).find(isObject) ?? hidden(object, 'kSocket', 'stream')
      if (!isObject(next)) break
      object = next
    }
    return object
  }

  /** session.socket of HTTP/2 is a proxy; it is known by its session. @param {object} proxy */
  function sessionSocket (proxy) {
    for (const entry of registry.all()) {
      const handle = entry.context.type === 'HTTP2SESSION' ? entry.resource.deref() : undefined
      const session = handle && ownerOf(handle)
      if (session !== undefined && hiddenIs(session, 'proxySocket', proxy)) return hidden(session, 'socket')
    }
    return undefined
  }

  /** @param {object} object @returns {Subject} */
  function subjectOf (object) {
    if (types.isProxy(object)) return { object: undefined, handle: undefined, type: 'unknown', context: undefined, entry: undefined }
    if (types.isNativeError(object)) return { object, handle: undefined, type: 'unknown', context: undefined, entry: undefined }
    const handle = handleOf(object) ?? (isResource(object) ? object : undefined)
    const entry = registry.ofObject(object)
    const context = contextOf(handle ?? object) ?? entry?.context ?? contextOfWaiting(object)
    const known = (handle !== undefined || entry !== undefined) && context?.type !== 'unknown'
    const type = (known ? context?.type : undefined) ?? typeNow(handle, object)
    return { object, handle, type, context, entry }
  }

  /** @param {object | undefined} handle @param {object} object */
  function typeNow (handle, object) {
    const type = typeOf(handle, object)
    return type === 'unknown' ? asked.read(object)?.type ?? type : type
  }

  /**
   * The context of a resource itself. Where a filter leaves a type out, its resources pass on an outer context,
   * which would tell a wrong story here.
   * @param {object} resource
   * @returns {Context | undefined}
   */
  function contextOf (resource) {
    const context = visible(contextTag.read(resource))
    if (context === undefined) return undefined
    if (types.isPromise(resource)) return context.type === 'PROMISE' ? context : undefined
    const id = idOf(resource)
    if (id !== undefined) return id === context.asyncId ? context : undefined
    const type = providerOf(resource)
    return type === undefined || type === context.type ? context : undefined
  }

  /**
   * A request that waits for a connection has a resource in the queue; a session that waits for one has its socket.
   * @param {object} object a ClientRequest, an HTTP/2 stream or session
   */
  function contextOfWaiting (object) {
    const queued = hidden(object, 'requestAsyncResource', 'kRequestAsyncResource')
    if (isObject(queued)) return contextOf(queued)
    const socket = typeOf(undefined, object) === 'HTTP2SESSION' ? hidden(object, 'socket') : undefined
    const handle = isObject(socket) ? handleOf(socket) : undefined
    return handle && contextOf(handle)
  }

  /**
   * @param {Subject} subject
   * @returns {Why}
   */
  function report (subject) {
    const { object, handle, type, context, entry } = subject
    registry.connected(entry)
    const opened = hops(context)
    const { local, remote } = remembered(subject)
    const side = sideOf({ ...subject, entry: entry ?? /** @type {any} */ ({ remote }) })
    const state = type === 'PROMISE' ? promiseState(object, context) : stateOf(subject, side)
    const usedBy = object === undefined ? undefined : useOf(object, entry)
    const time = askedAt()
    const active = lastActive(subject)
    const writer = usedBy === undefined ? writerOf(entry) : undefined
    const written = writer === undefined ? undefined : hops(writer)
    const writtenBy = written && { at: placeOf(written), agoMs: Math.max(0, time - Number(entry?.writeTime)), hops: written }
    /** @type {any} */
    const facts = {
      what: whatOf(subject, side, { local, remote }),
      type,
      asyncId: context?.asyncId || undefined,
      origin: originOf(subject),
      side,
      state,
      local,
      remote,
      opened: opened.map(bare),
      usedBy: usedBy && { request: usedBy.request, chain: usedBy.hops.map(bare) },
      writtenBy: writtenBy && { at: writtenBy.at, agoMs: writtenBy.agoMs, chain: writtenBy.hops.map(bare) },
      through: object === undefined ? [] : through(object),
      ageMs: context === undefined || context.origin === 'early' ? undefined : time - context.time,
      idleMs: active === undefined ? undefined : Math.max(0, time - active),
      ...trafficOf(subject),
      referenced: state === 'closed' ? undefined : referencedOf(subject),
      hint: hintOf(subject, state)
    }
    const ran = context !== undefined && active !== undefined && active > context.time
    const pooled = object !== undefined && isPooled(object, entry)
    const shown = { ...facts, noun: nounOf(subject, side), opened, usedBy, writtenBy, ran, enabled: enabled(), pooled, filtered: isFiltered(handle ?? object) }
    Object.defineProperty(facts, 'toString', { value: () => textOf(shown), enumerable: false })
    printed.write(facts, shown)
    return facts
  }

  /** @param {PrintedHop} hop @returns {Hop} */
  function bare (hop) {
    const shown = plain(hop)
    return { ...shown, label: clean(shown.label) }
  }

  /** @param {Subject} subject */
  function remembered (subject) {
    const found = endsOf(subject)
    const { object, type } = subject
    const before = object && asked.read(object)
    const known = { type, local: cleaned(found.local) ?? before?.local, remote: cleaned(found.remote) ?? before?.remote }
    if (object !== undefined && type !== 'unknown') asked.write(object, known)
    return known
  }

  /** @param {Subject} subject @returns {Why['origin']} */
  function originOf ({ object, handle, context, type }) {
    if (context !== undefined) return context.origin === 'early' ? 'early' : 'registered'
    const resource = handle ?? object
    if (resource === undefined || type === 'unknown' || contextTag.read(resource) !== undefined) return 'unknown'
    return handle === undefined && idOf(resource) === undefined ? 'unknown' : 'early'
  }

  /** Its type is not in the filter: only an outer context is known. @param {object | undefined} resource */
  function isFiltered (resource) {
    const context = resource === undefined ? undefined : contextTag.read(resource)
    return context !== undefined && context !== OWN_WORK && contextOf(/** @type {object} */ (resource)) === undefined
  }

  /**
   * The last activity of it, or of what runs over it: HTTP/2 and TLS read past the socket.
   * @param {Subject} subject
   */
  function lastActive ({ object, handle, type, entry }) {
    if (type === 'UDPWRAP' || type === 'PROMISE' || type === 'REQUEST') return undefined
    const upper = object === undefined ? undefined : hidden(object, 'session', 'kSession')
    const others = [isObject(upper) ? upper : undefined, object].map((one) => one === undefined || one === handle ? undefined : registry.ofObject(one))
    const times = [entry, ...(isConnection(type) ? others : [])].map((one) => one && registry.lastActive(one)).filter((time) => time !== undefined)
    return times.length === 0 ? undefined : times.reduce((a, b) => Math.max(Number(a), Number(b)))
  }

  /** @param {object | undefined} promise @param {Context | undefined} context */
  function promiseState (promise, context) {
    if (promise === undefined || context === undefined) return undefined
    if (settlerOf(promise) !== undefined) return 'settled'
    return context.done || !registry.wasWatchingSince(context.time) ? undefined : 'pending'
  }

  /**
   * The request on a connection now. http keeps it on the socket; undici tells through its channels.
   * @param {object} socket
   * @param {Entry | undefined} entry
   * @returns {{ request: string, hops: PrintedHop[] } | undefined}
   */
  function useOf (socket, entry) {
    const message = own(socket, '_httpMessage')
    if (isObject(message)) {
      const incoming = own(message, 'req')
      const request = isObject(incoming) ? incoming : message
      return { request: requestLabel(request), hops: hops(contextOf(request) ?? contextOfWaiting(request)) }
    }
    const use = entry?.use
    if (use === undefined || use.over || use.request.deref() === undefined) return undefined
    return { request: use.label, hops: hops(visible(use.context)) }
  }

  /**
   * What is open now.
   * @param {(type: string) => boolean} selected
   * @returns {Why[]}
   */
  function handles (selected) {
    const { owners, lower } = present()
    /** @type {Why[]} */
    const list = []
    for (const entry of registry.all()) {
      const handle = entry.resource.deref()
      if (handle === undefined) continue
      const { context } = entry
      const { type } = context
      const object = owners.get(handle) ?? entry.owner?.deref() ?? ownerOf(handle)
      owners.delete(handle)
      if (!selected(type) || (lower.has(handle) && selected('TLSWRAP'))) continue
      const subject = { object: object ?? (type === 'MESSAGEPORT' || type === 'Timeout' ? handle : undefined), handle, type, context, entry }
      if (isOpen(subject) === true && isOfProgram(context) && !isOutput(handle)) list.push(report(subject))
    }
    for (const [handle, object] of owners) {
      const stamped = contextTag.read(handle)
      if (stamped === OWN_WORK || isOutput(handle)) continue
      const context = contextOf(handle)
      const type = context === undefined || context.type === 'unknown' ? typeOf(handle, object) : context.type
      if (selected(type) && !partOfHandle.test(type) && !(lower.has(handle) && selected('TLSWRAP'))) {
        list.push(report({ object: object === handle ? undefined : object, handle, type, context, entry: undefined }))
      }
    }
    return list
  }

  /** What Node itself lists, and the handles below TLS: one connection is not two. */
  function present () {
    /** @type {Map<object, object>} handle → what the program holds */
    const owners = new Map()
    const node = /** @type {any} */ (process)
    for (const object of node._getActiveHandles().concat(node._getActiveRequests())) {
      if (types.isProxy(object)) continue
      const handle = handleOf(object) ?? (isResource(object) || typeOf(undefined, object) === 'MESSAGEPORT' ? object : undefined)
      if (handle !== undefined) owners.set(handle, object) // one that closes has no handle any more
    }
    const lower = new Set()
    const tls = registry.all().filter((entry) => entry.context.type === 'TLSWRAP').map((entry) => entry.resource.deref())
    for (const handle of [...tls, ...owners.keys()]) {
      const below = handle === undefined ? undefined : own(handle, '_parent')
      const socket = handle === undefined ? undefined : ownerOf(handle)
      if (!isObject(below) || socket === undefined || handleOf(socket) !== handle) continue
      lower.add(below)
      owners.set(below, socket)
    }
    return { owners, lower }
  }

  /** Made by the program, not by Node for itself: timers behind sockets, ports behind workers. @param {Context} context */
  function isOfProgram (context) {
    if (context.type !== 'Timeout' && context.type !== 'MESSAGEPORT') return true
    const frames = (stackOf(context)?.frames ?? []).filter((frame) => frame.kind !== 'own' && frame.fileName !== undefined)
    const first = frames.findIndex((frame) => frame.kind !== 'core')
    const calls = frames.slice(0, first === -1 ? frames.length : first)
    if (context.type === 'MESSAGEPORT') return !calls.some((frame) => frame.fileName === 'node:internal/worker')
    if (first === -1) return frames.length === 0
    return calls.every((frame) => forTimers.test(String(frame.fileName)) && frame.functionName !== 'setUnrefTimeout')
  }

  /** Every process has standard output and error, and Node opens them for itself. @param {object} handle */
  function isOutput (handle) {
    const fd = ask(handle, 'fd')
    return fd === 1 || fd === 2
  }

  /** @param {Context | undefined} context */
  function visible (context) {
    return context === OWN_WORK ? undefined : context
  }

  return { why, handles, find }
}

/** Is the object its own resource: a timer, a promise, a port, an AsyncResource? @param {object} object */
function isResource (object) {
  return contextTag.marks(object) || types.isPromise(object) || providerOf(object) !== undefined ||
    hidden(object, 'asyncId', 'trigger_async_id_symbol') !== undefined
}

/** The provider's name where no context tells it. @param {object | undefined} handle @param {object | undefined} object */
function typeOf (handle, object) {
  const subject = handle ?? object
  if (subject === undefined || types.isProxy(subject)) return 'unknown'
  if (types.isPromise(subject)) return 'PROMISE'
  const provider = handle === undefined ? undefined : providerOf(handle)
  if (provider !== undefined) return provider
  if (own(subject, '_onTimeout') !== undefined && hidden(subject, 'asyncId') !== undefined) return 'Timeout'
  if (own(subject, '_onImmediate') !== undefined && hidden(subject, 'asyncId') !== undefined) return 'Immediate'
  if (object !== undefined && isServer(object)) return typeof own(object, '_pipeName') === 'string' ? 'PIPESERVERWRAP' : 'TCPSERVERWRAP'
  if (own(subject, '_tlsOptions') !== undefined) return 'TLSWRAP'
  const name = className(subject)
  if (name === 'MessagePort') return portState(subject).active === undefined ? 'unknown' : 'MESSAGEPORT'
  if (/^(Client|Server)Http2(Session|Stream)$/.test(String(name)) && hidden(subject, 'kSession', 'session', 'socket') !== undefined) {
    return name?.endsWith('Session') ? 'HTTP2SESSION' : 'HTTP2STREAM'
  }
  return hidden(subject, 'kOutHeaders') !== undefined && own(subject, 'agent') !== undefined ? 'REQUEST' : 'unknown'
}

/** @param {PrintedHop[]} hops @returns {string | undefined} the innermost function of the newest, as a person says it */
function placeOf ([first]) {
  const lines = first?.lines ?? []
  const line = (lines.find((frame) => frame.endsWith(')')) ?? lines[0])?.trim()
  return line === undefined || !line.startsWith('at ') ? undefined : clean(shortFrame(line.slice('at '.length)))
}

/** http and undici have it in their hands, whether or not a request uses it now. @param {object} socket @param {Entry | undefined} entry */
function isPooled (socket, entry) {
  return own(socket, '_httpMessage') !== undefined || entry?.use !== undefined
}

/** @param {object} object @param {string} name @param {unknown} value */
function hiddenIs (object, name, value) {
  return Object.getOwnPropertySymbols(object).some((symbol) => symbol.description === name && own(object, symbol) === value)
}

/** @param {string | undefined} foreign */
function cleaned (foreign) {
  return foreign === undefined ? undefined : clean(foreign)
}

module.exports = { createReports }
