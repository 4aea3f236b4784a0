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

/** @returns {string | undefined} the file that is wanted now */
const wanted = () => settings.enabled ? settings.options.record : undefined

/** Begins a recording before its spans are made (spans/index.js), or ends it after they are complete. */
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

/** Has the end of the process written; behind what ends open spans then. */
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
