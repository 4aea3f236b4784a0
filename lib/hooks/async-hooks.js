'use strict'

// Enables and disables the hooks. What serves as a hook: installer.js.

const { readClock } = require('../context/clock')
const records = require('../context/records')
const { ATTENTION, LAST_LEFT, WATCHED, current, leaveAll } = require('../context/current')
const capture = require('../stacks/capture')
const allocationClock = require('./allocation-clock')
const installer = require('./installer')
const kindTable = require('./kind-table')
const { callbackListeners, listeners } = require('./on')
const orphans = require('./orphans')
const settlements = require('./settlements')
const terminableRuns = require('./terminable-runs')

function enable () {
  readClock(capture.clock)
  kindTable.refill()
  installer.install()
  terminableRuns.enable()
}

function disable () {
  terminableRuns.disable()
  installer.uninstall()
  settlements.forget()
  records.endRequests()
  current[LAST_LEFT] = 0
  allocationClock.forget()
  leaveAll()
  orphans.disown()
  callbackListeners.clear()
}

/** Begins or ends to watch callbacks, as somebody listens to them. */
function updateWatching () {
  if (listeners.callback.length === 0) current[ATTENTION] &= ~WATCHED
  else current[ATTENTION] |= WATCHED
}

module.exports = { disable, enable, updateWatching }
