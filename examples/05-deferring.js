'use strict'

// node examples/05-deferring.js
//
// deliver() returns a delegate and does its work later, so that a listener attached after the call is still
// in time. There are five ways to defer. They run in a fixed order, and an error in such a listener leads to
// the caller: its first hop names the way, and that hop's frames are the caller's.
//
// Based on "Node and process.nextTick" (Andrew Cholakian, 2010), on node-paperboy (Felix Geisendörfer, 2010).
// Cost of each way, and which of them starve files and sockets: docs/articles.md.

const fs = require('node:fs')
const { setTimeout: delay } = require('node:timers/promises')
const trace = require('longstack').enable()

const WORK = 3 // ms of work after deferring: enough that a timer of 0, which Node makes 1 ms, is due

/** @type {Record<string, (callback: () => void) => void>} */
const ways = {
  'process.nextTick': (callback) => process.nextTick(callback),
  queueMicrotask: (callback) => queueMicrotask(callback),
  'promise.then': (callback) => { Promise.resolve().then(callback) },
  setImmediate: (callback) => { setImmediate(callback) },
  'setTimeout 0': (callback) => { setTimeout(callback, 0) }
}

/**
 * Delivers a page, and calls the delegate's listener with its length.
 * @param {(callback: () => void) => void} defer
 * @param {string} page
 */
function deliver (defer, page) {
  let listener = (length) => console.log(`  no listener for ${length} characters`)
  defer(function work () { listener(page.length) })
  return { after (callback) { listener = callback } }
}

/** Defers in every way, slowest first, then blocks the event loop. @returns {string[]} filled later */
function deferAll () {
  const order = []
  for (const way of Object.keys(ways).reverse()) ways[way](() => order.push(way))
  const end = performance.now() + WORK
  while (performance.now() < end);
  return order
}

/** Resolves with the order of the ways. @param {(callback: () => void) => void} start schedules them */
async function orderIn (start) {
  let order = []
  start(() => { order = deferAll() })
  while (order.length < Object.keys(ways).length) await delay(5)
  return order
}

/** The caller; attaches its listener after the call. @param {(callback: () => void) => void} defer */
function showHomePage (defer) {
  return new Promise((resolve) => {
    deliver(defer, 'hello').after(function logLength (length) {
      resolve(new Error(`no log for ${length} characters`))
    })
  })
}

async function main () {
  console.log('Work that is done at once is over before a listener can be attached:')
  deliver((callback) => callback(), 'hello').after(() => console.log('  never called'))

  console.log('\nThe order in which callbacks run that are set in one callback')
  const places = {
    'of fs.stat': (callback) => fs.stat(__filename, callback),
    'of setTimeout': (callback) => setTimeout(callback, 1),
    'of setImmediate': (callback) => setImmediate(callback),
    'of a promise': (callback) => { Promise.resolve().then(callback) }
  }
  for (const [place, start] of Object.entries(places)) {
    console.log(`  ${place}: ${(await orderIn(start)).join(', ')}`)
  }

  console.log('\nAn error in a listener that was called by process.nextTick:\n')
  console.log((await showHomePage(ways['process.nextTick'])).stack)

  console.log('\nThe first hop of such an error, for each way:')
  for (const [way, defer] of Object.entries(ways)) {
    const [hop] = trace.chain(await showHomePage(defer))
    const names = hop.frames.map(({ functionName }) => functionName).filter((name) => name)
    console.log(`  ${way}: ${hop.label}, set in ${names.join(' < ')}`)
  }
}

main()
