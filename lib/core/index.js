'use strict'

// The recorder: each resource and promise has a record of integers, with the chain that made it. Readers live
// in higher layers: they import from here and subscribe to events (on.js). Nothing here depends on them, nor
// on options other than filter, frames, budget and capture.

const { settings } = require('../settings')
const capture = require('../stacks/capture')
const allocationClock = require('./allocation-clock')
const { readClock } = require('./clock')
const { ATTENTION, LAST_LEFT, WATCHED, current, leaveAll } = require('./current')
const { countIterations } = require('./events')
const { first } = require('./faults')
const installer = require('./installer')
const kindTable = require('./kind-table')
const loopIterations = require('./loop-iterations')
const { callbackListeners, emit, listeners } = require('./on')
const orphans = require('./orphans')
const records = require('./records')
const runLog = require('./run-log')
const settlements = require('./settlements')
const terminableRuns = require('./terminable-runs')

first() // nothing is installed unless fault reporting works

/** Tracing has been on, so records may exist. */
let isInstalled = false
/** The addon counts the iterations of the event loop. */
let isCounting = false

/** Starts recording: tracing is enabled. */
function start () {
  selectEngine()
  readClock()
  kindTable.refill()
  installer.install()
  terminableRuns.enable()
}

/** Applies changed options while tracing is on. */
function change () {
  emit('changed')
  selectEngine()
  kindTable.refill()
}

/** Stops recording: tracing is disabled. */
function stop () {
  try {
    terminableRuns.disable()
    installer.uninstall()
    settlements.forget()
    records.endRequests()
    current[LAST_LEFT] = 0
    allocationClock.forget()
    leaveAll()
    orphans.disown()
    runLog.stop()
    callbackListeners.clear()
  } finally {
    stopCounting()
    emit('stopped')
  }
}

/** Selects the capture engine and the clocks that only the addon has. */
function selectEngine () {
  const before = capture.name
  capture.selectEngine(settings.options.capture)
  // Chain numbers belong to one engine. Clearing touches all pages, so it waits until records exist.
  if (capture.name !== before && isInstalled) records.clear()
  isInstalled = true
  const isNative = capture.name === 'native'
  allocationClock.useBinding(isNative ? capture.binding()?.markers : undefined)
  if (isNative === isCounting) return
  isCounting = isNative
  if (!isNative) loopIterations.stop()
  if (isNative && loopIterations.start()) countIterations(loopIterations.counters, true)
  else countIterations(new Uint32Array(2), false)
}

function stopCounting () {
  if (isCounting) loopIterations.stop()
  isCounting = false
  allocationClock.useBinding(undefined)
  countIterations(new Uint32Array(2), false)
}

/** Watches callbacks while anyone listens to them. */
function updateWatching () {
  if (listeners.callback.length === 0) current[ATTENTION] &= ~WATCHED
  else current[ATTENTION] |= WATCHED
}

/** Returns whether records and chains may exist. */
const hasRecorded = () => isInstalled

/** Drops all records and chains. */
function forget () {
  isInstalled = false
  records.clear()
  capture.reset(false)
}

module.exports = { change, forget, hasRecorded, start, stop, updateWatching }
