'use strict'

// Replaces this process by another Node; where that is not possible, starts it as a child, to which signals,
// messages and exit code are passed through.

const { spawn } = require('node:child_process')
const { isatty } = require('node:tty')

/** Signals that a program can catch. @type {NodeJS.Signals[]} */
const forwarded = [
  'SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGCONT', 'SIGALRM', 'SIGABRT', 'SIGWINCH'
]

/** Signals that a terminal sends to all its processes, so also to the child. */
const sentByTerminal = ['SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGWINCH', 'SIGCONT']

/**
 * @param {string[]} args of node
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<number | undefined>} the exit code
 */
async function replaceProcess (args, env) {
  const { execve } = /** @type {any} */ (process)
  // execve would close the channel of a forked process.
  const canReplace = execve !== undefined && process.send === undefined && process.platform !== 'win32'
  if (canReplace) execve.call(process, process.execPath, [process.argv0, ...args], env)
  return await runChild(args, env)
}

/**
 * Starts another Node as a child, with this process's standard streams.
 * @param {string[]} args of node
 * @param {NodeJS.ProcessEnv} env
 * @param {() => Promise<void>} [ended] called when it has ended, before this process ends the same way
 * @returns {Promise<number | undefined>} the exit code
 */
function runChild (args, env, ended = async () => {}) {
  const isForked = process.send !== undefined
  /** @type {import('node:child_process').StdioOptions} */
  const stdio = isForked ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit'
  const child = spawn(process.execPath, args, { env, argv0: process.argv0, stdio })
  if (isForked) connect(child)
  const inTerminal = [0, 1, 2].some((fd) => isatty(fd))
  for (const name of forwarded) {
    process.on(name, () => { if (!inTerminal || !sentByTerminal.includes(name)) child.kill(name) })
  }
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      if (isForked && process.connected) process.disconnect()
      ended().then(() => {
        if (signal === null) resolve(code ?? 1)
        else endBy(signal)
      }, reject)
    })
  })
}

/** Passes messages in both directions. @param {import('node:child_process').ChildProcess} child */
function connect (child) {
  child.on('message', (message, handle) => process.send?.(message, handle))
  child.on('disconnect', () => { if (process.connected) process.disconnect() })
  process.on('message', (/** @type {any} */ message, /** @type {any} */ handle) => {
    if (child.connected) child.send(message, handle)
  })
  process.on('disconnect', () => { if (child.connected) child.disconnect() })
}

/** Ends this process by the signal that ended the child. @param {NodeJS.Signals} signal */
function endBy (signal) {
  for (const name of forwarded) process.removeAllListeners(name)
  process.kill(process.pid, signal)
  setTimeout(() => process.exit(1), 1000) // the signal does not end a process
}

module.exports = { replaceProcess, runChild }
