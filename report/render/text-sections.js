'use strict'

// Sections of the text report: the verdict, failures, blockers, slowest and open requests, and limits: the
// exceeded ones, those not checked, and how many routes are within them.

const { experimentTexts } = require('./experiments')
const {
  changeText, clock, counted, grouped, lines, moment, section, time, value, word
} = require('./text-parts')
const { VISIBLE_MS, parts, placeText } = require('./text-routes')
const { glued, prose, unglued } = require('./wrap')
const { groupsOf } = require('../aggregate/lists')
const { recordedSentence } = require('../../lib/format/wait-graph')
const { shortFrame } = require('../../lib/text')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/blockers').Blocker} Blocker
 * @typedef {import('../aggregate/digest').Digest} Digest
 * @typedef {import('../aggregate/failures').Failure} Failure
 * @typedef {import('../aggregate/verdict').Finding} Finding
 * @typedef {import('../aggregate/limits').LimitCheck} LimitCheck
 * @typedef {import('./text-parts').Context} Context
 */

/** Number of items in the short and the full form. @satisfies {Record<string, [number, number]>} */
const MAX = /** @type {Record<string, [number, number]>} */ ({
  findings: [5, 20],
  convoys: [3, 20],
  failures: [3, 10],
  blockers: [3, 10],
  slowest: [3, 5],
  open: [5, 20],
  handles: [5, 20]
})
const MIN_SHARE = 0.01 // share of all blocked or delayed time
const [SHORT_STACK, FULL_STACK] = [5, 16] // lines
const MAX_ROUTES = 4 // per failure
const MAX_MESSAGE_CHARS = 200
const WITH_STACK = 3 // number of slowest requests with a stack
const STACK_LINES = 8
const [SHORT_PARTS, FULL_PARTS] = [1, 3] // waits and delayers per request
const SHORT_SHARE = 0.2 // share of a request, below which the short form leaves a wait or delay out
const MIN_QUEUED = 1 // ms
const INDENT = ' '.repeat(12)
const MAX_FRAME = 200 // characters
const MAX_NAMES = 5 // routes within a limit
const MAX_PREDICTION_CHARS = 500
const MARKS = { exceeded: '✗', held: '✓', unchecked: '–' }

/**
 * Lists the numbered findings, worst first, each with its advice.
 * @param {Model} model
 * @param {Context} context
 */
function verdict ({ verdict, routes }, context) {
  const { colours, frame: nameOf, max, paragraph } = context
  const title = colours.bold('Verdict')
  if (verdict.length === 0) {
    return routes.some(({ split }) => split !== undefined) ? [`${title}  no definite problem found`] : []
  }
  return section(title, verdict, max(MAX.findings), ({ sentence, advice, whatIf, at: frame }, i) => {
    const isPlaceKnown = frame === undefined ||
      [frame, shortFrame(frame), unglued(nameOf(frame))].some((name) => sentence.includes(name))
    const place = isPlaceKnown ? '' : atText(nameOf(frame), colours.cyan)
    return [
      ...paragraph(`${sentenceOf(sentence)}${place}`, `${`${i + 1}.`.padStart(4)} `),
      ...(whatIf === undefined ? [] : paragraph(sentenceOf(whatIf.sentence), ' '.repeat(5))),
      ...(advice === '' ? [] : paragraph(sentenceOf(advice), ' '.repeat(5)).map((line) => colours.dim(line)))
    ]
  })
}

/**
 * Makes a sentence from a file safe for a terminal, and keeps figures with their units.
 * @param {string} sentence
 */
function sentenceOf (sentence) {
  return prose(word(sentence, 1000))
}

/** @param {string} name of a frame @param {(name: string) => string} [colour] */
const atText = (name, colour = String) => ` ${glued('at ')}${colour(name)}`

/** @param {Model} model @param {Context} context */
function convoys ({ convoys }, { colours, max, paragraph }) {
  const title = `${colours.bold('Who waited for whom')}  evidence: who settled what they awaited`
  return section(title, convoys, max(MAX.convoys), (convoy) =>
    paragraph(prose(recordedSentence(convoy)), '  ', '    '))
}

/** @param {Model} model @param {Context} context */
function failures ({ failures }, context) {
  const first = failures.find(({ stack }) => stack !== undefined)
  return section(context.colours.bold('What failed'), failures, context.max(MAX.failures), (failure) =>
    failureLines(failure, context.isFull || failure === first, context))
}

/** @param {Failure} failure @param {boolean} hasStack print its chain @param {Context} context */
function failureLines (failure, hasStack, { colours, frame: nameOf, isFull, paragraph }) {
  const { type, message, at: frame, count, routes, firstUnixMs, lastUnixMs, stack } = failure
  const start = message.startsWith(`${type}: `) ? '' : word(type) + (message === '' ? '' : ': ')
  const head = start + word(message, MAX_MESSAGE_CHARS)
  const place = frame === undefined ? '' : atText(nameOf(frame), colours.cyan)
  const names = routes.slice(0, MAX_ROUTES).map(({ name, count }) =>
    glued(`${word(name)}${routes.length > 1 ? ` (${grouped(count)})` : ''}`))
  if (routes.length > MAX_ROUTES) names.push(glued(counted(routes.length - MAX_ROUTES, 'more route')))
  return [
    ...paragraph(`${colours.red(glued(`${grouped(count)} ×`))} ${prose(head)}${place}`, '  ', '      '),
    ...paragraph(`in ${names.join(', ')}, ${timesOf(firstUnixMs, lastUnixMs)}`, '      '),
    ...(hasStack && stack !== undefined ? stackLines(stack, isFull ? FULL_STACK : SHORT_STACK) : [])
  ]
}

/**
 * Formats the first and last time, with the date if it differs.
 * @param {number} first
 * @param {number} last
 */
function timesOf (first, last) {
  if (first === last) return `at ${clock(first)}`
  const format = moment(first).slice(0, 10) === moment(last).slice(0, 10) ? clock : moment
  return `from ${glued(format(first))} to ${glued(format(last))}`
}

/** Prints the frames and hops of a chain without its message. @param {string} stack @param {number} max */
function stackLines (stack, max) {
  const whole = stack.split(/\r?\n/)
  const start = whole.findIndex((line) => /^ +(?:at|──) /.test(line))
  return start === -1 ? [] : lines(whole.slice(start).join('\n'), max, '    ')
}

/**
 * Lists blockers. Those without a frame name no function and are left out.
 * @param {Model} model @param {Context} context
 */
function blockers ({ blockers }, { colours, max, paragraph }) {
  const notable = blockers.filter(({ at: frame, share, open }) =>
    open || (frame !== undefined && share >= MIN_SHARE))
  return section(colours.bold('Blockers'), notable, max(MAX.blockers), (blocker) => {
    const { name, at: frame, count, totalMs, worstMs, delayedSpans, delayedMs, known, open } = blocker
    const place = frame === undefined ? '' : atText(glued(word(frame, MAX_FRAME)), colours.cyan)
    const blocked = known === 'runs'
      ? `blocked the event loop ${counted(count, 'time')}: ${time(totalMs)} total, ` +
        `${time(worstMs)} max`
      : `${count > 0 ? counted(count, 'span') : 'code'} delayed others, by up to ${time(worstMs)}`
    const delayed = delayedSpans > 0
      ? `; delayed ${counted(delayedSpans, 'span')} by ${time(delayedMs)} total`
      : ''
    const text = paragraph(prose(`${blocked}${delayed}${open ? '; one still runs' : ''}`), '    ')
    return [
      ...paragraph(`${colours.bold(glued(word(name)))}${place}`, '  ', '    '),
      ...(open ? text.map((line) => colours.yellow(line)) : text)
    ]
  })
}

/** @param {Model} model @param {Context} context */
function slowest (model, context) {
  const requests = model.slowest.slice(0, context.max(MAX.slowest))
  const hasNewStack = (/** @type {Digest} */ { stack }, /** @type {number} */ i) =>
    context.isFull && i < WITH_STACK && requests.findIndex((other) => other.stack === stack) === i
  return section(context.colours.bold('Slowest'), requests, requests.length, (request, i) =>
    requestLines(request, hasNewStack(request, i), context))
}

/** @param {Digest} request @param {boolean} hasStack print its stack @param {Context} context */
function requestLines (request, hasStack, context) {
  const { ms, split, waits, delayedBy, delayedMax, queuedMs, stack, startUnixMs, traceId } = request
  const { colours, isFull, paragraph } = context
  const name = colours.bold(glued(nameOf(request))) + outcome(request, context)
  const origin = `at ${clock(startUnixMs)}, ${glued(`trace ${traceId}`)}`
  const details = split === undefined ? [] : [parts(isFull ? split : { ...split, wait: {} }, delayedMax)]
  const minMs = isFull ? VISIBLE_MS : ms * SHORT_SHARE
  const max = isFull ? FULL_PARTS : SHORT_PARTS
  const longest = waits.filter((wait) => wait.ms >= minMs).slice(0, max)
  details.push(...longest.map((wait) => waitText(wait, context)))
  const delayers = delayedBy.filter((delayer) => delayer.ms >= minMs).slice(0, max)
    .map((delayer) => delayerText(delayer, context))
  if (delayers.length > 0) details.push(`delayed by ${delayers.join(', ')}`)
  if (queuedMs !== undefined && queuedMs >= MIN_QUEUED) {
    const longer = glued(`${time(queuedMs)} longer`)
    details.push(`the client waited ${longer} than the span shows: the request lay unread`)
  }
  return [
    ...paragraph(`${name}${glued(' ')} ${origin}`, `  ${time(ms).padStart(8)}  `),
    ...details.flatMap((text) => paragraph(text, INDENT, `${INDENT}  `)),
    ...(hasStack && stack !== undefined ? lines(stack, STACK_LINES, '          ') : [])
  ]
}

/** Names a request by its route, and by its path unless the route contains it. @param {Digest} request */
function nameOf ({ name, attributes }) {
  const path = attributes['url.path']
  return typeof path === 'string' && !name.endsWith(path) ? `${word(name)} (${word(path, 80)})` : word(name)
}

/** @param {Digest} request @param {Context} context */
function outcome ({ status, end, attributes }, { colours }) {
  const code = attributes['http.response.status_code'] ?? attributes['error.type']
  const detail = code === undefined ? '' : ` (${word(String(code), 60)})`
  const failure = status.code === 'ERROR' ? `, ${colours.red(glued(`failed${detail}`))}` : ''
  return failure + (end === undefined ? '' : `, ${colours.yellow(glued(word(end)))}`)
}

/**
 * Formats a wait: where it started, what ended it, how long it took.
 * @param {import('../aggregate/digest').Wait} wait
 * @param {Context} context
 */
function waitText (wait, context) {
  const { ms, count } = wait
  const length = count === 1 ? time(ms) : `${time(ms)} in ${grouped(count)} waits`
  return `waited ${glued(length)} ${placeText(context.isFull ? wait : { ...wait, callers: [] }, context)}`
}

/** @param {import('../aggregate/digest').Delayer} delayer @param {Context} context */
function delayerText ({ name, ms, max = ms, at: frame }, { frame: nameOf }) {
  const site = frame === undefined ? '' : atText(nameOf(frame))
  const length = max > ms ? `${time(ms)} to ${time(max)}` : time(ms)
  return `${glued(`${name === undefined ? 'code outside any span' : word(name)} ${length}`)}${site}`
}

/** Lists open spans; those that wait for the same as one. @param {Model} model @param {Context} context */
function open ({ open, openCount }, { colours, max, paragraph }) {
  const groups = groupsOf(open, (span) => span.pending === undefined
    ? span.spanId
    : JSON.stringify([nameOf(span), span.responding, span.pending.map(({ what }) => what)]))
  const count = groups.length + openCount - open.length
  return section(colours.bold('Still open'), groups, max(MAX.open), ([span, ...others]) => {
    const { blocked, blockedBy, ms, startUnixMs, traceId, pending, responding } = span
    const callback = `a blocking callback${blockedBy === undefined ? '' : ` of ${word(blockedBy)}`}`
    const since = `since ${clock(startUnixMs)}, ${glued(`trace ${traceId}`)}`
    const name = glued(blocked ? callback : nameOf(span))
    const waits = (pending ?? []).map(({ what, ms: length }) =>
      `${word(what)}${length === undefined ? '' : ` for ${glued(time(length))}`}`)
    const none = pending === undefined || responding ? '' : '; no await or connection of it is pending'
    const waiting = (responding ? '; responding' : '') +
      (waits.length === 0 ? none : `; pending: ${waits.join(', ')}`)
    const many = others.length === 0 ? '' : `${grouped(others.length + 1)} × `
    const oldest = others.length === 0 ? '' : 'the oldest '
    const text = `${many}${name}, ${oldest}open for ${glued(time(ms))} when written, ${since}${waiting}`
    return paragraph(text, '  ', '    ')
  }, count)
}

/** Lists open handles of black boxes, by opener. @param {Model} model @param {Context} context */
function handles ({ handles = [] }, { colours, frame: nameOf, max, paragraph }) {
  const isOne = handles.every(({ pid }) => pid === handles[0].pid)
  const agoMs = Math.max(...handles.map((handle) => handle.agoMs ?? -1))
  const age = agoMs < 0 ? '' : `  counted ${time(agoMs)} ago`
  return section(`${colours.bold('Open handles')}${age}`, handles, max(MAX.handles), (handle) => {
    const { pid, thread, noun, at: place, count, keeping } = handle
    const isFrame = place.endsWith(')') || / via \S+$/.test(place)
    const site = place === '' ? '' : ` (${word(place)})`
    const opened = isFrame ? ` opened at ${nameOf(place)}` : site
    const names = [...isOne ? [] : [`process ${pid}`], ...thread === 0 ? [] : [`thread ${thread}`]]
    const owner = names.length === 0 ? '' : `${names.join(', ')}: `
    const kept = keeping === undefined ? '' : `; ${keepingText(count, keeping)} the process alive`
    return paragraph(`${owner}${grouped(count)} × ${word(noun)}${prose(opened)}${kept}`, '  ', '    ')
  })
}

/** @param {number} count @param {number} keeping of them, which keep the process alive */
function keepingText (count, keeping) {
  if (keeping === 0) return count === 1 ? 'does not keep' : 'do not keep'
  if (keeping < count) return `${grouped(keeping)} of them ${keeping === 1 ? 'keeps' : 'keep'}`
  return count === 1 ? 'keeps' : 'keep'
}

/**
 * Lists limits by expression.
 * @param {Model} model
 * @param {Pick<Context, 'colours' | 'paragraph'>} context
 * @returns {string[]}
 */
function limitLines ({ limits = [] }, context) {
  if (limits.length === 0) return []
  const parts = groupsOf(limits, ({ expression }) => expression)
  return [context.colours.bold('Limits'), ...parts.flatMap((checks) => linesOf(checks, context))]
}

/**
 * Lists predictions, each with the error of its own replay.
 * @param {Model} model
 * @param {Context} context
 * @returns {string[]}
 */
function experiments ({ experiments }, { colours, paragraph }) {
  if (experiments === undefined) return []
  return experimentTexts(experiments).flatMap(({ head, predictions }) => [
    ...paragraph(`${colours.bold(glued('What if'))}  ${word(head)}`),
    ...predictions.flatMap((text) => paragraph(prose(word(text, MAX_PREDICTION_CHARS)), '  ', '    '))
  ])
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

/** Describes the result of a check for one route. @param {LimitCheck} check */
function checkText ({ state, route, unit, before, after, needed }) {
  const name = glued(word(route))
  if (state === 'unchecked') {
    if (needed !== undefined) return `not checked for ${name}: fewer than ${counted(needed, 'span')}`
    const run = before === undefined ? 'first' : 'second'
    const isMissing = (before === undefined) !== (after === undefined)
    return `not checked for ${name}: not known${isMissing ? ` in the ${run} run` : ''}`
  }
  const figure = after === undefined ? '' : value(after, unit)
  if (before === undefined || after === undefined) return `${name}: ${glued(figure)}`
  return `${name}: ${glued(`${value(before, unit)} → ${figure}`)} ${glued(`(${changeText(before, after)})`)}`
}

module.exports = {
  MARKS, blockers, checkText, convoys, experiments, failures, handles, limitLines, open, slowest, verdict
}
