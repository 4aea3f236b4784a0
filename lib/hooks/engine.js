'use strict'

// Chooses the engine of capture, and with it the clocks that only the addon has.

const records = require('../context/records')
const { settings } = require('../settings')
const capture = require('../stacks/capture')
const allocationClock = require('./allocation-clock')
const { countIterations } = require('./events')
const loopIterations = require('./loop-iterations')

/** tracing was on: there may be records */
let isInstalled = false
/** the addon counts the iterations of the event loop */
let isCounting = false

/** Puts the option in force. */
function applyEngine () {
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

/** Tracing is disabled. */
function stopEngine () {
  if (isCounting) loopIterations.stop()
  isCounting = false
  allocationClock.useBinding(undefined)
  countIterations(new Uint32Array(2), false)
}

/** There may be records, and chains. */
const hasRecorded = () => isInstalled

/** Drops them. */
function forget () {
  isInstalled = false
  records.clear()
  capture.reset(false)
}

module.exports = { applyEngine, forget, hasRecorded, stopEngine }
