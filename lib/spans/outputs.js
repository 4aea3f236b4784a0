'use strict'

// Where spans go: to the sinks that the option `spans` names, made again when that changes, to commands, and
// to the listeners of `span`.

const path = require('node:path')
const process = require('node:process')
const guard = require('../core/guard')
const { afterChange } = require('../listeners')
const { messageOf, warn } = require('../warnings')
const { commands, listeners } = require('./index')
const { isMainThread } = require('../passing/threads')
const texts = require('../record/texts')

const MAX_WAITING = 1000 // records, as long as the program lets a step end now and then

/** @typedef {(record: any) => void} SpanListener */

/** what the sinks were made for @type {unknown} */
let wanted
/** they were made in full: V8 may terminate the code that makes them */
let isSet = true
/** @type {ReturnType<typeof import('../sinks/sinks').createSinks> | undefined} */
let sinks
/** the same for outputs that a thread of longstack's own writes to
 * @type {InstanceType<typeof import('../record/apart').Apart> | undefined} */
let apart
/** records that are not handed on yet @type {unknown[]} */
let waiting = []
/** those that listened when the first of them came @type {SpanListener[]} */
let receivers = []

/** @param {unknown} next where spans go, undefined: only to listeners */
function setOutputs (next) {
  texts.keepAttributes(listeners.size > 0)
  if (next === wanted && isSet) return
  wanted = next
  isSet = false
  const outputs = next === undefined ? [] : require('../sinks/outputs').parseOutputs(next)
  const others = apartOf(outputs)
  const own = outputs.filter((output) => !others.includes(output))
  sinks?.close()
  sinks = own.length === 0 ? undefined : require('../sinks/sinks').createSinks(own, { warn })
  if (others.length === 0 || apart?.setOutputs(others) !== true) {
    apart?.close()
    apart = others.length === 0 ? undefined : new (require('../record/apart').Apart)(others)
  }
  isSet = true
}

/**
 * Returns outputs that a thread of longstack's own writes to. None in a thread of the program's: one that
 * ends takes those with it that it has started. None where there are several collectors, each of which would
 * hear of the connections of the others.
 * @param {import('../sinks/outputs').Output[]} outputs
 */
function apartOf (outputs) {
  if (!isMainThread() || outputs.length === 0) return []
  const { isApart, targetOf } = require('../sinks/outputs')
  const collectors = outputs.filter(({ to }) => targetOf(to).url !== undefined)
  return collectors.length > 1 ? [] : outputs.filter(isApart)
}

/** Counts, over all outputs. */
function stats () {
  const all = [sinks?.stats(), apart?.stats()].filter((one) => one !== undefined)
  const sum = (/** @type {'written' | 'waiting' | 'dropped'} */ key) => {
    return all.reduce((total, one) => total + one[key], 0)
  }
  const names = wanted === undefined ? [] : namesOf(wanted)
  const outputs = all.flatMap((one) => one.outputs).sort((a, b) => names.indexOf(a.to) - names.indexOf(b.to))
  const waiting = sum('waiting') + (apart?.waiting() ?? 0)
  return { written: sum('written'), waiting, dropped: sum('dropped'), outputs }
}

/** @param {unknown} option */
function namesOf (option) {
  const { parseOutputs, safe } = require('../sinks/outputs')
  return parseOutputs(option).map(({ to }) => safe(to))
}

/** @param {unknown} record for the listeners, which get it when `flushRecords` is called */
function notify (record) {
  if (waiting.length === 0) receivers = [...listeners]
  waiting.push(record)
}

/** Hands on records if many wait. */
function flushIfMany () {
  if (waiting.length >= MAX_WAITING) flushRecords()
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
 * Whether anybody takes a span that ends; else its figures need not be made.
 * @param {import('../sinks/sinks').Candidate} span
 */
function isWanted (span) {
  return texts.isForAll() || listeners.size > 0 || sinks?.wants(span) === true || apart?.wants(span) === true
}

/**
 * Hands a span that has ended to all outputs, or a record that is no span of the program's.
 * @param {import('../sinks/sinks').EndedSpan & { spanId?: string, with?: (attributes: any) => any }} span
 */
function tell (span) {
  sinks?.write(span)
  if (listeners.size === 0) return
  const attributes = span.spanId === undefined ? undefined : texts.takeAttributes(span.spanId)
  notify(attributes === undefined ? span.record() : span.with?.(attributes).record())
}

/**
 * Adds a record that is no span of the program's.
 * @param {import('../encoding/span-form').SpanRecord} record
 * @param {boolean} [isWanted] not only by commands
 */
function addRecord (record, isWanted = true) {
  if (isWanted) return texts.addRecord(record)
  for (const command of commands) command.addRecord(record)
}

module.exports = {
  addRecord,

  /** The program ends: writes the rest, in bounded time. */
  finish () {
    sinks?.flush()
    apart?.finish()
  },

  /** Writes what has come: a signal may end the program now. */
  flush () {
    sinks?.flush()
    apart?.flush()
  },

  flushIfMany,
  flushRecords,
  isWanted,

  /** Whether spans are made in this thread. */
  isHeard: () => sinks !== undefined || listeners.size > 0,

  setOutputs,
  stats,
  spanResource,
  tell,

  /** Has what there is written, while a callback runs on. */
  writeNow () {
    sinks?.flush(true)
    apart?.writeNow()
  }
}
