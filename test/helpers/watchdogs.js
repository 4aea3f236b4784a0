'use strict'

// Tests of long runs go over both watchdogs: the native engine's thread, and the worker with an inspector.
// One after the other: a process that waits for a processor is long in all it does.

const { loadBinding } = require('../../lib/stacks/binding')
const { skip } = require('./skip')
const { againIfStarved } = require('./starved')

/**
 * @param {import('ava').TestFn} test
 * @param {string} title
 * @param {(t: import('ava').ExecutionContext, capture: 'native' | 'js') => Promise<void>} run
 */
function overBoth (test, title, run) {
  const why = loadBinding().failure?.code
  for (const capture of /** @type {const} */ (['native', 'js'])) {
    test.serial(`${title} (${capture})`, async (t) => {
      if (capture === 'native' && why !== undefined) {
        return skip(t, `no native engine: ${why}`)
      }
      await againIfStarved(t, (t) => run(t, capture))
    })
  }
}

module.exports = { overBoth }
