'use strict'

// What commands call in another process, by its inspector: to connect to the command, and what it runs while
// it is too busy for that. Loaded there: answers are strings, since they travel as JSON. Uses the tracer that
// the process has, of whichever copy of longstack, or one of this copy.
//
// The inspector interrupts what the process does, which may be anywhere: in Node's list of timers, in a hook,
// in longstack itself. What sets or opens something first awaits nothing: it goes on as a microtask, once the
// interrupted callback is over, as any promise of the program does.

const { readFileSync } = require('node:fs')
const { setImmediate } = require('node:timers') // programs replace the global ones
const { shared } = require('../start')

/** What this copy needs of the one that the process has. */
function live () {
  if (typeof shared.live !== 'function') {
    throw new Error('this process runs an older longstack that does not support this command')
  }
  return shared.live()
}

/**
 * Tells what the event loop is busy with: the inspector has interrupted it.
 * @returns {string} a long stack; empty: it is free
 */
function busy () {
  return live().busyStack(busy) ?? ''
}

/**
 * Returns for how many ms this thread has run or waited for a CPU.
 * @returns {string} empty if the system does not tell
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
 * Ends when the event loop is free.
 * @param {{ isOpened: boolean }} inspector isOpened: a command has opened it, and may be killed
 */
async function idle ({ isOpened }) {
  await undefined
  if (isOpened) live().hold()
}

/**
 * Connects to a command, when the event loop is free.
 * @param {{ path: string, token: string }} socket of the command
 */
async function join ({ path, token }) {
  await undefined
  return live().connectToCommand(path, token)
}

/** Closes the inspector, once this call is answered. */
function closeInspector () {
  closeLater()
  return '' // not a promise: its caller takes that for a failure, and Node crashes if it is closed twice
}

async function closeLater () {
  await undefined
  if (typeof shared.live === 'function') shared.live().release()
  setImmediate(() => require('node:inspector').close()).unref()
}

module.exports = { busy, cpuMs, idle, join, closeInspector }
