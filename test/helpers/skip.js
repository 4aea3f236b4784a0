'use strict'

const { strict } = require('./installed')

/**
 * Skips a test because this machine lacks a requirement. Prints the reason. Fails in CI, which has all
 * requirements.
 * @param {import('ava').ExecutionContext<any>} t
 * @param {string} reason
 */
function skip (t, reason) {
  t.log(`skipped: ${reason}`)
  t.false(strict, `skipped in CI: ${reason}`)
}

module.exports = { skip }
