'use strict'

// Finds out if a call of process.kill ends this process.

const process = require('node:process')

const { pid } = process
/** Signals that do not end a process by default, or that Node handles itself. */
const harmless = new Set([
  'SIGCHLD', 'SIGCONT', 'SIGURG', 'SIGWINCH', 'SIGSTOP', 'SIGTSTP', 'SIGTTIN', 'SIGTTOU', 'SIGPIPE',
  'SIGUSR1', 'SIGPROF'
])

/**
 * Returns the signal that ends this process in a call of process.kill.
 * @param {unknown} target
 * @param {unknown} signal
 * @returns {string | undefined} undefined if the process survives
 */
function endingSignal (target, signal = 'SIGTERM') {
  // Zero and negative numbers are process groups
  if (target !== pid && target !== String(pid)) return undefined
  const { signals } = require('node:os').constants // late: the program may want to load it first
  const name = Object.keys(signals).find((key) => key === signal || Reflect.get(signals, key) === signal)
  if (name === undefined || harmless.has(name)) return undefined
  const isHandled = name !== 'SIGKILL' && process.listenerCount(name) > 0
  return isHandled ? undefined : name
}

module.exports = { endingSignal }
