'use strict'

// Sections of the text report on what is wrong: the verdict, what failed, what blocked the event loop.

const { counted, grouped, lines, moment, time, word } = require('./text-parts')
const { MAX_FRAME_CHARS, sentenceOf } = require('./text-context')
const { glued, prose } = require('./wrap')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/blockers').Blocker} Blocker
 * @typedef {import('../aggregate/failures').Failure} Failure
 * @typedef {import('../aggregate/verdict').Finding} Finding
 * @typedef {import('./text-context').Context} Context
 */

const MIN_SHARE = 0.01 // of all time that was blocked or delayed
const [SHORT_FINDINGS, FULL_FINDINGS] = [5, 20]
const [SHORT_BLOCKERS, FULL_BLOCKERS] = [3, 10]
const [SHORT_FAILURES, FULL_FAILURES] = [3, 10]
const [SHORT_STACK, FULL_STACK] = [5, 16] // lines
const MAX_ROUTES = 4 // of a failure
const MAX_MESSAGE_CHARS = 200

/**
 * Numbers the findings, worst first, each with its advice.
 * @param {Model} model
 * @param {Context} context
 */
function verdict ({ verdict, routes }, context) {
  const { colours, isFull, top } = context
  if (verdict.length === 0) {
    const isKnown = routes.some(({ split }) => split !== undefined)
    return isKnown ? [`${colours.bold('Verdict')}  no fault is certain`] : []
  }
  const max = top ?? (isFull ? FULL_FINDINGS : SHORT_FINDINGS)
  const parts = verdict.slice(0, max).flatMap((finding, i) => findingLines(finding, `${i + 1}.`, context))
  const more = verdict.length > max ? [`  … ${grouped(verdict.length - max)} more`] : []
  return [colours.bold('Verdict'), ...parts, ...more]
}

/** @param {Finding} finding @param {string} number @param {Context} context */
function findingLines ({ sentence, advice, at: frame }, number, { colours, frame: nameOf, paragraph }) {
  const name = frame === undefined ? '' : nameOf(frame)
  const isPlaceMissing = frame !== undefined && !prose(sentence).includes(name) && !sentence.includes(frame)
  const place = isPlaceMissing ? ` ${glued('at ')}${colours.cyan(name)}` : ''
  const indent = '     '
  return [
    ...paragraph(`${sentenceOf(sentence)}${place}`, `${number.padStart(4)} `),
    ...(advice === '' ? [] : paragraph(sentenceOf(advice), indent).map((line) => colours.dim(line)))
  ]
}

/** @param {Model} model @param {Context} context */
function failures ({ failures }, context) {
  const { colours, isFull, top = isFull ? FULL_FAILURES : SHORT_FAILURES } = context
  if (failures.length === 0) return []
  const printed = failures.slice(0, top)
  const first = printed.find(({ stack }) => stack !== undefined)
  const parts = printed.flatMap((failure) => failureLines(failure, isFull || failure === first, context))
  const hidden = failures.length - printed.length
  const more = hidden > 0 ? [`  … ${grouped(hidden)} more`] : []
  return [colours.bold('What failed'), ...parts, ...more]
}

/** @param {Failure} failure @param {boolean} hasStack print its chain @param {Context} context */
function failureLines (failure, hasStack, { colours, frame: nameOf, isFull, paragraph }) {
  const { type, message, at: frame, count, firstUnixMs, lastUnixMs, stack } = failure
  const start = message.startsWith(`${type}: `) ? '' : word(type) + (message === '' ? '' : ': ')
  const head = start + word(message, MAX_MESSAGE_CHARS)
  const place = frame === undefined ? '' : ` ${glued('at ')}${colours.cyan(nameOf(frame))}`
  return [
    ...paragraph(`${colours.red(glued(`${grouped(count)} ×`))} ${prose(head)}${place}`, '  ', '      '),
    ...paragraph(`in ${routesOf(failure)}, ${timesOf(firstUnixMs, lastUnixMs)}`, '      '),
    ...(hasStack && stack !== undefined ? stackLines(stack, isFull ? FULL_STACK : SHORT_STACK) : [])
  ]
}

/**
 * Formats the first and last time, with the day if it is not the same.
 * @param {number} first
 * @param {number} last
 */
function timesOf (first, last) {
  if (first === last) return `at ${moment(first, true)}`
  const isOneDay = moment(first).slice(0, 10) === moment(last).slice(0, 10)
  return `from ${glued(moment(first, isOneDay))} to ${glued(moment(last, isOneDay))}`
}

/** @param {Failure} failure */
function routesOf ({ routes }) {
  const names = routes.slice(0, MAX_ROUTES).map(({ name, count }) =>
    glued(`${word(name)}${routes.length > 1 ? ` (${grouped(count)})` : ''}`))
  const more = routes.length > MAX_ROUTES ? [glued(counted(routes.length - MAX_ROUTES, 'more route'))] : []
  return [...names, ...more].join(', ')
}

/** Prints frames and hops of a chain, without its message. @param {string} stack @param {number} max */
function stackLines (stack, max) {
  const whole = stack.split(/\r?\n/)
  const start = whole.findIndex((line) => /^ +(?:at|──) /.test(line))
  return start === -1 ? [] : lines(whole.slice(start).join('\n'), max, '    ')
}

/** Leaves out those without a frame: they name no function. @param {Model} model @param {Context} context */
function blockers ({ blockers }, context) {
  const { colours, isFull, top = isFull ? FULL_BLOCKERS : SHORT_BLOCKERS } = context
  const notable = blockers.filter(({ at: frame, share, open }) =>
    open || (frame !== undefined && share >= MIN_SHARE))
  if (notable.length === 0) return []
  const more = notable.length > top ? [`  … ${grouped(notable.length - top)} more`] : []
  const parts = notable.slice(0, top).flatMap((blocker) => blockerLines(blocker, context))
  return [colours.bold('Blockers'), ...parts, ...more]
}

/** @param {Blocker} blocker @param {Context} context */
function blockerLines (blocker, { colours, paragraph }) {
  const { name, at: frame, count, totalMs, worstMs, delayedSpans, delayedMs } = blocker
  const place = frame === undefined ? '' : colours.cyan(glued(word(frame, MAX_FRAME_CHARS)))
  const site = place === '' ? '' : ` ${glued('at ')}${place}`
  const blocked = blocker.known === 'runs'
    ? `blocked the event loop ${counted(count, 'time')}: ${time(totalMs)} in total, ${time(worstMs)} at most`
    : `${count > 0 ? counted(count, 'span') : 'code'} delayed others, by ${time(worstMs)} at most`
  const delayed = delayedSpans > 0
    ? `; delayed ${counted(delayedSpans, 'span')} by ${time(delayedMs)} in total`
    : ''
  const spins = blocker.open ? '; one callback had not ended' : ''
  const text = paragraph(prose(`${blocked}${delayed}${spins}`), '    ')
  return [
    ...paragraph(`${colours.bold(glued(word(name)))}${site}`, '  ', '    '),
    ...(blocker.open ? text.map((line) => colours.yellow(line)) : text)
  ]
}

module.exports = { blockers, failures, verdict }
