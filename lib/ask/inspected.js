'use strict'

// Functions that a command calls in another process through its inspector: to connect the process to the
// command, and to see what runs while it is too busy to connect. They are loaded in that process and return
// strings, since results travel as JSON. They use the tracer that the process has, of any copy of longstack,
// or one of this copy.
//
// The inspector interrupts the process anywhere: in Node's list of timers, in a hook, in longstack itself.
// Functions that set or open something therefore begin with `await undefined`: they continue as a microtask
// after the interrupted callback, like any promise of the program.

const { readFileSync } = require('node:fs')
const { setImmediate } = require('node:timers') // programs replace the global ones
const { shared } = require('../start')

/** Returns the functions that this copy needs from the copy in the process. */
function live () {
  if (typeof shared.live !== 'function') {
    throw new Error('this process runs an older longstack that does not support this command')
  }
  return shared.live()
}

/**
 * Returns what the event loop was running when the inspector interrupted it.
 * @returns {string} a long stack; empty if the event loop is free
 */
function busy () {
  return live().busyStack(busy) ?? ''
}

/**
 * Returns how long this thread has run or waited for a CPU, in ms.
 * @returns {string} empty if unknown
 */
function cpuMs () {
  try {
    const [ran, waited] = readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ', 2)
    return String((Number(ran) + Number(waited)) / 1e6) // ns: Documentation/scheduler/sched-stats.rst
  } catch {}
  const usage = /** @type {any} */ (process).threadCpuUsage?.() // from Node 23.9 on
  return usage === undefined ? '' : String((usage.user + usage.system) / 1000)
}

/**
 * Resolves when this thread runs microtasks.
 * @param {{ isOpened: boolean }} inspector isOpened: a command opened it, and may be killed
 */
async function settle ({ isOpened }) {
  await undefined
  if (isOpened) live().hold()
}

/** Resolves when the event loop is free. Microtasks alone do not show that: they may never end. */
async function idle () {
  await undefined
  await new Promise((resolve) => { setImmediate(() => resolve(undefined)) })
}

/**
 * Connects to a command once the event loop is free.
 * @param {{ path: string, token: string }} socket of the command
 */
async function join ({ path, token }) {
  await undefined
  return live().connectToCommand(path, token)
}

/** Closes the inspector after this call has returned. */
function closeInspector () {
  closeLater()
  return '' // a promise would count as a failure for the caller, and Node crashes if it is closed twice
}

async function closeLater () {
  await undefined
  if (typeof shared.live === 'function') shared.live().release()
  setImmediate(() => require('node:inspector').close()).unref()
}

module.exports = { busy, cpuMs, settle, idle, join, closeInspector }
