'use strict'

// Usage errors. A code never changes; its message names the expected value, the received value, and the
// closest known word. docs/errors.md is generated from them (npm run docs); the remedies are in
// docs/build/remedies.js.

const { types } = require('node:util')
const { ownManifest } = require('./platform')
const { cutUrlCredentials, escapeJson } = require('./text')
const { messageOf } = require('./warnings')

/**
 * Makes messages for an unknown word.
 * @param {string} kind
 * @param {string} [place] appended to the word
 * @param {string} [rest] known words
 * @returns {(word: unknown, hint?: string) => string}
 */
const unknown = (kind, place = '', rest = '') => (word, hint) =>
  `Unknown ${kind} ${quote(word)}${place}.${didYouMean(hint)}${rest}`

/**
 * Makes messages for an option or setting with an invalid value.
 * @param {string} kind
 * @param {string} [place] call or object that the option belongs to
 * @returns {(name: string, value: unknown, allowed: string) => string}
 */
const mustBe = (kind, place = '') => (name, value, allowed) =>
  received(`${kind} ${quote(name)}${place} must be ${allowed}.`)(value)

/** @param {string} expected @returns {(value: unknown) => string} */
const received = (expected) => (value) => `${expected} Received ${describe(value)}.`

/** Messages by code, without LONGSTACK_ERR_. @satisfies {Record<string, (...details: any[]) => string>} */
const sentences = {
  UNKNOWN_SUBSYSTEM: unknown('subsystem', '', ' A filter lists subsystems such as TCP, FS or PROMISE, ' +
    'provider types such as TCPCONNECTWRAP, or your own AsyncResource types ("type:NAME" if in ' +
    'capitals); "-NAME" excludes one, "*" means all.'),
  INVALID_FILTER: received("A filter must be an array of names, for example ['TCP', 'PIPE'] or " +
    "['*', '-PROMISE']."),
  UNKNOWN_OPTION: unknown('option'),
  UNKNOWN_VARIABLE: unknown('environment variable'),
  INVALID_OPTION: mustBe('Option'),
  INVALID_OPTIONS: received('trace.enable takes an array of filter names or an object of options.'),
  NOT_AVAILABLE: (name, reason) => `${name} is not available: ${reason}.`,
  INVALID_OUTPUT: (output, reason) => `Cannot write spans to ${describe(output)}: ${reason}.`,
  UNKNOWN_SETTING: unknown('setting', ' of a span output',
    ' Settings are slower, errors, sample and keep.'),
  INVALID_SETTING: mustBe('Setting', ' of a span output'),
  INVALID_HANDLER: (name, value) => received(`${name} must be a function.`)(value),
  INVALID_SERVER: received('trace.intercept takes an HTTP/1 server: from node:http, node:https, or ' +
    'node:http2 with TLS and allowHTTP1.'),
  INTERCEPT: (name, failure) => 'threw' in failure
    ? `The transform ${quote(name)} of trace.intercept threw ${describeThrown(failure.threw)}.`
    : `The transform ${quote(name)} of trace.intercept returned ${describeReturned(failure.returned)}; ` +
      'it must return a Buffer, a Uint8Array, or undefined to leave the chunk unchanged.',
  INVALID_SPAN: received('trace.span takes a name, optional attributes and a function.'),
  INVALID_PROFILE: mustBe('Option', ' of trace.profile'),
  UNKNOWN_PROFILE_OPTION: unknown('option', ' of trace.profile', ' Options are seconds and samples.'),
  PROFILE_RUNS: () => 'A profile is already running in this thread. Wait until it ends.',
  NOT_ENABLED: (name) => `${name} needs tracing, which is off. Call trace.enable() first, or preload ` +
    `${ownManifest().name}/register.`,
  INVALID_PENDING: mustBe('Option', ' of trace.pending'),
  UNKNOWN_PENDING_OPTION: unknown('option', ' of trace.pending', ' The option is olderThanMs.'),
  INVALID_HOOK: received('trace.hook takes an object with init, before or after functions.'),
  INVALID_SNAPSHOT: (name, value) => received(`${name} takes the return value of trace.snapshot().`)(value),
  INVALID_TARGET: received('A target must be an Error or an object backed by an async resource, such ' +
    'as a socket, server, request, timer, promise or worker.'),
  UNKNOWN_EVENT: unknown('event', '', ' Events are warning, span and blocked.')
}

/**
 * @typedef {keyof typeof sentences} ErrorKey
 * @typedef {TypeError & { code: string }} LongstackError a usage error, with a code that never changes
 */

/**
 * Makes the error for wrong usage.
 * @param {ErrorKey} key
 * @param {...any} details for the message
 * @returns {LongstackError}
 */
function mistake (key, ...details) {
  const sentence = /** @type {(...details: any[]) => string} */ (sentences[key])
  return Object.assign(new TypeError(sentence(...details)), { code: `LONGSTACK_ERR_${key}` })
}

/**
 * Returns the known word that is closest to a misspelt one, or undefined if none is close.
 * @param {unknown} word
 * @param {Iterable<string>} words
 * @returns {string | undefined}
 */
function nearest (word, words) {
  if (typeof word !== 'string') return undefined
  const upper = word.toUpperCase()
  let best
  let limit = Math.max(1, Math.floor(upper.length / 3)) + 1
  for (const candidate of words) {
    const distance = editDistance(upper, candidate.toUpperCase(), limit)
    if (distance < limit) [best, limit] = [candidate, distance]
  }
  return best
}

/**
 * Returns the Damerau-Levenshtein distance: insertions, deletions, substitutions and transpositions.
 * @param {string} a
 * @param {string} b
 * @param {number} limit returned if the distance is at least this
 * @returns {number}
 */
function editDistance (a, b, limit) {
  if (Math.abs(a.length - b.length) >= limit || a.length > 64) return limit
  let beforePrevious = [...b, ''].map(() => 0)
  let previous = [...b, ''].map((_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const substitution = a[row - 1] === b[column - 1] ? 0 : 1
      current[column] = Math.min(
        previous[column] + 1, current[column - 1] + 1, previous[column - 1] + substitution)
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        current[column] = Math.min(current[column], beforePrevious[column - 2] + 1)
      }
    }
    beforePrevious = previous
    previous = current
  }
  return previous[b.length]
}

/** @param {unknown} value @returns {string} */
function quote (value) {
  if (typeof value !== 'string') return describe(value)
  return escapeJson(JSON.stringify(cutUrlCredentials(value.slice(0, 1000)).slice(0, 80)))
}

/** @param {string | undefined} hint */
function didYouMean (hint) {
  return hint === undefined ? '' : ` Did you mean ${quote(hint)}?`
}

/** Describes a value without running any of its code. @param {unknown} value @returns {string} */
function describe (value) {
  if (typeof value === 'string') return quote(value)
  if (value === null || ['undefined', 'number', 'boolean'].includes(typeof value)) return String(value)
  if (typeof value === 'bigint') return `${value}n`
  if (types.isProxy(value)) return 'a proxy' // a revoked one throws on any access
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** @param {unknown} value thrown by a transform */
function describeThrown (value) {
  return types.isNativeError(value) ? `an error: ${messageOf(value)}` : describe(value)
}

/** @param {unknown} value returned by a transform */
function describeReturned (value) {
  if (types.isUint8Array(value)) return 'bytes that cannot be read, for example a transferred buffer'
  return types.isPromise(value) ? 'a promise; transforms must be synchronous' : describe(value)
}

module.exports = { mistake, nearest, sentences }
