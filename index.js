'use strict'

/**
 * @typedef {import('./lib/api').Trace} Trace
 * @typedef {import('./lib/api').Options} Options
 * @typedef {import('./lib/api').Hop} Hop
 * @typedef {import('./lib/api').Why} Why
 * @typedef {import('./lib/api').Snapshot} Snapshot
 * @typedef {import('./lib/api').NewHandle} NewHandle
 * @typedef {import('./lib/api').Stats} Stats
 * @typedef {import('./lib/api').Metrics} Metrics
 * @typedef {import('./lib/api').Diagnosis} Diagnosis
 * @typedef {import('./lib/api').ContextView} ContextView
 * @typedef {import('./lib/api').HookCallbacks} HookCallbacks
 * @typedef {import('./lib/api').NativeHooks} NativeHooks
 * @typedef {import('./lib/api').ErrorHandler} ErrorHandler
 * @typedef {import('./lib/api').Transform} Transform
 * @typedef {import('./lib/api').LongstackError} LongstackError
 * @typedef {import('./lib/api').SpanHandle} SpanHandle
 * @typedef {import('./lib/api').SpanRecord} SpanRecord
 * @typedef {import('./lib/api').BlockedEvent} BlockedEvent
 * @typedef {import('./lib/api').Profile} Profile
 * @typedef {import('./lib/api').Pending} Pending
 * @typedef {import('./lib/api').PendingWaits} PendingWaits
 * @typedef {import('./lib/api').PresentRequest} PresentRequest
 * @typedef {import('./lib/option-types').Frame} Frame a frame as passed to the option `hide`
 */

module.exports = require('./lib/start').shared.trace
