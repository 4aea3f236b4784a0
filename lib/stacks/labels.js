'use strict'

// The words a person would use for a hop: the call they wrote, not the provider that Node names.

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./frames').Frame} Frame
 */

/** @type {Record<string, (detail: string | undefined, api: string | undefined) => string>} */
const phrases = {
  __proto__: /** @type {any} */ (null),
  process: () => 'process start',
  unknown: () => 'made before longstack was enabled',
  Immediate: (_, api) => deferred('setImmediate', api),
  TickObject: (_, api) => deferred('process.nextTick', api),
  Microtask: (_, api) => deferred('queueMicrotask', api),
  REQUEST: (_, api) => api ?? 'request',
  TCPCONNECTWRAP: (detail, api) => call(connector(api), detail),
  PIPECONNECTWRAP: (detail, api) => call(connector(api), detail),
  TCPSERVERWRAP: (detail) => call('server.listen', detail),
  PIPESERVERWRAP: (detail) => call('server.listen', detail),
  GETADDRINFOREQWRAP: (detail, api) => call(api ?? 'dns.lookup', detail),
  GETNAMEINFOREQWRAP: (detail, api) => call(api ?? 'dns.lookupService', detail),
  QUERYWRAP: (detail, api) => call(api ?? 'dns.resolve', detail),
  HTTPINCOMINGMESSAGE: () => 'http request received',
  PROCESSWRAP: (_, api) => api ?? 'child_process.spawn',
  WORKER: () => 'new Worker',
  SIGNALWRAP: () => 'process.on(signal)'
}

/**
 * @param {Context} context
 * @param {Frame[]} frames of its stack
 * @returns {string}
 */
function labelOf (context, frames) {
  const { type, detail } = context
  if (context.origin === 'early') return 'made before longstack was enabled'
  if (type === 'PROMISE') return promiseLabel(context, frames)
  if (type === 'Timeout') return call(/\bsetInterval$/.test(innermostApi(frames) ?? '') ? 'setInterval' : 'setTimeout', detail)
  const accepted = frames.every((frame) => frame.kind === 'core') && (type === 'TCPWRAP' || type === 'PIPEWRAP')
  if (accepted && context.parent?.type.endsWith('SERVERWRAP')) return 'connection accepted'
  const phrase = phrases[type]
  const api = apiName(frames)
  return phrase === undefined ? api ?? type : phrase(detail, api)
}

/** Node defers much on behalf of a call; then that call is the better word. @param {string} name @param {string | undefined} api */
function deferred (name, api) {
  return api === undefined || name.endsWith(api.replace(/^.*\./, '')) ? name : api
}

/** @param {string | undefined} api */
function connector (api) {
  return api === undefined || /^net\.|^internal/.test(api) ? 'net.connect' : api
}

/** @param {string} name @param {string | undefined} detail */
function call (name, detail) {
  return detail === undefined ? name : `${name}(${detail})`
}

/**
 * @param {Context} context
 * @param {Frame[]} frames
 */
function promiseLabel (context, frames) {
  const own = frames.findIndex((frame) => frame.kind !== 'core' || frame.fileName !== undefined)
  const builtIn = frames[(own === -1 ? frames.length : own) - 1]
  if (builtIn !== undefined) {
    const name = plain(builtIn.functionName ?? 'promise')
    // Node 20 and 22 call the receiver of Promise.reject "Function".
    return name.replace(/^Promise\.(?=(then|catch|finally)$)/, 'promise.').replace(/^Function\./, 'Promise.')
  }
  const first = frames[0]
  if (first === undefined) return 'promise'
  if (first.kind === 'core') return apiName(frames) ?? 'promise'
  if (context.awaited) return 'await'
  return first.functionName === undefined ? 'async function' : `${plain(first.functionName)}()`
}

/** The name of the call into Node that the program made: the core frame next to the program's own. @param {Frame[]} frames */
function apiName (frames) {
  const first = frames.findIndex((frame) => frame.kind !== 'core')
  const core = (first === -1 ? frames : frames.slice(0, first)).filter((frame) => frame.fileName !== undefined)
  const api = first === -1 ? undefined : core[core.length - 1]
  if (api === undefined || api.functionName === undefined) return undefined
  const place = String(api.fileName).slice('node:'.length)
  const name = plain(api.functionName)
  if (!/^[\w.$ ]+$/.test(name)) return undefined
  const method = name.startsWith('new ') ? name : name.replace(/^(Object|Function|Module|process|FSPromises?)\./, '')
  const room = place.replace(/^internal\/(?=(fs|dns|child_process|crypto|worker|http2|net|dgram|timers|zlib)\b)/, '')
    .replace(/\//g, '.')
  if (room.startsWith('internal') || method.startsWith('new ')) return method
  return `${room.split('.').slice(0, room.includes('promises') ? 2 : 1).join('.')}.${method}`
}

/** The innermost call of Node that made a timer: setTimeout or setInterval. @param {Frame[]} frames */
function innermostApi (frames) {
  const frame = frames.find((one) => /\bset(Timeout|Interval)$/.test(one.functionName ?? ''))
  return frame?.functionName
}

/** A function's name without receiver details: "Object.connect [as createConnection]" → "Object.connect". @param {string} name */
function plain (name) {
  return name.replace(/ \[as .*\]$/, '').replace(/^async /, '')
}

module.exports = { labelOf, apiName, call }
