'use strict'

const { loadBinding } = require('../stacks/binding')

/**
 * Waits until another thread changes a word. With the addon, this works even on top of the program's code,
 * which may itself be in Atomics.wait (native/binding.cc): a signal or a blocked event loop can run longstack
 * there.
 * @param {Int32Array} words shared
 * @param {number} index
 * @param {number} value
 * @param {number} ms at most
 */
function pauseWhile (words, index, value, ms) {
  const pause = /** @type {any} */ (loadBinding().binding)?.pause
  if (pause === undefined) Atomics.wait(words, index, value, ms)
  else pause(words, index, value, ms)
}

module.exports = { pauseWhile }
