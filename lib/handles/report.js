'use strict'

// The answer to "why is this here": what it is, who opened it, who uses it now, how long, how much. Facts that
// are not known are undefined, and the text says so. Nothing here runs code of the program: own data properties
// and Node's own getters only.

const net = require('node:net')
const { stamp, muted } = require('../context/context')
const { own, socketName } = require('../context/kinds')
const { mistake } = require('../errors')
const { idOf } = require('./registry')
const { age, clean, text } = require('../views/text')

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('../stacks/chain').Hop} Hop
 *
 * @typedef {object} Why
 * @property {string} what in words, for example "TCP connection, client, to 127.0.0.1:5432"
 * @property {string} type Node's provider name; "unknown" for what was made before enabling
 * @property {number | undefined} asyncId
 * @property {'registered' | 'early' | 'unknown'} origin early: made before longstack was enabled
 * @property {'client' | 'server' | undefined} side
 * @property {string | undefined} state such as "open", "connecting", "listening", "closed"
 * @property {string | undefined} local address:port
 * @property {string | undefined} remote address:port
 * @property {Hop[]} opened who opened it, newest hop first
 * @property {{ request: string, chain: Hop[] } | undefined} usedBy the request that uses it now
 * @property {number | undefined} ageMs since it was made
 * @property {number | undefined} idleMs since something came in, or a request was answered
 * @property {number | undefined} bytesRead
 * @property {number | undefined} bytesWritten
 * @property {boolean | undefined} referenced keeps the process alive
 * @property {string | undefined} hint how to close it
 * @property {() => string} toString the report as text
 */

/** @type {Record<string, [string, string | undefined]>} what a type is, and how to close it */
const words = {
  __proto__: /** @type {any} */ (null),
  TCPWRAP: ['TCP connection', 'socket.end() or socket.destroy()'],
  TCPSERVERWRAP: ['TCP server', 'server.close()'],
  PIPEWRAP: ['pipe', 'socket.end() or socket.destroy()'],
  PIPESERVERWRAP: ['pipe server', 'server.close()'],
  TLSWRAP: ['TLS connection', 'socket.end() or socket.destroy()'],
  UDPWRAP: ['UDP socket', 'socket.close()'],
  TTYWRAP: ['terminal', undefined],
  PROCESSWRAP: ['child process', 'child.kill(), or child.unref() to let it go on'],
  WORKER: ['worker thread', 'worker.terminate() or worker.unref()'],
  MESSAGEPORT: ['message port', 'port.close() or port.unref()'],
  FSEVENTWRAP: ['file watcher', 'watcher.close()'],
  STATWATCHER: ['file watcher', 'fs.unwatchFile()'],
  SIGNALWRAP: ['signal listener', 'process.off(signal, listener)'],
  HTTP2SESSION: ['HTTP/2 session', 'session.close()'],
  HTTP2STREAM: ['HTTP/2 stream', 'stream.close()'],
  FILEHANDLE: ['file', 'filehandle.close()'],
  DIRHANDLE: ['directory', 'dir.close()'],
  ZLIB: ['zlib stream', 'stream.close()'],
  Timeout: ['timer', 'clearTimeout(), clearInterval() or timer.unref()'],
  Immediate: ['immediate', 'clearImmediate()'],
  PROMISE: ['promise', undefined]
}

const socketBytesRead = getterOf(net.Socket.prototype, 'bytesRead')
const socketBytesWritten = getterOf(net.Socket.prototype, 'bytesWritten')

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('./registry').createRegistry>} deps.registry
 * @param {(context: Context | undefined) => PrintedHop[]} deps.hops
 * @param {(hop: PrintedHop) => Hop} deps.plain
 * @param {(context: Context) => import('../stacks/frames').Stack | undefined} deps.stackOf
 * @param {() => number} deps.now
 */
function createReports ({ registry, hops, plain, stackOf, now }) {
  /**
   * @param {unknown} target
   * @returns {Why}
   */
  function why (target) {
    if (typeof target !== 'object' || target === null) throw mistake('INVALID_TARGET', target)
    const { object, handle, context, entry } = find(target)
    return report(object, handle, context, entry)
  }

  /**
   * What stands behind an object: its handle, or itself; the entry of a closed one is found by its id.
   * @param {object} target
   */
  function find (target) {
    let object = target
    for (const name of ['socket', 'client', '_handle']) {
      if (stamp.read(object) !== undefined || own(object, '_handle') || idOf(object) !== undefined) break
      const inner = own(object, name)
      if (typeof inner === 'object' && inner !== null) object = inner
    }
    const handle = handleOf(object)
    const subject = handle ?? object
    const context = visible(stamp.read(subject))
    const entry = registry.ofSocket(object) ?? (context === undefined ? undefined : registry.get(context.asyncId))
    return { object, handle, context: context ?? entry?.context, entry }
  }

  /**
   * @param {object | undefined} object what the program holds, if known
   * @param {object | undefined} handle
   * @param {Context | undefined} context
   * @param {import('./registry').Entry | undefined} entry
   * @returns {Why}
   */
  function report (object, handle, context, entry) {
    registry.connected(entry)
    const type = context?.type ?? guessType(handle ?? object)
    const local = entry?.local ?? socketName(handle, 'getsockname')
    const remote = entry?.remote ?? socketName(handle, 'getpeername')
    const state = stateOf(object, handle, type)
    const side = sideOf(object, context, type)
    const opened = hops(context)
    const origin = context === undefined ? 'early' : context.origin === 'early' ? 'early' : 'registered'
    const usedBy = object === undefined ? undefined : useOf(object, entry)
    const time = now()
    /** @type {any} */
    const facts = {
      what: whatOf(type, side, local, remote, context),
      type,
      asyncId: context?.asyncId,
      origin,
      side,
      state,
      local,
      remote,
      opened: opened.map(plain),
      usedBy: usedBy && { request: usedBy.request, chain: usedBy.hops.map(plain) },
      ageMs: context === undefined ? undefined : time - context.time,
      idleMs: entry === undefined ? undefined : time - entry.active,
      bytesRead: bytes(object, handle, socketBytesRead, 'bytesRead'),
      bytesWritten: bytes(object, handle, socketBytesWritten, 'bytesWritten'),
      referenced: referenced(handle ?? object),
      hint: state === 'closed' ? undefined : words[type]?.[1]
    }
    const printed = { ...facts, opened, usedBy }
    return Object.defineProperty(facts, 'toString', { value: () => textOf(printed), enumerable: false })
  }

  /**
   * The request on a connection now. http keeps it on the socket; undici tells through its channels.
   * @param {object} socket
   * @param {import('./registry').Entry | undefined} entry
   * @returns {{ request: string, hops: PrintedHop[] } | undefined}
   */
  function useOf (socket, entry) {
    const message = own(socket, '_httpMessage')
    if (typeof message === 'object' && message !== null) {
      const request = own(message, 'req') ?? message
      return { request: requestLabel(request), hops: hops(visible(stamp.read(request))) }
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
    /** @type {Map<object, object>} handle → what the program holds */
    const owners = new Map()
    const node = /** @type {any} */ (process)
    for (const object of node._getActiveHandles().concat(node._getActiveRequests())) owners.set(handleOf(object) ?? object, object)
    const list = []
    for (const entry of registry.all()) {
      const handle = entry.resource.deref()
      if (handle === undefined || !selected(entry.context.type)) continue
      const owner = owners.get(handle) ?? ownerOf(handle)
      if (owners.delete(handle) || isOpen(handle, entry.context.type)) {
        if (entry.context.type === 'Timeout' && !programs(entry.context)) continue
        list.push(report(owner, handle, entry.context, entry))
      }
    }
    for (const [handle, object] of owners) {
      const context = stamp.read(handle)
      if (context === muted) continue
      const type = context !== undefined ? context.type : guessType(handle)
      if (selected(type)) list.push(report(object, handle, context, undefined))
    }
    return list
  }

  /** Made by the program, not by Node for itself. @param {Context} context */
  function programs (context) {
    return stackOf(context)?.frames.some((frame) => frame.kind === 'user' || frame.kind === 'module') ?? true
  }

  /** @param {Context | undefined} context */
  function visible (context) {
    return context === muted ? undefined : context
  }

  return { why, handles, find }
}

/** @param {object} object @returns {any} the libuv handle behind an object of Node's */
function handleOf (object) {
  const handle = own(object, '_handle')
  if (typeof handle === 'object' && handle !== null) return handle
  for (const symbol of Object.getOwnPropertySymbols(object)) {
    const name = symbol.description
    if (name !== 'kHandle' && name !== 'state symbol' && name !== 'kState') continue
    const value = own(object, symbol)
    if (typeof value !== 'object' || value === null) continue
    const inner = own(value, 'handle')
    if (typeof inner === 'object' && inner !== null) return inner
    if (stamp.read(value) !== undefined) return value
  }
  return undefined
}

/** @param {object} handle @returns {object | undefined} the socket or server on a handle */
function ownerOf (handle) {
  for (const symbol of Object.getOwnPropertySymbols(handle)) {
    if (symbol.description !== 'owner_symbol' && symbol.description !== 'owner') continue
    const owner = own(handle, symbol)
    if (typeof owner === 'object' && owner !== null) return owner
  }
  return undefined
}

/** The provider's name where no context tells it. @param {any} object */
function guessType (object) {
  if (object === undefined || object === null) return 'unknown'
  const name = own(Object.getPrototypeOf(object) ?? {}, 'constructor')?.name
  /** @type {Record<string, string>} */
  const types = {
    TCP: 'TCPWRAP',
    Pipe: 'PIPEWRAP',
    TTY: 'TTYWRAP',
    UDP: 'UDPWRAP',
    TLSWrap: 'TLSWRAP',
    Process: 'PROCESSWRAP',
    MessagePort: 'MESSAGEPORT',
    Signal: 'SIGNALWRAP',
    FSEvent: 'FSEVENTWRAP',
    Timeout: 'Timeout',
    Immediate: 'Immediate'
  }
  if (object instanceof Promise) return 'PROMISE'
  return types[name] ?? 'unknown'
}

/** @param {any} object @param {any} handle @param {string} type */
function stateOf (object, handle, type) {
  if (type === 'Timeout' || type === 'Immediate') return own(handle ?? object, '_destroyed') === true ? 'closed' : 'open'
  if (object instanceof net.Server) return handle === undefined ? 'closed' : 'listening'
  if (object instanceof net.Socket) {
    if (object.destroyed) return 'closed'
    if (object.connecting) return 'connecting'
    if (handle === undefined) return 'closed'
    return object.readyState === 'open' ? 'open' : 'half-open'
  }
  if (type.endsWith('SERVERWRAP')) return isOpen(handle, type) ? 'listening' : 'closed'
  return handle === undefined ? undefined : isOpen(handle, type) ? 'open' : 'closed'
}

/** @param {any} handle @param {string} type @returns {boolean} */
function isOpen (handle, type) {
  if (type === 'Timeout') return own(handle, '_destroyed') === false
  if (process.platform !== 'win32' && typeof handle.fd === 'number' && type !== 'UDPWRAP') return handle.fd >= 0
  return referenced(handle) === true
}

/** @param {any} object @returns {boolean | undefined} */
function referenced (object) {
  return typeof object?.hasRef === 'function' ? Boolean(object.hasRef()) : undefined
}

/** @param {any} object @param {Context | undefined} context @param {string} type */
function sideOf (object, context, type) {
  if (!/^(TCP|PIPE|TLS)WRAP$/.test(type)) return undefined
  if (context?.parent?.type.endsWith('SERVERWRAP') && context.triggerAsyncId === context.parent.asyncId) return 'server'
  if (object instanceof net.Socket) return own(object, 'server') || own(object, '_server') ? 'server' : 'client'
  return undefined
}

/**
 * @param {string} type
 * @param {string | undefined} side
 * @param {string | undefined} local
 * @param {string | undefined} remote
 * @param {Context | undefined} context
 */
function whatOf (type, side, local, remote, context) {
  let what = words[type]?.[0] ?? type
  if (side !== undefined) what += `, ${side}`
  if (remote !== undefined) what += side === 'server' ? ` of ${remote}, at ${local}` : ` to ${remote}, from ${local}`
  else if (local !== undefined) what += ` at ${local}`
  else if (type === 'Timeout' && context?.detail !== undefined) what += `, every or after ${context.detail} ms`
  return what
}

/** @param {any} request a ClientRequest, IncomingMessage or undici request @returns {string} method, host and path, no query */
function requestLabel (request) {
  const { method = 'GET', host, origin, path, url } = request // Node's own getters on some versions
  return clean(`${method} ${host ?? origin ?? ''}${String(path ?? url ?? '').replace(/[?#].*$/s, '')}`)
}

/** @param {object | undefined} object @param {any} handle @param {Function | undefined} getter @param {string} name */
function bytes (object, handle, getter, name) {
  const value = object instanceof net.Socket && getter !== undefined ? getter.call(object) : handle?.[name]
  return typeof value === 'number' ? value : undefined
}

/** @param {object} prototype @param {string} name @returns {Function | undefined} */
function getterOf (prototype, name) {
  return Object.getOwnPropertyDescriptor(prototype, name)?.get
}

/** @param {Why & { opened: PrintedHop[], usedBy: { request: string, hops: PrintedHop[] } | undefined }} facts */
function textOf (facts) {
  const lines = [`${facts.what} · ${facts.type}`]
  const seen = [
    facts.state,
    facts.ageMs === undefined ? 'age unknown' : `${age(facts.ageMs)} old`,
    facts.idleMs === undefined ? undefined : `idle for ${age(facts.idleMs)}`,
    facts.bytesRead === undefined ? undefined : `${facts.bytesRead} bytes in`,
    facts.bytesWritten === undefined ? undefined : `${facts.bytesWritten} bytes out`,
    facts.referenced === undefined ? undefined : facts.referenced ? 'keeps the process alive' : 'does not keep the process alive'
  ].filter(Boolean)
  lines.push(`  ${seen.join(', ')}`)
  if (facts.opened.length > 0) lines.push('  opened by', text(facts.opened))
  else lines.push(facts.origin === 'early' ? '  early: opened before longstack was enabled' : '  opened by: unknown')
  if (facts.usedBy !== undefined) {
    lines.push(`  used now by ${facts.usedBy.request}`)
    if (facts.usedBy.hops.length > 0) lines.push(text(facts.usedBy.hops))
  }
  if (facts.hint !== undefined) lines.push(`  to close it: ${facts.hint}`)
  return lines.join('\n')
}

module.exports = { createReports, requestLabel }
