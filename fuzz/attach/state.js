'use strict'

// What tracing could leave behind in a thread: listeners, descriptors of properties of built-ins, async
// hooks, subscribers, timers, handles, descriptors of files, threads, memory. Needs --expose-internals and
// --expose-gc.

const asyncHooks = require('node:async_hooks')
const channels = require('node:diagnostics_channel')
const fs = require('node:fs')
const inspector = require('node:inspector')
const { builtinModules } = require('node:module')
const { isMainThread } = require('node:worker_threads')

/** @type {(id: string) => any} */
const internal = require
const { internalBinding } = internal('internal/test/binding')
const { timerListMap } = internal('internal/timers')
const hookFields = internalBinding('async_wrap').async_hook_fields

const TRACER = Symbol.for('longstack.tracer.3')
// Loading one of these prints a warning, or has a cost of its own
const skipped = /^(internal|node:internal|_|v8\/|punycode|sys|trace_events|wasi|inspector\/|sea|test|sqlite)/

/** Node's, for a moment: of undici, and of the header Date */
const ownTimers = new Set(['onTick', 'resetCache'])

const channelNames = [
  'http.client.request.created', 'http.client.request.start', 'http.client.request.error',
  'http.client.response.finish', 'http.server.request.start', 'http.server.response.created',
  'http.server.response.finish', 'http2.client.stream.created', 'http2.client.stream.start',
  'http2.client.stream.finish', 'http2.client.stream.close', 'http2.client.stream.error',
  'http2.server.stream.created', 'http2.server.stream.start', 'http2.server.stream.finish',
  'http2.server.stream.close', 'http2.server.stream.error', 'net.client.socket', 'net.server.socket',
  'udp.socket', 'child_process', 'worker_threads', 'undici:request:create', 'undici:request:bodySent',
  'undici:request:headers', 'undici:request:trailers', 'undici:request:error', 'undici:client:sendHeaders',
  'undici:client:beforeConnect', 'undici:client:connected', 'undici:client:connectError',
  'undici:websocket:open', 'undici:websocket:close', 'tracing:net.server.listen:asyncStart',
  'tracing:child_process.spawn:start'
]

/** numbers of objects that were seen: equal numbers, same object @type {WeakMap<object, number>} */
const numbers = new WeakMap()
let lastNumber = 0

/** @param {unknown} value @returns {string} */
function identity (value) {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return String(value)
  let number = numbers.get(value)
  if (number === undefined) numbers.set(value, number = ++lastNumber)
  return `#${number}`
}

/** Objects that programs share, by name: functions and prototypes of all built-in modules, and of globals. */
function sharedObjects () {
  /** @type {Map<string, object>} */
  const found = new Map()
  const add = (/** @type {string} */ name, /** @type {any} */ value) => {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return
    if ([...found.values()].includes(value)) return
    found.set(name, value)
  }
  const roots = builtinModules.filter((name) => !skipped.test(name)).map((name) => [name, require(name)])
  for (const [name, root] of [['globalThis', globalThis], ...roots]) {
    add(name, root)
    for (const key of Reflect.ownKeys(root)) {
      const { value } = /** @type {PropertyDescriptor} */ (Reflect.getOwnPropertyDescriptor(root, key))
      if (typeof value !== 'function') continue
      add(`${name}.${String(key)}`, value)
      add(`${name}.${String(key)}.prototype`, value.prototype)
    }
  }
  return found
}

const objects = sharedObjects()
const ignored = new Set(['globalThis', 'process'].map((name) => objects.get(name)))

/** @param {object} object @returns {Array<[string, string]>} */
function properties (object) {
  return Reflect.ownKeys(object).filter((key) => key !== TRACER).map((key) => {
    const descriptor = /** @type {PropertyDescriptor} */ (Reflect.getOwnPropertyDescriptor(object, key))
    const { value, get, set, writable, enumerable, configurable } = descriptor
    const isOpaque = ignored.has(object) && typeof value !== 'function' // figures that change by themselves
    const parts = [isOpaque ? '' : identity(value), identity(get), identity(set)]
    return [String(key), [...parts, writable, enumerable, configurable].join(' ')]
  })
}

/** Descriptors of all properties of shared objects, by name. @returns {Record<string, string>} */
function descriptors () {
  /** @type {Record<string, string>} */
  const found = {}
  for (const [name, object] of objects) {
    for (const [key, text] of properties(object)) found[`${name} ${key}`] = text
    found[`${name} (prototype)`] = identity(Object.getPrototypeOf(object))
  }
  return found
}

/** @param {Iterable<string>} words @returns {Record<string, number>} how often each occurs */
function counted (words) {
  /** @type {Record<string, number>} */
  const counts = {}
  for (const word of [...words].sort()) counts[word] = (counts[word] ?? 0) + 1
  return counts
}

/** @returns {string[]} by file and line of their function, or delay */
function timers () {
  const found = []
  for (const list of Object.values(timerListMap)) {
    for (let item = list._idlePrev; item !== list; item = item._idlePrev) {
      const name = item._onTimeout?.name ?? ''
      if (!ownTimers.has(name)) found.push(`${list.msecs} ms ${name}`)
    }
  }
  return found
}

function openFiles () {
  return fs.readdirSync('/proc/self/fd').flatMap((name) => {
    try {
      return [fs.readlinkSync(`/proc/self/fd/${name}`).replace(/\d+/g, 'N')]
    } catch {
      return [] // that of the directory itself
    }
  })
}

/** What the tracer of this thread has in force. */
function tracing () {
  const tracer = /** @type {any} */ (asyncHooks)[TRACER]?.tracer
  if (tracer === undefined) return { enabled: false, listeners: [0, 0, 0], spans: false }
  const { settings } = tracer
  const spans = require('../../lib/spans/index')
  const blocked = require('../../lib/blocked/wanted')
  const { callbackListeners } = require('../../lib/core/on')
  return {
    enabled: settings.enabled,
    options: settings.enabled ? { ...settings.options } : undefined,
    listeners: [spans.listeners.size, blocked.listeners.size, callbackListeners.size],
    spans: spans.recorder()?.isEnabled() === true
  }
}

/** What must be as before; the same keys each time. @returns {Record<string, Record<string, any>>} */
function readState () {
  const listeners = Object.fromEntries(process.eventNames().map((name) =>
    [String(name), process.rawListeners(name).map(identity).join()]))
  return {
    descriptors: descriptors(),
    listeners,
    hooks: Object.fromEntries([...hookFields.slice(0, 7)].map((value, index) => [index, value])),
    channels: Object.fromEntries(channelNames.map((name) =>
      [name, /** @type {any} */ (channels.channel(name))._subscribers?.length ?? 0])),
    timers: counted(timers()),
    resources: counted(process.getActiveResourcesInfo()),
    handles: counted(/** @type {any} */ (process)._getActiveHandles()
      .map((/** @type {any} */ handle) => handle?.constructor?.name ?? '?')),
    tracing: tracing(),
    process: {
      capture: process.hasUncaughtExceptionCaptureCallback(),
      limit: Error.stackTraceLimit,
      inspector: inspector.url() ?? 'closed',
      domain: identity(/** @type {any} */ (process).domain),
      maxListeners: process.getMaxListeners()
    },
    ...(isMainThread && {
      files: counted(openFiles()),
      threads: { count: fs.readdirSync('/proc/self/task').length }
    })
  }
}

/** @type {Record<string, Record<string, any>>} */
let baseline = {}

/** Remembers the present state. */
function remember () {
  descriptors() // getters that Node replaces by values when they are read
  baseline = readState()
}

/** Lists what differs from what was remembered. @returns {string[]} */
function changes () {
  const state = readState()
  const found = []
  for (const [part, before] of Object.entries(baseline)) {
    const after = state[part]
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const [was, is] = [before[key], after[key]].map((value) => JSON.stringify(value))
      if (was !== is) found.push(`${part} ${key}: ${was} before, ${is} now`)
    }
  }
  return found
}

/** Memory in bytes, once garbage is collected. */
function memory () {
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, external, arrayBuffers, rss } = process.memoryUsage()
  return { heapUsed, external, arrayBuffers, rss }
}

module.exports = { changes, memory, remember, tracing }
