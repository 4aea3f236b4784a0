'use strict'

// Where spans go, and when: to the sinks that the option `spans` names, made again when that changes, and to
// the listeners of `span`. What one iteration of the event loop brings is handed on right before it polls
// next, while its iterations are counted.

const path = require('node:path')
const process = require('node:process')
const guard = require('../core/guard')
const loopIterations = require('../core/loop-iterations')
const { afterChange } = require('../listeners')
const { messageOf, warn } = require('../warnings')
const { listeners, taps } = require('./index')
const { isMainThread } = require('../passing/threads')

const MAX_WAITING = 1000 // records that wait for the end of an iteration

/** @typedef {(record: any) => void} SpanListener */

/** what the sinks were made for @type {unknown} */
let wanted
/** @type {ReturnType<typeof import('../sinks/sinks').createSinks> | undefined} */
let sinks
/** records that are not handed on yet @type {unknown[]} */
let waiting = []
/** those that listened when the first of them came @type {SpanListener[]} */
let receivers = []

/** @param {unknown} next where spans go, undefined: only to listeners */
function setOutputs (next) {
  if (next === wanted) return
  sinks?.close()
  sinks = undefined
  wanted = next
  if (next === undefined) return
  const { parseOutputs } = require('../sinks/outputs')
  const { createSinks } = require('../sinks/sinks')
  sinks = createSinks(parseOutputs(next), { warn })
}

/** @param {unknown} record for the listeners @param {boolean} [atOnce] the loop may not poll for long */
function notify (record, atOnce = false) {
  const isScheduled = loopIterations.batching()
  if (waiting.length === 0) {
    receivers = [...listeners]
    if (isScheduled) loopIterations.schedule(flushRecords)
  }
  waiting.push(record)
  if (!isScheduled || atOnce || waiting.length >= MAX_WAITING) flushRecords()
}

/** Hands on all records that wait. What listeners do makes no spans, now or later. */
function flushRecords () {
  if (waiting.length > 0) afterChange(() => guard.run(deliver))
}

/** Where the stack is too full to come here, the records go on waiting. */
function deliver () {
  const records = waiting
  const present = receivers
  waiting = []
  for (const record of records) listeners.emit(record, warnOf, present)
}

/** @param {unknown} thrown */
function warnOf (thrown) {
  warn('SPAN', `a listener of 'span' threw: ${messageOf(thrown)}`)
}

/**
 * of spans, in OpenTelemetry's sense: the service, process and thread that they are of
 * @type {Record<string, unknown> | undefined}
 */
let resource

/** @returns {Record<string, unknown>} the same object each time */
function spanResource () {
  resource ??= {
    'service.name': process.env.OTEL_SERVICE_NAME || packageName() || 'node',
    'process.pid': process.pid,
    ...(isMainThread() ? {} : { 'longstack.thread': require('node:worker_threads').threadId })
  }
  return resource
}

/** Returns the name in the package.json nearest to the program. */
function packageName () {
  const fs = require('node:fs')
  let directory = process.argv[1] === undefined ? process.cwd() : path.dirname(process.argv[1])
  for (;;) {
    try {
      const { name } = JSON.parse(fs.readFileSync(path.join(directory, 'package.json'), 'utf8'))
      return typeof name === 'string' ? name : undefined
    } catch {}
    const parent = path.dirname(directory)
    if (parent === directory) return undefined
    directory = parent
  }
}

/**
 * Writes to what the option names, and to commands.
 * @param {import('../sinks/sinks').EndedSpan} span
 * @param {boolean} [isWanted] by the option
 */
function write (span, isWanted = true) {
  if (isWanted) sinks?.write(span)
  for (const tap of taps) tap.write(span)
}

module.exports = {
  areWatched: () => listeners.size > 0 || taps.size > 0,
  flushRecords,
  hasListeners: () => listeners.size > 0,
  notify,
  setOutputs,
  sinks: () => sinks,
  spanResource,
  write
}
