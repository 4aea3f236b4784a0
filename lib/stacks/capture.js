'use strict'

// The one door to capture. An engine takes the present stack for a context cheaply and gives it as a Stack when
// asked; nobody else knows what it keeps in between.

const { createJsCapture } = require('./capture-js')

/**
 * @typedef {ReturnType<typeof createJsCapture>} Capture
 */

/**
 * Chooses the engine.
 * @param {'auto' | 'native' | 'js'} wanted
 * @param {Parameters<typeof createJsCapture>[0]} deps
 * @returns {{ capture: Capture, why: string }}
 */
function createCapture (wanted, deps) {
  const capture = createJsCapture(deps)
  const why = wanted === 'js' ? 'asked for' : 'this version has no native engine'
  return { capture, why }
}

module.exports = { createCapture }
