'use strict'

// Spans of this thread: who listens to them, and what records them, loaded when somebody first wants them.

const guard = require('../core/guard')
const { Listeners } = require('../listeners')
const { settings } = require('../settings')

/**
 * @typedef {object} SpanHandle what the function of trace.span gets
 * @property {string} traceId 32 hex digits; empty where spans are off
 * @property {string} spanId 16 hex digits; empty where spans are off
 * @property {string} traceparent the header that makes another service's spans children of this one; empty
 *   where spans are off
 * @property {(attributes: Record<string, unknown>) => SpanHandle} set adds attributes; any JSON values
 * @property {(error: unknown) => SpanHandle} fail the span ends as failed, with this error
 */

/** of trace.on('span') @type {Listeners<any>} */
const listeners = new Listeners()
/**
 * those that ask this process for its log: beside what the options name, which is not touched
 * @type {Set<{ addRecord: (record: object) => void }>}
 */
const commands = new Set()
/** @type {typeof import('./recorder') | undefined} */
let recorder

/** The handle where spans are off. @type {SpanHandle} */
const noSpan = Object.freeze({
  traceId: '',
  spanId: '',
  traceparent: '',
  set: () => noSpan,
  fail: () => noSpan
})

/** Makes spans where they go somewhere. */
function applySpans () {
  const { enabled, options: { spans, blocked, record } } = settings
  const isHeard = spans !== undefined || blocked !== undefined || record !== undefined ||
    listeners.size > 0 || commands.size > 0
  guard.run(() => {
    if (!enabled || !isHeard) return recorder?.disable()
    recorder ??= require('./recorder')
    recorder.enable(spans)
  })
}

module.exports = { applySpans, commands, listeners, noSpan, recorder: () => recorder }
