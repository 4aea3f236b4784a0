'use strict'

// The option `record`. The writer is loaded on first use.

const process = require('node:process')
const { safely } = require('../core/faults')
const guard = require('../core/guard')
const loopIterations = require('../core/loop-iterations')
const { settings } = require('../settings')

/** @type {InstanceType<typeof import('./writer').Recording> | undefined} */
let recording
let isAwaitingExit = false

/** @returns {string | undefined} the file to record to now */
const wanted = () => settings.enabled ? settings.options.record : undefined

/** Starts a recording before its spans are created (spans/index.js), or ends it after they are complete. */
function applyRecord () {
  const file = wanted()
  if (file === recording?.option) return
  guard.run(() => {
    end()
    if (file !== undefined) begin(file)
  })
}

/** @param {string} file */
function begin (file) {
  recording = new (require('./writer').Recording)(file)
}

function end () {
  if (isAwaitingExit) process.removeListener('exit', finish)
  isAwaitingExit = false
  recording?.close()
  recording = undefined
}

/** Records the end of the process, after the listener that ends open spans. */
function awaitExit () {
  if (recording === undefined || isAwaitingExit) return
  isAwaitingExit = true
  process.on('exit', finish)
}

function finish () {
  safely(() => {
    loopIterations.hold() // the loop has ended
    taking().finish()
    recording?.flush()
  })
}

const taking = () => require('./taking')

module.exports = {
  applyRecord,
  awaitExit,
  stats: () => recording?.stats()
}
