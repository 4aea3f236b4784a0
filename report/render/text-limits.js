'use strict'

// Limits as text: what exceeded them, what was not checked, how many routes held them.

const { counted, digits, grouped, percent, time, word } = require('./text-parts')
const { ratio } = require('../aggregate/limits')
const { groupsOf } = require('../aggregate/lists')
const { glued } = require('./wrap')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/limits').LimitCheck} LimitCheck
 * @typedef {import('./text-context').Context} Context
 */

const MAX_NAMES = 5
const MARKS = { exceeded: '✗', held: '✓', unchecked: '–' }

/**
 * Lists limits, by expression.
 * @param {Model} model
 * @param {Pick<Context, 'colours' | 'paragraph'>} context
 * @returns {string[]}
 */
function limitLines ({ limits = [] }, context) {
  if (limits.length === 0) return []
  const parts = groupsOf(limits, ({ expression }) => expression)
  return [context.colours.bold('Limits'), ...parts.flatMap((checks) => linesOf(checks, context))]
}

/** @param {LimitCheck[]} checks of one expression @param {Pick<Context, 'colours' | 'paragraph'>} context */
function linesOf (checks, { colours, paragraph }) {
  const [{ expression }] = checks
  const [exceeded, held, unchecked] = /** @type {const} */ (['exceeded', 'held', 'unchecked'])
    .map((state) => checks.filter((check) => check.state === state))
  const name = colours.bold(glued(word(expression)))
  const line = (/** @type {keyof typeof MARKS} */ state, /** @type {string} */ text) =>
    paragraph(`${name}${glued(' ')} ${text}`, `  ${MARKS[state]} `)
  return [
    ...exceeded.flatMap((check) => line('exceeded', checkText(check)).map((line) => colours.red(line))),
    ...unchecked.flatMap((check) => line('unchecked', checkText(check)).map((line) => colours.yellow(line))),
    ...(held.length > 0 ? line('held', `held by ${namesOf(held)}`) : [])
  ]
}

/** @param {LimitCheck[]} checks */
function namesOf (checks) {
  const names = checks.slice(0, MAX_NAMES).map(({ route }) => glued(word(route)))
  const more = checks.length > MAX_NAMES ? ` and ${counted(checks.length - MAX_NAMES, 'more route')}` : ''
  return names.join(', ') + more
}

/** Says what a check of one route gave. @param {LimitCheck} check */
function checkText ({ state, route, unit, before, after, needed }) {
  const name = glued(word(route))
  if (state === 'unchecked') {
    if (needed !== undefined) return `not checked for ${name}: less than ${counted(needed, 'span')}`
    const run = before === undefined ? 'first' : 'second'
    const isMissing = (before === undefined) !== (after === undefined)
    return `not checked for ${name}: not known${isMissing ? ` in the ${run} run` : ''}`
  }
  const figure = after === undefined ? '' : value(after, unit)
  if (before === undefined || after === undefined) return `${name}: ${glued(figure)}`
  return `${name}: ${glued(`${value(before, unit)} → ${figure}`)} ${glued(`(${changeText(before, after)})`)}`
}

/** @param {number} amount @param {LimitCheck['unit']} unit */
function value (amount, unit) {
  if (unit === 'ms') return time(amount)
  if (unit === 'share') return percent(amount)
  return unit === 'rate' ? `${digits(amount)}/s` : grouped(amount)
}

/** Formats a relative change: `+12.5 %`, `×10`, `=`. @param {number} before @param {number} after */
function changeText (before, after) {
  const change = ratio(before, after)
  if (change === 0) return '='
  if (!Number.isFinite(change)) return 'new'
  if (change >= 9) return `×${change >= 1e4 ? (change + 1).toExponential(0) : Math.round(change + 1)}`
  const size = Math.abs(change * 100)
  return `${change < 0 ? '−' : '+'}${size < 9.95 ? size.toFixed(1) : Math.round(size)} %`
}

module.exports = { MARKS, changeText, checkText, limitLines, value }
