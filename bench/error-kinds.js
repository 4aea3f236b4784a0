'use strict'

// The functions that fail when the cost of errors is measured: V8 reports their frames differently.

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
