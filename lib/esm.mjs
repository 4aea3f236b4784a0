// import trace, { enable } from 'longstack': the same object as require() gives, with names.

import trace from '../index.js'

export default trace
export const {
  enable, disable, current, chain, stack, why, handles, snapshot, diff, assertNoLeaks, stats, doctor, hook,
  nativeHooks, onError, on, span, intercept, bind, profile,
  metrics, pending, request
} = trace

/**
 * @typedef {import('./api.js').Trace} Trace
 * @typedef {import('./api.js').Options} Options
 * @typedef {import('./api.js').Hop} Hop
 * @typedef {import('./api.js').Why} Why
 * @typedef {import('./api.js').Snapshot} Snapshot
 * @typedef {import('./api.js').NewHandle} NewHandle
 * @typedef {import('./api.js').Stats} Stats
 * @typedef {import('./api.js').Metrics} Metrics
 * @typedef {import('./api.js').Diagnosis} Diagnosis
 * @typedef {import('./api.js').ContextView} ContextView
 * @typedef {import('./api.js').HookCallbacks} HookCallbacks
 * @typedef {import('./api.js').NativeHooks} NativeHooks
 * @typedef {import('./api.js').ErrorHandler} ErrorHandler
 * @typedef {import('./api.js').Transform} Transform
 * @typedef {import('./api.js').LongstackError} LongstackError
 * @typedef {import('./api.js').SpanHandle} SpanHandle
 * @typedef {import('./api.js').SpanRecord} SpanRecord
 * @typedef {import('./api.js').BlockedEvent} BlockedEvent
 * @typedef {import('./api.js').Profile} Profile
 * @typedef {import('./api.js').Pending} Pending
 * @typedef {import('./api.js').PendingWaits} PendingWaits
 * @typedef {import('./api.js').PresentRequest} PresentRequest
 * @typedef {import('./option-types.js').Frame} Frame a frame as the option `hide` sees it
 */
