'use strict'

// Destinations of spans: the sinks named in the option `spans` (remade when it changes), commands, and
// listeners of `span`.

const path = require('node:path')
const process = require('node:process')
const guard = require('../core/guard')
const { afterChange } = require('../listeners')
const { messageOf, warn } = require('../warnings')
const { commands, listeners } = require('./index')
const { isMainThread } = require('../passing/threads')
const texts = require('../record/texts')
const { settings } = require('../settings')

const MAX_WAITING = 1000 // records, provided that the program's steps end now and then

/** @typedef {(record: any) => void} SpanListener */

/** value of `spans` that the sinks were made for @type {unknown} */
let wanted
/** false if V8 terminated the code that makes the sinks */
let isSet = true
/** @type {ReturnType<typeof import('../sinks/sinks').createSinks> | undefined} */
let sinks
/** the same for outputs that longstack's own thread writes
 * @type {InstanceType<typeof import('../record/apart').Apart> | undefined} */
let apart
/** records not yet delivered @type {unknown[]} */
let waiting = []
/** listeners at the time of the first of these records @type {SpanListener[]} */
let receivers = []

/** @param {unknown} next option `spans`; undefined: only listeners */
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
 * Returns the outputs that longstack's own thread writes. Returns none in a worker of the program: its end
 * would end the threads it started. Returns none if there are several collectors, since each would get spans
 * of the connections to the others.
 * @param {import('../sinks/outputs').Output[]} outputs
 */
function apartOf (outputs) {
  if (!isMainThread() || outputs.length === 0) return []
  const { isApart, targetOf } = require('../sinks/outputs')
  const collectors = outputs.filter(({ to }) => targetOf(to).url !== undefined)
  return collectors.length > 1 ? [] : outputs.filter(isApart)
}

/** Counts over all outputs. */
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

/** @param {unknown} record for listeners, delivered by `flushRecords` */
function notify (record) {
  if (waiting.length === 0) receivers = [...listeners]
  waiting.push(record)
}

/** Delivers records if many are waiting. */
function flushIfMany () {
  if (waiting.length >= MAX_WAITING) flushRecords()
}

/** Delivers all waiting records. Nothing that listeners do makes spans, now or later. */
function flushRecords () {
  if (waiting.length > 0) afterChange(() => guard.run(deliver))
}

/** Delivers the records. If the stack is too full for this call, records keep waiting. */
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
 * OpenTelemetry resource of the spans: service, process and thread
 * @type {Record<string, unknown> | undefined}
 */
let resource

/** @returns {Record<string, unknown>} the same object each time, unless the option `blocked` changes */
function spanResource () {
  const { blocked } = settings.options
  if (resource !== undefined && resource['longstack.blocked'] === blocked) return resource
  resource = {
    'service.name': process.env.OTEL_SERVICE_NAME || packageName() || 'node',
    'process.pid': process.pid,
    ...(isMainThread() ? {} : { 'longstack.thread': require('node:worker_threads').threadId }),
    ...(blocked === undefined ? {} : { 'longstack.blocked': blocked })
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
 * Whether any output or listener takes an ended span; if none does, its figures are not computed.
 * @param {import('../sinks/sinks').Candidate} span
 */
function isWanted (span) {
  return texts.isForAll() || listeners.size > 0 || sinks?.wants(span) === true || apart?.wants(span) === true
}

/**
 * Writes an ended span, or a record that is not a span of the program, to all outputs and listeners.
 * @param {import('../sinks/sinks').EndedSpan & { spanId?: string, with?: (attributes: any) => any }} span
 */
function tell (span) {
  sinks?.write(span)
  if (listeners.size === 0) return
  const attributes = span.spanId === undefined ? undefined : texts.takeAttributes(span.spanId)
  notify(attributes === undefined ? span.record() : span.with?.(attributes).record())
}

/**
 * Adds a record that is not a span of the program.
 * @param {import('../encoding/span-form').SpanRecord} record
 * @param {boolean} [isWanted] false: only commands get it
 */
function addRecord (record, isWanted = true) {
  if (isWanted) return texts.addRecord(record)
  for (const command of commands) command.addRecord(record)
}

module.exports = {
  addRecord,

  /** Writes the rest at the end of the program, in bounded time. */
  finish () {
    sinks?.flush()
    apart?.finish()
  },

  /** Writes pending spans, since a signal may be about to end the program. */
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

  /** Writes pending spans while a callback is still running. */
  writeNow () {
    sinks?.flush(true)
    apart?.writeNow()
  }
}
