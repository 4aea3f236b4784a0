'use strict'

// The error of trace.assertNoLeaks and of the plug-ins for test runners.

const { listText } = require('../format/handles')

/** @typedef {import('./why').Why} Why */

const CODE = 'ERR_LONGSTACK_LEAK'

/**
 * Returns the message of trace.assertNoLeaks.
 * @param {Why[]} leaks
 */
function leakMessage (leaks) {
  const subject = leaks.length === 1 ? '1 handle' : `${leaks.length} handles`
  const verb = leaks.length === 1 ? 'is' : 'are'
  return `${subject} opened since the snapshot ${verb} still open:\n\n${listText(leaks)}`
}

/**
 * Creates an error that reports leaks.
 * @param {string} message
 * @param {Why[]} leaks the property `handles`, which is not printed with the error
 * @param {Function} above its frames start below this function
 * @returns {Error & { code: string, handles: Why[] }}
 */
function createLeakError (message, leaks, above) {
  const error = Object.assign(new Error(message), { code: CODE })
  Error.captureStackTrace(error, above)
  Object.defineProperty(error, 'handles', { value: leaks, enumerable: false })
  return /** @type {any} */ (error)
}

module.exports = { createLeakError, leakMessage }
