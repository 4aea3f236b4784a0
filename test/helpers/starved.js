'use strict'

// Reports of durations are tested with real time, and a busy machine can withhold the processor from the
// measured program, or from the test, for any length of time. Such a test may retry; a real fault fails each
// time.

const ATTEMPTS = 3

/**
 * Runs a test up to three times until it passes; logs earlier failures.
 * @param {import('ava').ExecutionContext} t
 * @param {(t: import('ava').ExecutionContext, attempt: number) => Promise<void>} run receives its own
 *   context, and the attempt's number from 1
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
 * test.serial() for such tests.
 * @param {import('ava').TestFn} test
 * @returns {(title: string, run: (t: import('ava').ExecutionContext, attempt: number) => Promise<void>) =>
 *   void}
 */
const patient = (test) => (title, run) => test.serial(title, (t) => againIfStarved(t, run))

module.exports = { againIfStarved, patient }
