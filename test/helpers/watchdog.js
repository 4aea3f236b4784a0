'use strict'

// Tests of long runs, serially: a process that waits for a processor is slow in everything.

const { loadBinding } = require('../../lib/stacks/binding')
const { skip } = require('./skip')
const { againIfStarved } = require('./starved')

/**
 * @param {import('ava').TestFn} test
 * @param {string} title
 * @param {(t: import('ava').ExecutionContext) => Promise<void>} run
 */
function watched (test, title, run) {
  const why = loadBinding().failure?.code
  test.serial(title, async (t) => {
    if (why !== undefined) return skip(t, `no native engine: ${why}`)
    await againIfStarved(t, run)
  })
}

module.exports = { watched }
