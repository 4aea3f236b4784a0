'use strict'

// Makes spans: who their parent is, which trace they are part of, when they began.

const { now } = require('../core/clock')
const { currentStep, spanNumber } = require('../core/current-step')
const { identityAt, spanAt } = require('./identities')
const { loop } = require('./loop-time')
const { activeSpanContext } = require('./otel-context')
const { Span } = require('./span')
const { originAt } = require('./wall-clock')

/**
 * @typedef {object} Remote where a trace comes from
 * @property {string} traceId
 * @property {string} spanId
 * @property {boolean} sampled
 *
 * @typedef {object} SpanStart
 * @property {string} name
 * @property {import('./span').SpanKind} kind
 * @property {Remote} [remote]
 * @property {import('../core/context').Context} [context] the place that makes it; default the running one
 * @property {number} [since] ms, where it began before
 */

/**
 * Makes a span. Its parent is what another process named, else OpenTelemetry's active span where that is the
 * inner one, else the running span.
 * @param {SpanStart} start
 * @returns {Span}
 */
function makeSpan ({ name, kind, remote, context, since }) {
  const { chain } = currentStep()
  const time = now()
  loop.accountUntil(time)
  const number = kind === 'SERVER' ? 0 : context === undefined ? spanNumber() : context.spanNumber
  const running = number === 0 ? undefined : identityAt(number)
  const active = activeSpanContext()
  const outer = active !== undefined && active.spanId !== running?.otelSpanId ? active : running
  const cause = remote ?? outer
  const parent = number === 0 ? undefined : spanAt(number)
  const span = new Span({
    name,
    kind,
    traceId: cause?.traceId,
    parentSpanId: cause?.spanId,
    sampled: cause?.sampled ?? true,
    parent,
    start: since ?? time,
    origin: parent === undefined ? originAt(time) : parent.origin,
    loop
  })
  span.otelSpanId = active?.spanId
  span.chain = context === undefined ? chain : context.chain
  return span
}

module.exports = { makeSpan }
