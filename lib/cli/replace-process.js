'use strict'

// Another Node in place of this one, or, where a process cannot become another, as a child that nobody notices.

const { spawn } = require('node:child_process')
const { isatty } = require('node:tty')

/** Those that one process may send to another, and a program can catch. @type {NodeJS.Signals[]} */
const passed = ['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGCONT', 'SIGALRM', 'SIGABRT', 'SIGWINCH']

/** A terminal sends these to all that run in it, the child too. */
const terminals = ['SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGWINCH', 'SIGCONT']

/**
 * @param {string[]} args of node
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<number | undefined>} the exit code
 */
async function become (args, env) {
  const { execve } = /** @type {any} */ (process)
  // The channel of a forked process is this process's own, and lost with it.
  if (execve !== undefined && process.send === undefined && process.platform !== 'win32') execve.call(process, process.execPath, [process.argv0, ...args], env)
  return await follow(args, env)
}

/** @param {string[]} args @param {NodeJS.ProcessEnv} env @returns {Promise<number | undefined>} */
function follow (args, env) {
  const forked = process.send !== undefined
  /** @type {import('node:child_process').StdioOptions} */
  const stdio = forked ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit'
  const child = spawn(process.execPath, args, { env, argv0: process.argv0, stdio })
  if (forked) connect(child)
  const inTerminal = [0, 1, 2].some((fd) => isatty(fd))
  for (const name of passed) process.on(name, () => { if (!inTerminal || !terminals.includes(name)) child.kill(name) })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      if (forked && process.connected) process.disconnect()
      if (signal === null) resolve(code ?? 1)
      else endBy(signal)
    })
  })
}

/** Messages go both ways. @param {import('node:child_process').ChildProcess} child */
function connect (child) {
  child.on('message', (message, handle) => process.send?.(message, handle))
  child.on('disconnect', () => { if (process.connected) process.disconnect() })
  process.on('message', (message, handle) => { if (child.connected) child.send(/** @type {any} */ (message), /** @type {any} */ (handle)) })
  process.on('disconnect', () => { if (child.connected) child.disconnect() })
}

/** The same end that the child had. @param {NodeJS.Signals} signal */
function endBy (signal) {
  for (const name of passed) process.removeAllListeners(name)
  process.kill(process.pid, signal)
  setTimeout(() => process.exit(1), 1000) // it was one that does not end a process
}

module.exports = { become }
