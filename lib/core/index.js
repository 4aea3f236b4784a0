'use strict'

// Records what happens: each resource and promise has a record of integers, with the chain that made it. What
// reads records and chains stands above, and requires what it needs of this directory; what it wants to hear
// it registers for (on.js). Nothing here knows of it, nor of options other than filter, frames and budget.

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

first() // what reports faults works, or nothing is installed

/** tracing was on: there may be records */
let isInstalled = false
/** the addon counts the iterations of the event loop */
let isCounting = false

/** Tracing is enabled. */
function start () {
  selectEngine()
  readClock()
  kindTable.refill()
  installer.install()
  terminableRuns.enable()
}

/** Puts options in force while tracing is on. */
function change () {
  emit('changed')
  selectEngine()
  kindTable.refill()
}

/** Tracing is disabled. */
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

/** Chooses the engine of capture, and with it the clocks that only the addon has. */
function selectEngine () {
  const before = capture.name
  capture.selectEngine(settings.options.capture)
  // Numbers of chains are those of one engine. Clearing touches all pages: not before there are any.
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

/** Begins or ends to watch callbacks, as somebody listens to them. */
function updateWatching () {
  if (listeners.callback.length === 0) current[ATTENTION] &= ~WATCHED
  else current[ATTENTION] |= WATCHED
}

/** There may be records, and chains. */
const hasRecorded = () => isInstalled

/** Drops them. */
function forget () {
  isInstalled = false
  records.clear()
  capture.reset(false)
}

module.exports = { change, forget, hasRecorded, start, stop, updateWatching }
