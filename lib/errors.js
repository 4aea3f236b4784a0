'use strict'

// The one catalogue of what longstack can say of a mistake. Every error that a user can cause has a code
// that stays, and a sentence that says what was given, what is allowed, and what was probably meant.

const { types } = require('node:util')
const { brief } = require('./warnings')

/** @type {Record<string, (...details: any[]) => string>} */
const sentences = {
  UNKNOWN_SUBSYSTEM: (name, hint) =>
    `Unknown subsystem ${quote(name)}.${didYouMean(hint)} A filter names subsystems such as TCP, FS or PROMISE, ` +
    'provider types such as TCPCONNECTWRAP, or AsyncResource types of your own ("type:NAME" if in capitals); "-NAME" takes one away, "*" is all.',
  INVALID_FILTER: (given) =>
    `A filter is an array of names, for example ['TCP', 'PIPE'] or ['*', '-PROMISE']; got ${show(given)}.`,
  UNKNOWN_OPTION: (name, hint) => `Unknown option ${quote(name)}.${didYouMean(hint)}`,
  UNKNOWN_VARIABLE: (name, hint) => `Unknown environment variable ${quote(name)}.${didYouMean(hint)}`,
  INVALID_OPTION: (name, given, allowed) => `Option ${quote(name)} must be ${allowed}. Received ${show(given)}.`,
  INVALID_OPTIONS: (given) =>
    `trace.enable takes nothing, an array of filter names or an object of options; got ${show(given)}.`,
  NOT_AVAILABLE: (name, why) => `${name} is not available here: ${why}.`,
  INVALID_OUTPUT: (given, why) => `Spans cannot go to ${show(given)}: ${why}.`,
  UNKNOWN_SETTING: (name, hint) => `Unknown setting ${quote(name)} of an output of spans.${didYouMean(hint)} There are slower, errors, sample and keep.`,
  INVALID_SETTING: (name, given, allowed) => `The setting ${quote(name)} of an output of spans is ${allowed}; got ${show(given)}.`,
  INVALID_HANDLER: (name, given) => `${name} is a function; got ${show(given)}.`,
  INVALID_SERVER: (given) =>
    `trace.intercept takes a server that speaks HTTP/1: of node:http, of node:https, or of node:http2 with TLS and allowHTTP1; got ${show(given)}.`,
  INTERCEPT: (name, did) => 'threw' in did
    ? `The transform ${quote(name)} of trace.intercept threw ${thrown(did.threw)}.`
    : `The transform ${quote(name)} of trace.intercept returned ${answer(did.returned)}; it returns a Buffer, a Uint8Array, or undefined for the chunk as it is.`,
  INVALID_SPAN: (given) => `trace.span takes a name, attributes if you like, and a function; got ${show(given)}.`,
  INVALID_HOOK: (given) => `trace.hook takes an object with init, before or after functions; got ${show(given)}.`,
  INVALID_TARGET: (given) =>
    'A target is an Error or an object with an async resource behind it, such as a socket, server, request, ' +
    `timer, promise or worker; got ${show(given)}.`,
  UNKNOWN_EVENT: (name, hint) => `There is no event ${quote(name)}.${didYouMean(hint)}`
}

/** @typedef {TypeError & { code: string }} LongstackError a mistake of the caller, with a code that stays */

/**
 * Makes the error of a mistake.
 * @param {keyof typeof sentences} key
 * @param {...any} details what the sentence needs
 * @returns {LongstackError}
 */
function mistake (key, ...details) {
  const error = new TypeError(sentences[key](...details))
  return Object.assign(error, { code: `LONGSTACK_ERR_${key}` })
}

/**
 * Names the word nearest to a misspelt one, if any is near.
 * @param {unknown} word
 * @param {Iterable<string>} known
 * @returns {string | undefined}
 */
function nearest (word, known) {
  if (typeof word !== 'string') return undefined
  const wanted = word.toUpperCase()
  let best
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1
  for (const candidate of known) {
    const distance = edits(wanted, candidate.toUpperCase(), least)
    if (distance < least) [best, least] = [candidate, distance]
  }
  return best
}

/**
 * Damerau's distance: insertions, deletions, substitutions and swaps of neighbours.
 * @param {string} a
 * @param {string} b
 * @param {number} limit give up at this many
 * @returns {number}
 */
function edits (a, b, limit) {
  if (Math.abs(a.length - b.length) >= limit || a.length > 64) return limit
  let older = [...b, ''].map(() => 0)
  let old = [...b, ''].map((_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const now = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      now[column] = Math.min(old[column] + 1, now[column - 1] + 1, old[column - 1] + (same ? 0 : 1))
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        now[column] = Math.min(now[column], older[column - 2] + 1)
      }
    }
    older = old
    old = now
  }
  return old[b.length]
}

/** @param {unknown} value @returns {string} */
function quote (value) {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : show(value)
}

/** @param {string | undefined} hint */
function didYouMean (hint) {
  return hint === undefined ? '' : ` Did you mean ${quote(hint)}?`
}

/** Says what a value is without running any code of it. @param {unknown} value @returns {string} */
function show (value) {
  if (typeof value === 'string') return quote(value)
  if (value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'bigint') return `${value}n`
  if (types.isProxy(value)) return 'a proxy' // a revoked one throws when it is asked
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** What somebody threw. @param {unknown} value */
function thrown (value) {
  return types.isNativeError(value) ? `an error: ${brief(value)}` : show(value)
}

/** What a transform returned. @param {unknown} value */
function answer (value) {
  if (types.isUint8Array(value)) return 'bytes that cannot be read, as of a buffer that was transferred'
  return types.isPromise(value) ? 'a promise, and chunks are waited for by nobody' : show(value)
}

module.exports = { mistake, nearest }
