'use strict'

// longstack run: node -r longstack/register, with a flag for every option. The program replaces this process
// if Node has process.execve (22.15 and later, not on Windows), so signals, standard streams, process id and
// exit code are its own. Otherwise it is a child process, and these are forwarded.
// longstack doctor: prints trace.doctor() of a process that runs nothing else.

const { spawn } = require('node:child_process')
const { isatty } = require('node:tty')
const { DEFAULTS } = require('./commands')
const { integer } = require('./flags')
const { asJson, print } = require('./terminal')

/** Signals that a program can catch. @type {NodeJS.Signals[]} */
const forwarded = [
  'SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGCONT', 'SIGALRM', 'SIGABRT', 'SIGWINCH',
  'SIGBREAK' // on Windows
]

/** Signals that a terminal sends to all its processes, including the child. Windows has no others. */
const sentByTerminal = ['SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGWINCH', 'SIGCONT', 'SIGBREAK']

/** @type {import('./commands').Main} operands: script and its arguments */
async function run (values, operands) {
  const { variablesOf, wordsOf } = require('./env')
  const env = { ...process.env, ...variablesOf(values) }
  const preloads = ['-r', require.resolve('../register')]
  const watches = { failMs: quietMs(values, 'fail-on-leak'), reportMs: quietMs(values, 'why-still-running') }
  if (watches.failMs !== undefined || watches.reportMs !== undefined) {
    preloads.push('-r', require.resolve('../leak-watch'))
    Object.assign(env, require('../leak-watch').leakWatchEnvironment(watches))
  }
  const nodeOptions = wordsOf(values['node-options'] ?? '', '--node-options').map(({ value }) => value)
  const separator = operands[0].startsWith('-') ? ['--'] : []
  const args = [...nodeOptions, ...preloads, ...separator, ...operands]
  const { execve } = /** @type {any} */ (process)
  // execve would close the channel of a forked process.
  const canReplace = execve !== undefined && process.send === undefined && process.platform !== 'win32'
  if (canReplace) execve.call(process, process.execPath, [process.argv0, ...args], env)
  return await runChild(args, env)
}

/**
 * @param {Record<string, any>} values
 * @param {string} flag
 * @returns {number | undefined} undefined if the flag is not set
 */
function quietMs (values, flag) {
  const value = values[flag]
  return value === undefined || value === true ? value && DEFAULTS.quietMs : integer(flag, value, 1)
}

/** @type {import('./commands').Main} */
async function doctor ({ json }) {
  const trace = require('../../index').enable()
  const { text, ...data } = trace.doctor()
  trace.disable()
  await print(json ? asJson(data) : `${text.trimEnd()}\n`)
}

/**
 * Starts another Node as a child, with this process's standard streams.
 * @param {string[]} args for node
 * @param {NodeJS.ProcessEnv} env
 * @param {() => Promise<void>} [ended] called when the child has ended, before this process ends the same way
 * @returns {Promise<number | undefined>} the exit code
 */
function runChild (args, env, ended = async () => {}) {
  const isForked = process.send !== undefined
  /** @type {import('node:child_process').StdioOptions} */
  const stdio = isForked ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit'
  const child = spawn(process.execPath, args, { env, argv0: process.argv0, stdio })
  if (isForked) connect(child)
  // A Windows console sends them regardless of the standard streams, and kill() there ends the child at once
  const inTerminal = process.platform === 'win32' || [0, 1, 2].some((fd) => isatty(fd))
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
  setTimeout(() => process.exit(1), 1000) // the signal did not end the process
}

module.exports = { doctor, run, runChild }
