'use strict'

// The last promise that was rejected in a span: its reason is the span's error if the span fails later. Most
// reasons are handled and soon collected, so some are described at the end of the event loop iteration.

const { errorStack } = require('../attribution/error-hops')
const { now } = require('../core/clock')
const { batching, schedule } = require('../core/loop-iterations')
const { usesNodeFormatter } = require('../stacks/formatter')
const { describeException } = require('./span-record')

const MAX_DESCRIBED = 20 // per second, as each description takes some 50 µs

/**
 * @typedef {object} Rejection
 * @property {WeakRef<object>} reason
 * @property {number} time ms of the clock
 * @property {import('./span-record').ExceptionDescription} [description]
 */

/** not yet described @type {Rejection[]} */
let waiting = []
let count = 0 // rejections to describe in this second
let countedSince = -Infinity // ms of the clock

/**
 * Notes a rejection inside a span.
 * @param {object} reason
 * @param {import('./span').Span} span
 */
function note (reason, span) {
  if (span.ended || span.rejection?.reason.deref() === reason) return // it rejects one promise after another
  const time = now()
  span.rejection = { reason: new WeakRef(reason), time }
  if (time - countedSince >= 1000) {
    countedSince = time
    count = 0
  }
  if (count === MAX_DESCRIBED || !batching()) return
  count++
  if (waiting.push(span.rejection) === 1) schedule(describeWaiting)
}

function describeWaiting () {
  const rejections = waiting
  waiting = []
  if (!usesNodeFormatter()) return // it would be called for errors that the program drops
  for (let i = 0; i < rejections.length; i++) {
    const reason = rejections[i].reason.deref()
    if (reason !== undefined) rejections[i].description = describeException(reason, errorStack)
  }
}

module.exports = { note }
