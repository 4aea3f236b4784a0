'use strict'

// The conductor of long runs, loaded with the first wish to see them: chooses the watchdog, and says what it found to listeners, to
// the log of spans, or else to stderr.

const { loadBinding } = require('../stacks/binding')
const { paint } = require('../format/paint')
const { formatBlocking } = require('../format/blocking')
const { brief, say } = require('../warnings')
const { createDetector } = require('./detector')
const { createInspectorWatchdog } = require('./inspector-watchdog')
const { createNativeWatchdog } = require('./native-watchdog')

/**
 * @typedef {import('./detector').BlockedEvent} BlockedEvent
 * @typedef {ReturnType<typeof createBlockedCallbacks>} BlockedCallbacks
 */

/**
 * @param {object} deps
 * @param {() => number} deps.now
 * @param {() => import('../context/context').Context | undefined} deps.current
 * @param {(read: () => string) => string} deps.withPlainFormat reads a `stack` with V8's plain format in force
 * @param {(context: import('../context/context').Context | undefined, stack: string) => import('./detector').Explained} deps.explain
 * @param {() => import('../options').Options} deps.options
 * @param {(code: string, sentence: string) => void} deps.warn
 * @param {Set<(event: BlockedEvent) => void>} deps.listeners of `blocked`
 * @param {(event: BlockedEvent, run: import('./detector').Run) => void} deps.log
 */
function createBlockedCallbacks ({ now, current, withPlainFormat, explain, options, warn, listeners, log }) {
  const blocked = createDetector({ now, current, withPlainFormat, explain, watchdog, report })

  function watchdog () {
    const doors = options().capture === 'js' ? undefined : loadBinding().binding?.watch
    return doors === undefined ? createInspectorWatchdog({ now, warn }) : createNativeWatchdog({ doors, now, warn })
  }

  /** @param {BlockedEvent} event @param {import('./detector').Run} run */
  function report (event, run) {
    log(event, run)
    if (listeners.size === 0) say(paint(`longstack: ${formatBlocking(event, run.span)}`))
    for (const listener of listeners) {
      try {
        listener(event)
      } catch (thrown) {
        warn('BLOCKED_LISTENER', `a listener of 'blocked' threw: ${brief(thrown)}`)
      }
    }
  }

  return {
    began: () => blocked.began,
    at: blocked.at,

    /** Other options are in force. @param {number | undefined} threshold ms @param {boolean} restless not every run is told */
    use (threshold, restless) {
      process.removeListener('exit', blocked.finish)
      blocked.use(threshold, restless)
      if (threshold !== undefined) process.prependListener('exit', blocked.finish) // what is found then is still to be written
    }
  }
}

module.exports = { createBlockedCallbacks }
