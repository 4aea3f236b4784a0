'use strict'

// Ways to defer, a delegate that needs one of them, and their orders.

const fs = require('node:fs')

const WORK_MS = 3 // work after deferring, until a timer of 0 is due, which Node makes 1 ms

/** @type {Record<string, (callback: () => void) => void>} */
const ways = {
  'process.nextTick': (callback) => process.nextTick(callback),
  queueMicrotask: (callback) => queueMicrotask(callback),
  'promise.then': (callback) => { Promise.resolve().then(callback) },
  setImmediate: (callback) => { setImmediate(callback) },
  'setTimeout 0': (callback) => { setTimeout(callback, 0) }
}

/** @type {typeof ways} */
const allWays = {
  'at once': (callback) => callback(),
  ...ways,
  'a call of fs.stat': (callback) => fs.stat(__filename, () => callback())
}

/**
 * Delivers a page. Returns a delegate, to which the caller attaches listeners.
 * @param {(callback: () => void) => void} defer
 * @param {string | undefined} page
 */
function deliver (defer, page) {
  /** @type {Record<string, (argument?: any) => void>} */
  const listeners = {}
  const delegate = {
    before: attach('before'),
    after: attach('after'),
    error: attach('error'),
    otherwise: attach('otherwise')
  }
  function attach (name) {
    return (listener) => {
      listeners[name] = listener
      return delegate
    }
  }
  const notify = (name, argument) => listeners[name]?.(argument)
  defer(function work () {
    if (page === undefined) return notify('otherwise')
    if (page === '') return notify('error', new Error('an empty page'))
    notify('before')
    notify('after', page.length)
  })
  return delegate
}

/**
 * Resolves with the events that a caller sees if it attaches the listeners after the call.
 * @param {(callback: () => void) => void} defer
 * @param {string} [page]
 */
async function eventsOf (defer, page) {
  const events = []
  await new Promise((resolve) => {
    const delegate = deliver((callback) => defer(() => {
      callback()
      setImmediate(resolve)
    }), page)
    events.push('the call is over')
    delegate
      .before(() => events.push('before'))
      .after((length) => events.push(`after ${length} characters`))
      .error((error) => events.push(`error (${error.message})`))
      .otherwise(() => events.push('otherwise'))
  })
  return events
}

/** Blocks the event loop. @param {number} ms */
function block (ms) {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** Defers in all ways in one callback, slowest first, and prints the order in which they ran. */
function deferAll () {
  const order = []
  for (const way of Object.keys(ways).reverse()) ways[way](() => order.push(way))
  process.once('exit', () => console.log(JSON.stringify(order)))
  block(WORK_MS)
}

/** @type {typeof ways} */
const places = {
  'the main script': (callback) => callback(),
  'a callback of fs.stat': (callback) => fs.stat(__filename, () => callback()),
  'a callback of process.nextTick': (callback) => process.nextTick(callback),
  'a promise, so after await': (callback) => { Promise.resolve().then(callback) },
  'a callback of setImmediate': (callback) => { setImmediate(callback) },
  'a callback of setTimeout': (callback) => { setTimeout(callback, 0) }
}

// An ES module is evaluated inside a promise. When its timers run depends on how that version of Node loads
// it.
const MODULE = `
  const ways = {
    'process.nextTick': process.nextTick,
    queueMicrotask,
    'promise.then': (callback) => Promise.resolve().then(callback)
  }
  const order = []
  for (const way of Object.keys(ways).reverse()) ways[way](() => order.push(way))
  process.once('exit', () => console.log(JSON.stringify(order)))`

module.exports = { ways, allWays, places, MODULE, deferAll, eventsOf }
