'use strict'

// Parses limits of --fail-if and --until: [route pattern:] metric comparator value, such as
// `GET /x: p99 > +10 %`.

const { nearest } = require('../errors')
const { metrics } = require('../../report/aggregate/limits')
const { quote, UsageError } = require('./flags')

/**
 * @typedef {import('../../report/aggregate/limits').Limit} Limit
 * @typedef {{ number: number, sign: string, unit: string, start: number, unitStart: number }} Value
 */

/** Aliases of metrics. @type {Record<string, keyof typeof metrics>} */
const aliases = { median: 'p50', 'p99.9': 'p999', waited: 'wait', error: 'errors' }
const NAMES = Object.keys(metrics)
/** ms by unit. @type {Record<string, number>} */
const TIMES = { µs: 0.001, μs: 0.001, us: 0.001, ms: 1, s: 1000, min: 60_000 }
/** Text after the pattern. Each part may be missing; its position is known even then. */
const LIMIT = new RegExp([
  /(?<name>[\p{L}\w.]*)/u, /(?<comparator>>=|<=|>|<|)/, /(?<sign>[+\-−]|)/, /(?<digits>\d+(?:\.\d+)?|)/,
  /(?<unit>%|\/s|\p{L}+|)/u, /(?<rest>.*)/
].map(({ source }) => ` *${source}`).join(''), 'dsuy')
const MAX_POINTER_CHARS = 100

/**
 * @param {string} expression
 * @param {string} [flag] that has it, for messages
 * @returns {Limit}
 * @throws {UsageError}
 */
function parseLimit (expression, flag = 'fail-if') {
  try {
    return parse(expression)
  } catch (error) {
    /** @type {Error} */ (error).message = `--${flag} ${/** @type {Error} */ (error).message}`
    throw error
  }
}

/** @param {string} expression @returns {Limit} @throws {UsageError} */
function parse (expression) {
  const colon = expression.lastIndexOf(':')
  const pattern = colon === -1 ? undefined : expression.slice(0, colon).trim()
  if (pattern === '') fail(expression, 0, 'expected a route before the colon')
  LIMIT.lastIndex = colon + 1
  const { groups = {}, indices } = /** @type {RegExpExecArray} */ (LIMIT.exec(expression))
  const { name, comparator, sign, digits, unit, rest } = groups
  const startOf = (/** @type {string} */ part) => indices?.groups?.[part][0] ?? 0

  const word = name.toLowerCase()
  const metric = Object.hasOwn(aliases, word) ? aliases[word] : /** @type {keyof typeof metrics} */ (word)
  if (!Object.hasOwn(metrics, metric)) {
    const hint = nearest(name, [...NAMES, ...Object.keys(aliases)])
    const help = hint === undefined ? `one of ${NAMES.join(', ')}` : `did you mean ${hint}?`
    const received = name === '' ? 'expected a metric' : `unknown metric ${quote(name)}`
    fail(expression, startOf('name'), `${received}: ${help}`)
  }
  if (comparator === '') fail(expression, startOf('comparator'), `expected >, <, >= or <= after ${name}`)
  if (digits === '') fail(expression, startOf('digits'), `expected a number after ${sign || comparator}`)
  if (rest !== '') fail(expression, startOf('rest'), 'expected nothing more')
  const value = { number: Number(digits), sign, unit, start: startOf('sign'), unitStart: startOf('unit') }
  return {
    expression: expression.trim(),
    pattern,
    metric,
    comparator: /** @type {Limit['comparator']} */ (comparator),
    ...measure(expression, metric, value)
  }
}

/**
 * Determines the kind and the unit of the comparison.
 * @param {string} expression
 * @param {keyof typeof metrics} metric
 * @param {Value} value
 * @returns {Pick<Limit, 'kind' | 'value'>}
 */
function measure (expression, metric, { number, sign, unit, start, unitStart }) {
  const signed = sign === '' || sign === '+' ? number : -number
  const kind = sign === '' ? 'value' : 'change'
  const dimension = metrics[metric].unit
  // Changes of shares are in percentage points: +1 % is from 2 % to 3 %.
  if (dimension === 'share') {
    const hint = 'expected % after the number: errors are a share of the spans'
    if (unit !== '%') fail(expression, unitStart, hint)
    return { kind, value: signed / 100 }
  }
  if (unit === '%') {
    if (sign === '') fail(expression, start, `expected a signed change, +${number} % or -${number} %`)
    return { kind: 'ratio', value: signed / 100 }
  }
  if (dimension === 'ms') {
    const hint = `expected ms, s or % after the number: ${metric} is a time`
    if (!Object.hasOwn(TIMES, unit)) fail(expression, unitStart, hint)
    return { kind, value: signed * TIMES[unit] }
  }
  const units = dimension === 'rate' ? ['', '/s'] : ['']
  if (!units.includes(unit)) {
    const expected = dimension === 'rate' ? '/s, % or nothing' : '% or nothing'
    fail(expression, unitStart, `expected ${expected} after the number`)
  }
  return { kind, value: signed }
}

/**
 * @param {string} expression
 * @param {number} position position of the mistake
 * @param {string} message
 * @returns {never}
 * @throws {UsageError}
 */
function fail (expression, position, message) {
  const isPrintable = expression.length <= MAX_POINTER_CHARS && /^[^\p{C}]*$/u.test(expression)
  const pointer = isPrintable ? `\n  ${expression}\n  ${' '.repeat(position)}^` : ''
  throw new UsageError(`${quote(expression)}: ${message}.${pointer}`)
}

module.exports = { parseLimit }
