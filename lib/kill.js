'use strict'

// Which calls of process.kill end this process.

const process = require('node:process')

const { pid } = process
/** Signals that do not end a process by default, or that Node handles itself. */
const harmless = new Set([
  'SIGCHLD', 'SIGCONT', 'SIGURG', 'SIGWINCH', 'SIGSTOP', 'SIGTSTP', 'SIGTTIN', 'SIGTTOU', 'SIGPIPE',
  'SIGUSR1', 'SIGPROF'
])

/**
 * Returns the signal with which a call of process.kill would end this process.
 * @param {unknown} target
 * @param {unknown} signal
 * @returns {string | undefined} undefined: it does not
 */
function endingSignal (target, signal = 'SIGTERM') {
  // Zero and negative numbers are groups of processes
  if (target !== pid && target !== String(pid)) return undefined
  const { signals } = require('node:os').constants // only here: the program may be the first that loads it
  const name = Object.keys(signals).find((key) => key === signal || Reflect.get(signals, key) === signal)
  if (name === undefined || harmless.has(name)) return undefined
  const isHandled = name !== 'SIGKILL' && process.listenerCount(name) > 0
  return isHandled ? undefined : name
}

module.exports = { endingSignal }
