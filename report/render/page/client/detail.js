'use strict'

// Renders one span of the waterfall in full.

const { foreign, h } = require('./dom')
const { clock, plural, time } = require('./format')
const { bar, figures, sumOf, waits } = require('./split')
const { folded, stack } = require('./stack')
const { createTable } = require('./table')
const { typeInWords } = require('./words')
const { shortFrame } = require('../../../../lib/text')

/**
 * @typedef {import('../traces').PageSpan} PageSpan
 * @typedef {import('../traces').PageTrace} PageTrace
 */

const OPEN_ATTRIBUTES = 12 // more are collapsed at first
const GAP_ROUNDING_MS = 0.002
const MAX_RUNS = 8 // until the button for all is pressed

/** @type {Record<string, string>} */
const ends = {
  open: 'still open when written; the duration is until then',
  aborted: 'aborted by the peer',
  timeout: 'timed out',
  upgraded: 'upgraded to another protocol'
}

/** @type {Record<string, string>} */
const states = { UNSET: 'no error', OK: 'ok', ERROR: 'error' }

/**
 * @param {PageSpan} span
 * @param {PageTrace} trace
 * @param {string[]} stacks
 * @param {(id: string) => any} buttonOf a span of the same trace
 * @returns {any[]}
 */
function detail (span, trace, stacks, buttonOf) {
  return [
    h('h3', {}, foreign(span.name)),
    facts(span, trace),
    span.split !== undefined && sumOf(span.split) > 0 && parts(span),
    span.waits.length > 0 && sites('Where it waited', span.waits, 'wait', 'until'),
    span.ran.length > 0 && sites('Where it ran', span.ran, 'callback', 'after'),
    span.delayedBy.length > 0 && delays(span, buttonOf),
    span.events.length > 0 && failures(span, stacks),
    span.stack !== undefined && [h('h4', {}, 'Created at'), stack(stacks[span.stack])],
    span.runs.length > 0 && runs(span),
    span.attributes.length > 0 && attributes(span)
  ].flat(2).filter(Boolean)
}

/** @param {PageSpan} span @param {PageTrace} trace */
function facts (span, trace) {
  return pairs([
    ['Took', time(span.ms)],
    ['Started', `+ ${time(span.start)} · ${clock((trace.startUnixMs ?? NaN) + span.start)} UTC`],
    ['Kind', span.kind.toLowerCase()],
    ['Status', status(span)],
    span.end === undefined ? undefined : ['Ended', ends[span.end] ?? foreign(span.end)],
    span.where === undefined ? undefined : ['Service', foreign(span.where)],
    ['Trace', h('code', {}, trace.id)],
    ['Span', h('code', {}, span.id)]
  ])
}

/** @param {PageSpan} span */
function status ({ status: code, message }) {
  const text = message === undefined ? '' : [' · ', foreign(message)]
  return h('span', { class: code === 'ERROR' ? 'failure' : undefined }, states[code] ?? code, text)
}

/** @param {PageSpan} span */
function attributes (span) {
  const list = pairs(span.attributes.map(([name, value]) => [foreign(name), foreign(value)]))
  const open = span.attributes.length <= OPEN_ATTRIBUTES
  return h('details', { open }, h('summary', {}, 'Attributes'), list)
}

/** @param {Array<[any, any] | undefined>} list */
function pairs (list) {
  const present = list.filter((pair) => pair !== undefined)
  const items = present.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value)))
  return h('dl', { class: 'facts' }, items)
}

/** @param {PageSpan} span */
function parts ({ split, ms, name }) {
  if (split === undefined) return undefined
  const waited = waits(split)
  const note = waited !== '' && h('p', { class: 'note' }, `Waited for ${waited}.`)
  return [h('h4', {}, 'Where its time went'), bar(split, name), figures(split, ms), note]
}

/**
 * Lists the sites of its critical path, with full paths.
 * @param {string} title
 * @param {import('../rows').Wait[]} list
 * @param {string} noun
 * @param {string} preposition of what ended a wait, or of what a callback came after
 */
function sites (title, list, noun, preposition) {
  const items = list.map(({ ms, delayed, count: times, at: frame, until, callers }) => h('li', {},
    h('b', {}, time(ms)),
    times > 1 && ` in ${plural(times, noun)}`,
    frame !== undefined && [' at ', foreign(frame, { class: 'code' })],
    callers.map((caller) =>
      h('span', { class: 'callers', title: caller }, ' ← ', foreign(shortFrame(caller)))),
    until !== undefined && [` ${preposition} `, foreign(until)],
    delayed !== undefined && delayed > 0 && h('small', {}, `, then delayed ${time(delayed)}`)))
  return [h('h4', {}, title), h('ul', { class: 'delays' }, items)]
}

/** @param {PageSpan} span @param {(id: string) => any} buttonOf */
function delays ({ delayedBy }, buttonOf) {
  const items = delayedBy.map(({ spanId, name, ms, at: frame }) => {
    const button = spanId === undefined ? undefined : buttonOf(spanId)
    const label = name === undefined ? 'code outside any span' : foreign(name)
    return h('li', {}, h('b', {}, time(ms)), ' ', button === undefined ? label : link(label, button),
      frame !== undefined && [' in ', foreign(frame, { class: 'code' })])
  })
  return [h('h4', {}, 'Delayed by'), h('ul', { class: 'delays' }, items)]
}

/** Makes a link that presses another button. @param {any} label @param {any} button */
function link (label, button) {
  const go = () => { button.click(); button.focus() }
  return h('button', { type: 'button', class: 'link', on: { click: go } }, label)
}

/** @param {PageSpan} span @param {string[]} stacks */
function failures ({ events }, stacks) {
  const items = events.map(({ name, message, at: ms, stack }) => h('div', { class: 'event' },
    h('p', { class: 'failure' }, foreign(name), message === '' ? '' : [': ', foreign(message)],
      ms === undefined ? '' : ` · after ${time(ms)}`),
    folded(stack === undefined ? undefined : stacks[stack])))
  return [h('h4', {}, 'Errors and events'), items]
}

/** @param {PageSpan} span */
function runs (span) {
  const table = createTable({
    caption: 'Callbacks',
    rows: span.runs,
    maxRows: MAX_RUNS,
    columns: [
      {
        title: 'What',
        text: true,
        value: ([, , type]) => type,
        cell: ([, , type]) => typeInWords(type)
      },
      { title: 'After', text: true, class: 'after', cell: (run) => afterCell(span, run) },
      { title: 'Start', value: ([start]) => start, cell: ([start]) => time(start) },
      { title: 'Duration', value: ([, ms]) => ms, cell: ([, ms]) => time(ms) }
    ]
  })
  return [h('h4', {}, 'Callbacks on the event loop'), h('div', { class: 'narrow' }, table.element)]
}

/**
 * Names the wait that a callback ended, if it is certain.
 * @param {PageSpan} span
 * @param {PageSpan['runs'][number]} run
 */
function afterCell ({ gaps, waits }, [start]) {
  const gap = gaps.find(([begin, ms]) => Math.abs(begin + ms - start) < GAP_ROUNDING_MS)
  if (gap === undefined) return ''
  const { at: frame, until } = waits[gap[2]]
  const site = frame === undefined
    ? foreign(until ?? '')
    : foreign(shortFrame(frame), { class: 'code', title: frame })
  return [`${time(gap[1])} at `, site]
}

module.exports = { detail }
