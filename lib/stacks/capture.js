'use strict'

// The one door to capture. An engine takes the present stack for a context cheaply and gives it as a Stack when
// asked; nobody else knows what it keeps in between.

const { createJsCapture } = require('./capture-js')

/**
 * @typedef {ReturnType<typeof createJsCapture>} Capture
 */

/**
 * Chooses the engine.
 * @param {Parameters<typeof createJsCapture>[0]} deps
 * @returns {Capture}
 */
function createCapture (deps) {
  return createJsCapture(deps)
}

/**
 * Why that engine is in force.
 * @param {'auto' | 'native' | 'js'} wanted
 */
function engineWhy (wanted) {
  return wanted === 'js' ? 'asked for' : 'this version has no native engine'
}

module.exports = { createCapture, engineWhy }
