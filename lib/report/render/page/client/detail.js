'use strict'

// All that is known of one span of the waterfall.

const { foreign, h } = require('./dom')
const { clock, plural, time } = require('./format')
const { bar, figures, waits, whole } = require('./split')
const { folded, stack } = require('./stack')
const { createTable } = require('./table')

/** @typedef {import('../data').PageSpan} PageSpan @typedef {import('../data').PageTrace} PageTrace */

/** @type {Record<string, string>} */
const ends = {
  open: 'still open when it was written: its duration is that until then',
  aborted: 'aborted by the other side',
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
    span.split !== undefined && whole(span.split) > 0 && parts(span),
    span.waits.length > 0 && sites(span),
    span.delayedBy.length > 0 && delays(span, buttonOf),
    span.events.length > 0 && failures(span, stacks),
    span.stack !== undefined && [h('h4', {}, 'Where it was made'), stack(stacks[span.stack])],
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
    ['Status', h('span', { class: span.status === 'ERROR' ? 'failure' : undefined }, states[span.status] ?? span.status, span.message === undefined ? '' : [' · ', foreign(span.message)])],
    span.end === undefined ? undefined : ['Ended', ends[span.end] ?? foreign(span.end)],
    span.where === undefined ? undefined : ['Service', foreign(span.where)],
    ['Trace', h('code', {}, trace.id)],
    ['Span', h('code', {}, span.id)]
  ])
}

/** @param {PageSpan} span */
function attributes ({ attributes: all }) {
  return h('details', { open: all.length <= 12 }, h('summary', {}, 'Attributes'), pairs(all.map(([name, value]) => [foreign(name), foreign(value)])))
}

/** @param {Array<[any, any] | undefined>} list */
function pairs (list) {
  return h('dl', { class: 'facts' }, list.filter((one) => one !== undefined).map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))))
}

/** @param {PageSpan} span */
function parts ({ split, ms, name }) {
  if (split === undefined) return undefined
  const waited = waits(split)
  const note = waited !== '' && h('p', { class: 'note' }, `Waited for ${waited}.`)
  return [h('h4', {}, 'Where its time went'), bar(split, name), figures(split, ms), note]
}

/** Lists where it waited, with whole paths. @param {PageSpan} span */
function sites ({ waits: all }) {
  const items = all.map(({ ms, count: times, at, until }) => h('li', {},
    h('b', {}, time(ms)),
    times > 1 && ` in ${plural(times, 'wait')}`,
    at !== undefined && [' at ', foreign(at, { class: 'code' })],
    until !== undefined && [' until ', foreign(until)]))
  return [h('h4', {}, 'Where it waited'), h('ul', { class: 'delays' }, items)]
}

/** @param {PageSpan} span @param {(id: string) => any} buttonOf */
function delays ({ delayedBy }, buttonOf) {
  return [h('h4', {}, 'Held up by'), h('ul', { class: 'delays' }, delayedBy.map(({ spanId, name, ms, at }) => {
    const button = spanId === undefined ? undefined : buttonOf(spanId)
    const who = name === undefined ? 'code outside of any span' : foreign(name)
    const go = () => { button.click(); button.focus() }
    return h('li', {}, h('b', {}, time(ms)), ' ', button === undefined ? who : h('button', { type: 'button', class: 'link', on: { click: go } }, who),
      at !== undefined && [' in ', foreign(at, { class: 'code' })])
  }))]
}

/** @param {PageSpan} span @param {string[]} stacks */
function failures ({ events }, stacks) {
  return [h('h4', {}, 'Errors and events'), events.map((event) => h('div', { class: 'event' },
    h('p', { class: 'failure' }, foreign(event.name), event.message === '' ? '' : [': ', foreign(event.message)], event.at === undefined ? '' : ` · after ${time(event.at)}`),
    folded(event.stack === undefined ? undefined : stacks[event.stack])))]
}

/** @param {PageSpan} span */
function runs (span) {
  const table = createTable({
    caption: 'Runs on the loop',
    rows: span.runs,
    most: 8,
    columns: [
      { title: 'What ran', text: true, value: ([, , type]) => type, cell: ([, , type]) => foreign(type === '' ? 'unknown' : type) },
      { title: 'Began after', value: ([start]) => start, cell: ([start]) => time(start) },
      { title: 'Ran for', value: ([, ms]) => ms, cell: ([, ms]) => time(ms) }
    ]
  })
  return [h('h4', {}, 'Its runs on the loop'), h('div', { class: 'narrow' }, table)]
}

module.exports = { detail }
