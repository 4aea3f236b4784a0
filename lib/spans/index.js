'use strict'

// Spans of this thread: their listeners, and their recorder, which is loaded on first use.

const guard = require('../core/guard')
const { Listeners } = require('../listeners')
const { settings } = require('../settings')

/**
 * @typedef {object} SpanHandle passed to the function of trace.span
 * @property {string} traceId 32 hex digits; empty if spans are off
 * @property {string} spanId 16 hex digits; empty if spans are off
 * @property {string} traceparent the header that makes another service's spans children of this one; empty
 *   if spans are off
 * @property {(attributes: Record<string, unknown>) => SpanHandle} set adds attributes with any JSON values
 * @property {(error: unknown) => SpanHandle} fail marks the span as failed with this error
 */

/** listeners of trace.on('span') @type {Listeners<any>} */
const listeners = new Listeners()
/**
 * commands that read this process's log, in addition to the outputs in the options
 * @type {Set<{ addRecord: (record: object) => void }>}
 */
const commands = new Set()
/** @type {typeof import('./recorder') | undefined} */
let recorder

/** Handle used while spans are off. @type {SpanHandle} */
const noSpan = Object.freeze({
  traceId: '',
  spanId: '',
  traceparent: '',
  set: () => noSpan,
  fail: () => noSpan
})

/** Records spans if they have an output, a listener or a command. */
function applySpans () {
  const { enabled, options: { spans, blocked, record, box } } = settings
  const isHeard = spans !== undefined || blocked !== undefined || record !== undefined || box !== undefined ||
    listeners.size > 0 || commands.size > 0
  guard.run(() => {
    if (!enabled || !isHeard) return recorder?.disable()
    recorder ??= require('./recorder')
    recorder.enable(spans)
  })
}

module.exports = { applySpans, commands, listeners, noSpan, recorder: () => recorder }
