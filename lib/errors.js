'use strict'

// The catalogue of errors that a caller can cause. A code never changes; its sentence names what was
// expected, what was received, and the nearest right word. docs/errors.md is made of it (npm run docs).

const { types } = require('node:util')
const { ownManifest } = require('./platform')
const { escapeJson } = require('./text')
const { messageOf } = require('./warnings')

/**
 * @typedef {object} CatalogueEntry
 * @property {(...details: any[]) => string} sentence
 * @property {any[]} example details that a caller can cause, for docs/errors.md
 * @property {string} remedy what to do, in Markdown
 */

/**
 * Makes sentences for a word that is not known.
 * @param {string} kind
 * @param {string} [place] where it is not known
 * @param {string} [rest] which words there are
 * @returns {(word: unknown, hint?: string) => string}
 */
const unknown = (kind, place = '', rest = '') => (word, hint) =>
  `Unknown ${kind} ${quote(word)}${place}.${didYouMean(hint)}${rest}`

/**
 * Makes sentences for an option or setting with a wrong value.
 * @param {string} kind
 * @param {string} [place] of which it is one
 * @returns {(name: string, value: unknown, allowed: string) => string}
 */
const mustBe = (kind, place = '') => (name, value, allowed) =>
  received(`${kind} ${quote(name)}${place} must be ${allowed}.`)(value)

/** @param {string} expected @returns {(value: unknown) => string} */
const received = (expected) => (value) => `${expected} Received ${describe(value)}.`

/** By code, without LONGSTACK_ERR_. @satisfies {Record<string, CatalogueEntry>} */
const catalogue = {
  UNKNOWN_SUBSYSTEM: {
    sentence: unknown('subsystem', '', ' A filter names subsystems such as TCP, FS or PROMISE, provider ' +
      'types such as TCPCONNECTWRAP, or AsyncResource types of your own ("type:NAME" if in capitals); ' +
      '"-NAME" takes one away, "*" is all.'),
    example: ['TPC', 'TCP'],
    remedy: 'Correct the name. A type of `AsyncResource` in capitals is written `type:NAME`.'
  },
  INVALID_FILTER: {
    sentence: received(
      "A filter must be an array of names, for example ['TCP', 'PIPE'] or ['*', '-PROMISE']."),
    example: ['TCP'],
    remedy: 'Pass an array, also for a single name.'
  },
  UNKNOWN_OPTION: {
    sentence: unknown('option'),
    example: ['frame', 'frames'],
    remedy: 'See [options](options.md).'
  },
  UNKNOWN_VARIABLE: {
    sentence: unknown('environment variable'),
    example: ['LONGSTACK_FRAME', 'LONGSTACK_FRAMES'],
    remedy: 'See [options](options.md). Reported on stderr, never thrown.'
  },
  INVALID_OPTION: {
    sentence: mustBe('Option'),
    example: ['frames', 'ten', 'an integer from 1 to 200'],
    remedy: 'See [options](options.md).'
  },
  INVALID_OPTIONS: {
    sentence: received('trace.enable takes an array of filter names or an object of options.'),
    example: [42],
    remedy: 'Call `trace.enable()`, `trace.enable([…])` or `trace.enable({…})`.'
  },
  NOT_AVAILABLE: {
    sentence: (name, reason) => `${name} is not available: ${reason}.`,
    example: ['trace.nativeHooks', 'no binary for darwin-arm64, ABI 137'],
    remedy: 'It needs the native addon: see [engine codes](#engine).'
  },
  INVALID_OUTPUT: {
    sentence: (output, reason) => `Spans cannot go to ${describe(output)}: ${reason}.`,
    example: ['ftp://host/spans', 'ftp: is none of http:, https: and file:'],
    remedy: 'See [where spans go](sinks.md).'
  },
  UNKNOWN_SETTING: {
    sentence: unknown('setting', ' of an output of spans', ' Settings are slower, errors, sample and keep.'),
    example: ['slowr', 'slower'],
    remedy: 'See [where spans go](sinks.md).'
  },
  INVALID_SETTING: {
    sentence: mustBe('Setting', ' of an output of spans'),
    example: ['sample', 1.5, 'a ratio from 0 to 1'],
    remedy: 'See [where spans go](sinks.md).'
  },
  INVALID_HANDLER: {
    sentence: (name, value) => received(`${name} must be a function.`)(value),
    example: ['The listener of trace.on', 42],
    remedy: 'Pass a function.'
  },
  INVALID_SERVER: {
    sentence: received('trace.intercept takes a server that speaks HTTP/1: of node:http, of node:https, or ' +
      'of node:http2 with TLS and allowHTTP1.'),
    example: [{}],
    remedy: 'Pass the server itself, not the framework around it. See [intercept](intercept.md).'
  },
  INTERCEPT: {
    sentence: (name, failure) => 'threw' in failure
      ? `The transform ${quote(name)} of trace.intercept threw ${describeThrown(failure.threw)}.`
      : `The transform ${quote(name)} of trace.intercept returned ${describeReturned(failure.returned)}; ` +
        'it must return a Buffer, a Uint8Array, or undefined for the chunk as it is.',
    example: ['upper', { returned: 'text' }],
    remedy: 'Correct the transform. The connection was closed with this error; the server goes on.'
  },
  INVALID_SPAN: {
    sentence: received('trace.span takes a name, optional attributes and a function.'),
    example: [undefined],
    remedy: "Call `trace.span('name', fn)` or `trace.span('name', { … }, fn)`."
  },
  INVALID_PROFILE: {
    sentence: mustBe('Option', ' of trace.profile'),
    example: ['seconds', -1, 'a number above 0, at most 1800'],
    remedy: 'See [profile](profile.md).'
  },
  UNKNOWN_PROFILE_OPTION: {
    sentence: unknown('option', ' of trace.profile', ' Options are seconds and samples.'),
    example: ['second', 'seconds'],
    remedy: 'See [profile](profile.md).'
  },
  PROFILE_RUNS: {
    sentence: () => 'A profile of this thread is being recorded already; wait until it is over.',
    example: [],
    remedy: 'Await the first one, or share its promise.'
  },
  NOT_ENABLED: {
    sentence: (name) => `${name} needs tracing, which is off: call trace.enable() first, or preload ` +
      `${ownManifest().name}/register.`,
    example: ['trace.profile'],
    remedy: 'Call `trace.enable()`, or start the program with `node -r longstack/register`.'
  },
  INVALID_PENDING: {
    sentence: mustBe('Option', ' of trace.pending'),
    example: ['olderThanMs', '1 s', 'a number of ms, at least 0'],
    remedy: 'See [handles](handles.md#what-is-awaited-and-never-settled).'
  },
  UNKNOWN_PENDING_OPTION: {
    sentence: unknown('option', ' of trace.pending', ' The option is olderThanMs.'),
    example: ['olderThan', 'olderThanMs'],
    remedy: 'See [handles](handles.md#what-is-awaited-and-never-settled).'
  },
  INVALID_HOOK: {
    sentence: received('trace.hook takes an object with init, before or after functions.'),
    example: [undefined],
    remedy: 'Pass at least one of the three.'
  },
  INVALID_SNAPSHOT: {
    sentence: (name, value) => received(`${name} takes what trace.snapshot() returned.`)(value),
    example: ['trace.diff', undefined],
    remedy: 'Call `trace.snapshot()` first, in the same thread.'
  },
  INVALID_TARGET: {
    sentence: received('A target must be an Error or an object with an async resource behind it, such as a ' +
      'socket, server, request, timer, promise or worker.'),
    example: [42],
    remedy: 'Pass the object itself, not its id or name.'
  },
  UNKNOWN_EVENT: {
    sentence: unknown('event', '', ' Events are warning, span and blocked.'),
    example: ['wraning', 'warning'],
    remedy: 'Correct the name.'
  }
}

/**
 * @typedef {keyof typeof catalogue} ErrorKey
 * @typedef {TypeError & { code: string }} LongstackError a mistake of the caller, with a code that never
 *   changes
 */

/**
 * Makes the error for a mistake of the caller.
 * @param {ErrorKey} key
 * @param {...any} details for the sentence
 * @returns {LongstackError}
 */
function mistake (key, ...details) {
  const { sentence } = /** @type {CatalogueEntry} */ (catalogue[key])
  return Object.assign(new TypeError(sentence(...details)), { code: `LONGSTACK_ERR_${key}` })
}

/**
 * Returns the known word that a misspelt one is nearest to, if it is near any.
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
 * Returns the Damerau-Levenshtein distance: insertions, deletions, substitutions and swaps of neighbours.
 * @param {string} a
 * @param {string} b
 * @param {number} limit returned where the distance is this or more
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
  return typeof value === 'string' ? escapeJson(JSON.stringify(value.slice(0, 80))) : describe(value)
}

/** @param {string | undefined} hint */
function didYouMean (hint) {
  return hint === undefined ? '' : ` Did you mean ${quote(hint)}?`
}

/** Describes a value without running any code of it. @param {unknown} value @returns {string} */
function describe (value) {
  if (typeof value === 'string') return quote(value)
  if (value === null || ['undefined', 'number', 'boolean'].includes(typeof value)) return String(value)
  if (typeof value === 'bigint') return `${value}n`
  if (types.isProxy(value)) return 'a proxy' // a revoked one throws on any access
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** @param {unknown} value that a transform threw */
function describeThrown (value) {
  return types.isNativeError(value) ? `an error: ${messageOf(value)}` : describe(value)
}

/** @param {unknown} value that a transform returned */
function describeReturned (value) {
  if (types.isUint8Array(value)) return 'bytes that cannot be read, as of a buffer that was transferred'
  return types.isPromise(value) ? 'a promise; transforms must be synchronous' : describe(value)
}

module.exports = { catalogue, mistake, nearest }
