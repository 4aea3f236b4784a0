'use strict'

// Whether another thread of the process has given a warning: workers come and go by the thousand.

const { getEnvironmentData, isMainThread, setEnvironmentData } = require('node:worker_threads')

const KEY = 'longstack.blocked'

/** Lets the workers that are made from now on know of each other's warnings. */
function shareWithWorkers () {
  if (isMainThread && getEnvironmentData(KEY) === undefined) {
    setEnvironmentData(KEY, new Int32Array(new SharedArrayBuffer(4)))
  }
}

/** Returns whether no other thread of the process has asked this yet. */
function isFirstWarning () {
  const flag = getEnvironmentData(KEY)
  return !(flag instanceof Int32Array) || Atomics.exchange(flag, 0, 1) === 0
}

module.exports = { isFirstWarning, shareWithWorkers }
