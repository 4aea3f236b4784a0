'use strict'

// Records spans of Node's requests, trace.span and blocking callbacks. Loaded when spans are first enabled.
// Everything except user functions runs guarded.

const process = require('node:process')
const { recorder: blockedRecorder } = require('../blocked/wanted')
const guard = require('../core/guard')
const { inOwnWork } = require('../core/current-step')
const { safely } = require('../core/faults')
const loopIterations = require('../core/loop-iterations')
const { on } = require('../core/on')
const stepSpans = require('./step-spans')
const { isAnyObject } = require('../objects')
const { atSuddenEnd, notAtSuddenEnd } = require('../record/ending')
const live = require('../record/live')
require('../record/traffic')
const layer = require('./layer')
const taking = require('../record/taking')
const texts = require('../record/texts')
const { noSpan } = require('./index')
const { allOpen } = require('./identities')
const { add: noteInterval } = require('./open-intervals')
const outputs = require('./outputs')
const rejections = require('./rejections')
const spans = require('./spans')
const { runSpan } = require('./user-span')

const SWEEP_MS = 1000

let isOn = false
let sweepAt = 0

blockedRecorder.record = (event, run) => {
  spans.addBlocking(event, run)
  if (!event.stillRunning) return
  handOn()
  outputs.writeNow()
}
on('iteration', (time) => {
  if (time < sweepAt) return
  sweepAt = time + SWEEP_MS
  guard.run(() => spans.sweep(time, false))
})
on('opened', ({ type }, resource) => {
  if (isOn && type === 'ZLIB') stepSpans.watchZlibWrites(resource)
})
on('intervalMade', (context, timer) => {
  if (isOn) noteInterval(context, timer)
})
on('rejected', (reason, { span }) => {
  if (span !== undefined && isAnyObject(reason)) rejections.note(reason, span)
})
texts.set({ drain: spans.drain, openSpans: allOpen })
on('escaped', (error, { span }) => {
  if (span !== undefined) spans.recordException(span, error)
})

/** @param {unknown} wanted outputs, as in the option `spans` */
function enable (wanted) {
  handOn()
  outputs.setOutputs(wanted)
  live.setLive(outputs.isHeard())
  layer.enable()
  if (isOn) return
  isOn = true
  process.on('exit', onExit)
  atSuddenEnd(suddenEnd)
}

function disable () {
  if (!isOn) return
  isOn = false
  spans.flush()
  live.setLive(false)
  outputs.flushRecords()
  outputs.setOutputs(undefined)
  layer.disable()
  stepSpans.unwatchZlibWrites()
  process.removeListener('exit', onExit)
  notAtSuddenEnd(suddenEnd)
}

function onExit () {
  safely(() => {
    loopIterations.hold() // the event loop has ended
    spans.flush()
    taking.finish()
    outputs.flushRecords()
    outputs.finish()
  })
}

/** The program may be at any point, so listeners are not called. */
function suddenEnd () {
  taking.takeWithin(true)
  outputs.flush()
}

/** Delivers ended spans to outputs and current listeners. */
function handOn () {
  guard.run(() => taking.takeWithin(true))
  outputs.flushRecords()
}

module.exports = {
  disable,
  enable,
  handOn,
  isEnabled: () => isOn,

  /**
   * Runs a function as a span, see trace.span.
   * @param {string} name
   * @param {Record<string, unknown>} attributes
   * @param {(span: import('./index').SpanHandle) => any} fn
   */
  span (name, attributes, fn) {
    return guard.inOwnWork || inOwnWork() ? fn(noSpan) : runSpan(name, attributes, fn)
  },

  /** Counts, taken after ended spans were delivered to listeners and outputs. */
  stats () {
    handOn()
    const { open, ended, dropped } = spans.stats()
    const { written, waiting, dropped: lost, outputs: list } = outputs.stats()
    return { open, ended, written, waiting: waiting + live.waiting(), dropped: dropped + lost, outputs: list }
  }
}
