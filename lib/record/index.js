'use strict'

// The options `record` and `box`. Their modules are loaded on first use.

const process = require('node:process')
const { safely } = require('../core/faults')
const guard = require('../core/guard')
const loopIterations = require('../core/loop-iterations')
const { settings } = require('../settings')

/** @typedef {import('./box').Box} Box */

/** @type {InstanceType<typeof import('./writer').Recording> | undefined} */
let recording
/** @type {Box | undefined} */
let box
/** the option for which there is a box, or could not be one @type {string | undefined} */
let boxOption
let isAwaitingExit = false

/** Applies both options before spans are created (spans/index.js), or after they are complete. */
function applyRecord () {
  const { enabled, options } = settings
  const wanted = enabled ? options : { record: undefined, box: undefined }
  if (wanted.record === recording?.option && wanted.box === boxOption) return
  guard.run(() => {
    stopAwaitingExit()
    if (wanted.box !== boxOption) applyBox(wanted.box)
    if (wanted.record !== recording?.option) applyFile(wanted.record)
  })
}

/** @param {string | undefined} option */
function applyBox (option) {
  const before = box
  box = undefined
  boxOption = option
  before?.close()
  if (option !== undefined) box = require('./box').openBox(option)
}

/** @param {string | undefined} file */
function applyFile (file) {
  recording?.close()
  recording = file === undefined ? undefined : new (require('./writer').Recording)(file)
}

function stopAwaitingExit () {
  if (isAwaitingExit) process.removeListener('exit', finish)
  isAwaitingExit = false
}

/** Records the end of the process, after the listener that ends open spans. */
function awaitExit () {
  if ((recording === undefined && box === undefined) || isAwaitingExit) return
  isAwaitingExit = true
  process.on('exit', finish)
}

function finish () {
  safely(() => {
    loopIterations.hold() // the loop has ended
    try {
      require('./taking').finish()
      recording?.flush()
    } finally {
      box?.close()
    }
  })
}

module.exports = {
  applyRecord,
  awaitExit,
  stats: () => recording?.stats(),
  boxStats: () => box?.stats()
}
