'use strict'

// How much the main thread has worked, for a watchdog that is late: a stopped process does not, nor does a sleeping machine.

const fs = require('node:fs')

const FILE = '/proc/self/schedstat' // of the main thread: ns on a processor, ns in the queue for one

/** @returns {number} ms that the main thread has been on a processor, or would have liked to be; where nobody tells, ms of the process */
function used () {
  try {
    const [ran, waited] = fs.readFileSync(FILE, 'latin1').split(' ')
    if (Number(ran) > 0) return (Number(ran) + Number(waited)) / 1e6
  } catch {}
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e3
}

module.exports = { used }
