'use strict'

// Chooses the engine of capture, and with it the clocks that only the addon has.

const records = require('../context/records')
const loopIterations = require('../hooks/loop-iterations')

/** @param {import('./wiring').Wiring} wiring */
function createEngine (wiring) {
  const { asyncLayer, capture, allocationClock, settings } = wiring
  /** tracing was on: there may be records */
  let isInstalled = false
  /** the addon counts the iterations of the event loop */
  let isCounting = false
  /** the option in force @type {string | undefined} */
  let applied

  return {
    /** There may be records, and chains. */
    hasRecorded: () => isInstalled,

    /** Drops them. */
    forget () {
      isInstalled = false
      records.clear()
      capture.reset(false)
    },

    apply () {
      const { capture: option } = settings.options
      if (applied !== option) wiring.profiles?.finish() // numbers of chains are those of one engine
      applied = option
      const before = capture.name
      capture.selectEngine(option)
      // Numbers of chains are those of one engine. Clearing touches all pages: not before there are any.
      if (capture.name !== before && isInstalled) records.clear()
      isInstalled = true
      const isNative = capture.name === 'native'
      allocationClock.useBinding(isNative ? capture.binding()?.markers : undefined)
      if (isNative === isCounting) return
      isCounting = isNative
      if (!isNative) loopIterations.stop()
      if (isNative && loopIterations.start()) asyncLayer.countIterations(loopIterations.counters, true)
      else asyncLayer.countIterations(new Uint32Array(2), false)
    },

    stop () {
      if (isCounting) loopIterations.stop()
      isCounting = false
      allocationClock.useBinding(undefined)
      asyncLayer.countIterations(new Uint32Array(2), false)
    }
  }
}

module.exports = { createEngine }
