'use strict'

// Worker threads of longstack's own. The program does not see them: they do not keep the process alive, print
// nothing, and are announced by no event. They inherit no preload, profile or limit meant for the program's
// threads.

const channels = require('node:diagnostics_channel')
const process = require('node:process')
const { Worker } = require('node:worker_threads')
const { attempt } = require('./files')

const MAX_YOUNG = 8 // MiB of new objects

/** Variables that make Node load, write, print or report something. */
const foreign = new Set([
  'NODE_CHANNEL_FD', 'NODE_DEBUG', 'NODE_DEBUG_NATIVE', 'NODE_OPTIONS', 'NODE_UNIQUE_ID', 'NODE_V8_COVERAGE',
  'WATCH_REPORT_DEPENDENCIES'
])

/**
 * Starts a thread. Callers run it as longstack's own work (core/guard.js).
 * @param {string} file
 * @param {object} options
 * @param {string} options.name
 * @param {object} options.workerData
 * @param {readonly any[]} [options.transferList]
 * @param {number} options.heap heap limit, MiB
 * @param {(error: unknown) => void} onEnd called when the thread has ended, with the error if one ended it
 * @returns {import('node:worker_threads').Worker}
 * @throws if threads are forbidden, or no more can be created
 */
function startThread (file, { name, workerData, transferList = [], heap }, onEnd) {
  const thread = unannounced(() => new Worker(file, {
    name: `longstack ${name}`,
    workerData,
    transferList: /** @type {any[]} */ (transferList),
    argv: [],
    execArgv: [],
    env: environment(),
    stdin: false,
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: heap, maxYoungGenerationSizeMb: MAX_YOUNG }
  }))
  thread.on('error', onEnd).on('exit', () => onEnd(undefined))
  thread.unref()
  return thread
}

/** Returns the program's variables, without those that must not reach this thread. */
function environment () {
  const isMeant = (/** @type {string} */ name) => !foreign.has(name) && !name.startsWith('LONGSTACK')
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => isMeant(name)))
}

/**
 * Creates a worker without notifying the program. Node would emit `worker` on `process` in the next tick, and
 * publish it on a channel.
 * @param {() => import('node:worker_threads').Worker} make
 */
function unannounced (make) {
  const channel = channels.channel('worker_threads')
  const nextTick = Object.getOwnPropertyDescriptor(process, 'nextTick')
  const value = (/** @type {any[]} */ ...args) => {
    if (args.length > 1) nextTick?.value(...args)
  }
  try {
    attempt(() => Object.defineProperty(channel, 'hasSubscribers', { value: false, configurable: true }))
    if (nextTick?.writable) attempt(() => Object.defineProperty(process, 'nextTick', { ...nextTick, value }))
    return make()
  } finally {
    attempt(() => delete (/** @type {any} */ (channel).hasSubscribers))
    if (nextTick?.writable) attempt(() => Object.defineProperty(process, 'nextTick', nextTick))
  }
}

module.exports = { startThread }
