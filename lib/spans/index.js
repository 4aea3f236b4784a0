'use strict'

// Spans of this thread: who listens to them, and what records them, loaded when somebody first wants them.

const guard = require('../context/guard')
const { Listeners } = require('../listeners')
const { settings } = require('../settings')

/** of trace.on('span') @type {Listeners<any>} */
const listeners = new Listeners()
/** @type {ReturnType<typeof import('./recorder').createSpanRecorder> | undefined} */
let recorder

/** Makes spans where they go somewhere. */
function applySpans () {
  const { enabled, options: { spans, blocked } } = settings
  const isHeard = spans !== undefined || blocked !== undefined || listeners.size > 0
  guard.run(() => {
    if (!enabled || !isHeard) return recorder?.disable()
    recorder ??= require('./connect').connectRecorder(listeners)
    recorder.enable(spans)
  })
}

module.exports = { applySpans, listeners, recorder: () => recorder }
