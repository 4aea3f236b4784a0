'use strict'

// What tells lengths of time is tested with real ones, and a machine with much else to do can withhold the
// processor from whoever is measured, or from the one who measures, for as long as it likes. Such a test may
// try again; what is wrong fails each time.

const ATTEMPTS = 3

/**
 * Runs a test up to three times, until it passes; tells of what failed before.
 * @param {import('ava').ExecutionContext} t
 * @param {(t: import('ava').ExecutionContext, attempt: number) => Promise<void>} run with a context of its
 *   own, and the number from 1
 */
async function againIfStarved (t, run) {
  for (let i = 1; ; i++) {
    const attempt = await t.try(run, i)
    if (attempt.passed || i === ATTEMPTS) return attempt.commit()
    for (const { message, assertion, stack = '' } of attempt.errors) {
      const places = stack.split('\n').filter((line) => line.includes('.test.js:'))
      t.log([`attempt ${i} failed: ${message || assertion}`, ...places].join('\n'))
    }
    attempt.discard({ retainLogs: true })
  }
}

/**
 * test.serial() of such tests.
 * @param {import('ava').TestFn} test
 * @returns {(title: string, run: (t: import('ava').ExecutionContext, attempt: number) => Promise<void>) =>
 *   void}
 */
const patient = (test) => (title, run) => test.serial(title, (t) => againIfStarved(t, run))

module.exports = { againIfStarved, patient }
