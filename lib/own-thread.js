'use strict'

// Threads of longstack's own. The program does not see them: they keep no process alive, print nothing, and
// no event tells of them. Nothing that is meant for the program's threads reaches them: no preload, no
// profile, no limits.

const channels = require('node:diagnostics_channel')
const process = require('node:process')
const { Worker } = require('node:worker_threads')
const { attempt } = require('./files')

const MAX_YOUNG = 8 // MiB of new objects

/** Variables that have Node load, write, print or report something. */
const foreign = new Set([
  'NODE_CHANNEL_FD', 'NODE_DEBUG', 'NODE_DEBUG_NATIVE', 'NODE_OPTIONS', 'NODE_UNIQUE_ID', 'NODE_V8_COVERAGE',
  'WATCH_REPORT_DEPENDENCIES'
])

/**
 * Starts a thread. Called as longstack's own work (core/guard.js).
 * @param {string} file
 * @param {object} options
 * @param {string} options.name
 * @param {object} options.workerData
 * @param {readonly any[]} [options.transferList]
 * @param {number} options.heap MiB that it may take
 * @param {(error: unknown) => void} onEnd called when it has ended, with the error where one is the reason
 * @returns {import('node:worker_threads').Worker}
 * @throws where threads are forbidden, or there can be no more
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

/** The program's variables, without those that are not meant for this thread. */
function environment () {
  const isMeant = (/** @type {string} */ name) => !foreign.has(name) && !name.startsWith('LONGSTACK')
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => isMeant(name)))
}

/**
 * Makes a worker without telling the program. Node would emit `worker` on `process` in the next tick, and
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
