'use strict'

// Second preload of longstack profile app.js: records a profile from the program's start, and writes it to a
// file when the time is over or the program ends in any way.

const fs = require('node:fs')
const guard = require('../core/guard')
const { printLine } = require('../warnings')

const VARIABLE = '_LONGSTACK_PROFILE'
const MAX_SECONDS = 1800
/** @type {NodeJS.Signals[]} */
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']

/**
 * @typedef {object} ProfileRequest
 * @property {string} file that the profile is written to, as JSON
 * @property {number} [seconds] default: until the program ends
 * @property {boolean} samples
 */

/**
 * @param {ProfileRequest} request
 * @returns {Record<string, string>} environment that makes the preload record a profile
 */
function profileEnvironment (request) {
  return { [VARIABLE]: JSON.stringify(request) }
}

/** @param {ProfileRequest} request */
function record ({ file, seconds = MAX_SECONDS, samples }) {
  const { tracer, trace } = require('../shared')
  let isWritten = false

  /** @param {import('./profile').Profile | undefined} profile */
  function write (profile) {
    if (profile === undefined || isWritten) return
    isWritten = true
    fs.writeFileSync(`${file}.part`, JSON.stringify(profile), { mode: 0o600 })
    fs.renameSync(`${file}.part`, file) // readers find only a complete file
  }

  const finish = () => guard.run(() => write(tracer.finishProfile()))

  guard.run(() => {
    trace.profile({ seconds, samples }).then((profile) => guard.run(() => {
      write(profile)
      forgetSignals()
      process.off('exit', finish)
    })).catch((error) => printLine(`longstack: ${error.message}`))
    process.on('exit', finish)
    for (const signal of signals) process.on(signal, end)
  })

  function forgetSignals () {
    for (const signal of signals) process.off(signal, end)
  }

  /**
   * Ends the process with the signal, as without this handler; a program that handles the signal goes on.
   * @param {NodeJS.Signals} signal
   */
  function end (signal) {
    if (process.listenerCount(signal) > 1) return
    finish()
    forgetSignals()
    // On Windows kill() knows few names, and ends a process with each of them
    process.kill(process.pid, process.platform === 'win32' ? 'SIGTERM' : signal)
  }
}

const value = process.env[VARIABLE]
if (value !== undefined) {
  delete process.env[VARIABLE]
  record(JSON.parse(value))
}

module.exports = { profileEnvironment }
