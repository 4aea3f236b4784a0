'use strict'

// Handles and resources that no program should have: sockets, servers and timers whose properties are
// getters, methods, gone or odd, AsyncResources with any type that are entered, left by a throw, destroyed
// twice and bound. No code of the program runs when longstack is asked about them, contexts come back,
// reports are plain data.

const { AsyncResource, AsyncLocalStorage, executionAsyncId } = require('node:async_hooks')
const dgram = require('node:dgram')
const net = require('node:net')
const { Readable } = require('node:stream')
const { inspect } = require('node:util')
const trace = require('..')
const { expectHarmless, mustThrowCode } = require('./helpers/expectations')
const { anything, fail, isHostile, makers: oddValues } = require('./helpers/values')
const { check, fc } = require('./helpers/property')

const BATCH = 20
const LATE_MS = 1e6 // after the end
const oddTypes = Object.keys(oddValues).filter((name) => /object|proxy|revoked|getters|toString/.test(name))
const propertyNames = ['_handle', 'remoteAddress', 'localPort', 'address', 'bytesRead', 'bytesWritten',
  '_bytesDispatched', 'connecting', 'destroyed', '_server', '_tlsOptions', '_readableState', '_writableState',
  'fd', 'hasRef', 'constructor', 'asyncId', '_repeat', '_onTimeout', '_destroyed', 'socket', 'client', 'req',
  'spawnfile', 'pid', 'toString', 'listening', '_connections', '_pipeName', '_host', '_peername', 'type',
  'getAsyncId', 'toJSON', Symbol.toStringTag, inspect.custom]
const values = [undefined, null, -1, '\x1b[2J', {}, Symbol('x')]

/** stack of code of the program that was run @type {string | undefined} */
let caller

function note () {
  caller ??= new Error('called').stack
}

/** Notes all but what Node reads itself in AsyncWrap::GetOwner (src/async_wrap.cc). */
const notingTraps = Object.fromEntries(['get', 'has', 'getPrototypeOf', 'getOwnPropertyDescriptor', 'ownKeys']
  .map((trap) => [trap, (/** @type {any} */ target, /** @type {any} */ key) => {
    if (trap !== 'get' || key?.description !== 'owner_symbol') note()
  }]))

/** Makes a handle on which nothing happens by itself. @type {Record<string, () => any>} */
const handles = {
  socket: () => new net.Socket(),
  server: () => net.createServer(),
  'datagram socket': () => dgram.createSocket('udp4'),
  stream: () => new Readable({ read () {} }),
  timer: () => setTimeout(ignore, LATE_MS),
  interval: () => setInterval(ignore, LATE_MS),
  immediate: () => setImmediate(ignore),
  resource: () => new AsyncResource('Own'),
  store: () => new AsyncLocalStorage(),
  promise: () => new Promise(ignore),
  port: () => new MessageChannel().port1
}

/** Closes a handle. @type {Record<string, (target: any) => void>} */
const closers = {
  'datagram socket': (target) => target.close(),
  timer: clearTimeout,
  interval: clearInterval,
  immediate: clearImmediate,
  port: (target) => target.close()
}

/** What is done to a handle. @type {Record<string, (target: any, names: PropertyKey[]) => void>} */
const changes = {
  none: ignore,
  getters: (target, names) => define(target, names, () => ({ get: note })),
  methods: (target, names) => define(target, names, () => ({ value: note })),
  values: (target, names) => define(target, names, (index) => ({ value: values[index % values.length] })),
  'no prototype': (target) => { Object.setPrototypeOf(target, null) },
  'prototype that notes': (target) => {
    Object.setPrototypeOf(target, new Proxy({}, notingTraps))
  },
  'class that notes': (target) => {
    const prototype = Object.create(Object.getPrototypeOf(target))
    Object.setPrototypeOf(target, define(prototype, propertyNames, () => ({ get: note })))
  }
}

function ignore () {}

/**
 * @param {any} target
 * @param {PropertyKey[]} names
 * @param {(index: number) => PropertyDescriptor} property
 */
function define (target, names, property) {
  for (const [index, name] of names.entries()) {
    Reflect.defineProperty(target, name, { ...property(index), configurable: true })
  }
  return target
}

/** @param {any} answer of why, chain, stack, handles or diff */
function expectPlain (answer) {
  if (answer === undefined) return
  JSON.parse(JSON.stringify(answer))
  expectHarmless('a report', inspect(answer, { depth: 9 }))
  if (!Array.isArray(answer)) expectHarmless('the text of a report', String(answer))
}

/** Asks all that the public object tells. @param {any} target @param {any} before a snapshot */
function ask (target, before) {
  for (const answer of [trace.why, trace.chain, trace.stack]) expectPlain(mustThrowCode(() => answer(target)))
  expectPlain(trace.handles())
  expectPlain(trace.diff(before))
}

/**
 * Changes a handle, asks about it, and puts back what was changed: Node reads it as well.
 * @param {{ kind: string, change: string, names: PropertyKey[] }} drawn
 */
function playHandle ({ kind, change, names }) {
  const before = trace.snapshot()
  const target = handles[kind]()
  const [properties, prototype] = [Object.getOwnPropertyDescriptors(target), Object.getPrototypeOf(target)]
  try {
    changes[change](target, names)
    const keys = Reflect.ownKeys(target)
    caller = undefined
    ask(target, before)
    if (caller !== undefined) throw new Error(`code of the program ran: ${caller}`)
    if (Reflect.ownKeys(target).length !== keys.length) throw new Error('properties were added')
  } finally {
    for (const name of names) Reflect.deleteProperty(target, name)
    Object.setPrototypeOf(Object.defineProperties(target, properties), prototype)
    closers[kind]?.(target)
  }
}

/** @param {any} type @returns {AsyncResource | undefined} undefined: Node refuses the type */
function createResource (type) {
  const value = type.make()
  try {
    return new AsyncResource(value, { requireManualDestroy: true })
  } catch (error) {
    if (typeof value === 'string' && value !== '') throw error
  }
}

/**
 * Enters a resource, and in it the following ones.
 * @param {Array<{ type: any, does: string, value: any }>} steps
 * @param {number} [index]
 */
function playResources (steps, index = 0) {
  if (index === steps.length) return
  const { type, does, value } = steps[index]
  const before = { id: executionAsyncId(), current: trace.current()?.asyncId }
  const resource = createResource(type)
  if (resource === undefined) return playResources(steps, index + 1)
  enter(resource, () => {
    playResources(steps, index + 1)
    if (does === 'throw') fail()
  })
  if (does === 'destroy twice') destroyTwice(resource)
  else if (does === 'bind') bind(resource, before.current)
  askAbout(value)
  const after = { id: executionAsyncId(), current: trace.current()?.asyncId }
  if (after.id !== before.id || after.current !== before.current) {
    throw new Error('the context did not come back')
  }
}

/** @param {AsyncResource} resource @param {() => void} run */
function enter (resource, run) {
  try {
    resource.runInAsyncScope(() => {
      expectContext(trace.current(), resource.asyncId())
      expectPlain(trace.chain())
      expectHarmless('a stack', trace.stack())
      run()
    })
  } catch (error) {
    if (!isHostile(error)) throw error
  }
}

/** @param {AsyncResource} resource */
function destroyTwice (resource) {
  resource.emitDestroy()
  callOfNode(() => resource.emitDestroy())
}

/** @param {AsyncResource} resource @param {number | undefined} current */
function bind (resource, current) {
  resource.bind(() => expectContext(trace.current(), resource.asyncId()))()
  trace.bind(() => expectContext(trace.current()?.parent, current))()
}

/** Asks about any value. @param {{ make: () => any }} value */
function askAbout (value) {
  for (const answer of [trace.why, trace.chain, trace.stack, trace.diff]) {
    mustThrowCode(() => answer(value.make()), { allowsHostile: true })
  }
  callOfNode(() => trace.bind(value.make())) // AsyncResource.bind reads properties of a function
}

/** @param {{ asyncId: number } | undefined} context @param {number | undefined} asyncId */
function expectContext (context, asyncId) {
  if (context?.asyncId !== asyncId) throw new Error(`the context is ${context?.asyncId}, not ${asyncId}`)
}

/** Calls what may throw errors of Node's own. @param {() => void} call */
function callOfNode (call) {
  try {
    call()
  } catch {}
}

function handle () {
  return fc.record({
    kind: fc.constantFrom(...Object.keys(handles)),
    change: fc.constantFrom(...Object.keys(changes)),
    names: fc.uniqueArray(fc.constantFrom(...propertyNames), { maxLength: 30 })
  })
}

function resource () {
  const names = fc.constantFrom('X', '__proto__', 'constructor', 'PROMISE', 'Timeout', 'TCPWRAP',
    'TickObject', 'HTTP2SESSION', '\x1b[2J\u202e', 'a\n    at f (x.js:1:1)', 'x'.repeat(5000))
  return fc.record({
    type: fc.oneof(names.map((text) => ({ make: () => text })),
      fc.constantFrom(...oddTypes).map((name) => ({ make: oddValues[name] }))),
    does: fc.constantFrom('nothing', 'throw', 'destroy twice', 'bind'),
    value: anything()
  })
}

/** @type {import('./helpers/targets').Target} */
module.exports = {
  name: 'handles',
  async run (settings) {
    const remove = trace.on('warning', () => {})
    trace.enable()
    try {
      const resources = fc.array(resource(), { maxLength: 6 })
      return await check(fc.asyncProperty(handle(), resources, async (drawn, steps) => {
        playHandle(drawn)
        await new Promise((resolve) => setTimeout(resolve, 0))
        playResources(steps)
      }), settings, BATCH)
    } finally {
      remove()
      trace.disable()
    }
  }
}
