'use strict'

// Failing functions for measuring the cost of errors, one per way in which V8 reports frames.

const FAIL = `const fail = (n) => {
  try { throw new Error('x' + n) } catch (error) { return error.stack.length }
}`

/**
 * Sources of functions that pass `fail` to their argument, in a chain of two timers.
 * @type {Record<string, string>}
 */
const kinds = {
  sloppy: `(function (use) {
    ${FAIL}
    setTimeout(function outer () { setTimeout(function inner () { use(fail) }, 2) }, 2)
  })`,
  strict: `(function (use) {
    'use strict'
    ${FAIL}
    setTimeout(() => setTimeout(() => use(fail), 2), 2)
  })`,
  async: `(function (use) {
    'use strict'
    ${FAIL}
    const pause = () => new Promise((resolve) => setTimeout(resolve, 2))
    ;(async () => { await pause(); await pause(); use(fail) })()
  })`
}

module.exports = { kinds }
