'use strict'

// Display names for Node's resource types, for sites and for the ends of waits; and the full description of
// one span of the waterfall.

const { facts, folded, foreign, h, link, stack } = require('./dom')
const { splitDetail } = require('./routes')
const { createTable, figure, textual } = require('./table')
const { clock, counted, time } = require('../../format')
const { waitGapsOf } = require('../../wait-gaps')
const { shortFrame } = require('../../../../lib/text')

/**
 * @typedef {{ at?: string, callers?: string[], until?: string, label?: string }} Place
 * @typedef {import('../../../aggregate/digest').Digest} Digest
 * @typedef {import('../data').PageTrace} PageTrace
 */

const OPEN_ATTRIBUTES = 12 // more than these are initially collapsed
const GAP_ROUNDING_MS = 0.002
const MAX_RUNS = 8 // shown until the button for all is pressed

/** @type {Record<string, string>} */
const ends = {
  open: 'still open when written; the duration is until then',
  aborted: 'aborted by the peer',
  cancelled: 'cancelled by the program',
  timeout: 'timed out',
  upgraded: 'upgraded to another protocol'
}
/** @type {Record<string, string>} */
const states = { UNSET: 'no error', OK: 'ok', ERROR: 'error' }

/** Node's resource types by what their callbacks deliver. @type {Record<string, string>} */
const typesByWord = {
  'HTTP request': 'HTTPINCOMINGMESSAGE',
  'HTTP response of a peer': 'HTTPCLIENTREQUEST UNDICI_REQUEST',
  'HTTP/2 session': 'HTTP2SESSION',
  'HTTP/2 stream': 'HTTP2STREAM',
  'data on a TCP connection': 'TCPWRAP',
  'TCP connect': 'TCPCONNECTWRAP',
  'TCP connection accepted': 'TCPSERVERWRAP',
  'data on a pipe': 'PIPEWRAP',
  'pipe connect': 'PIPECONNECTWRAP',
  'data on a TLS connection': 'TLSWRAP',
  'UDP message': 'UDPWRAP UDPSENDWRAP',
  'data written': 'WRITEWRAP',
  'end of a connection': 'SHUTDOWNWRAP',
  'name lookup': 'GETADDRINFOREQWRAP GETNAMEINFOREQWRAP QUERYWRAP',
  'file system call': 'FSREQCALLBACK FSREQPROMISE',
  file: 'FILEHANDLE',
  timer: 'Timeout',
  setImmediate: 'Immediate',
  'process.nextTick': 'TickObject',
  queueMicrotask: 'Microtask',
  promise: 'PROMISE',
  compression: 'ZLIB',
  hash: 'PBKDF2REQUEST SCRYPTREQUEST HASHREQUEST',
  'random bytes': 'RANDOMBYTESREQUEST',
  'child process': 'PROCESSWRAP',
  'worker thread': 'WORKER',
  'message of a thread': 'MESSAGEPORT'
}
const words = new Map(Object.entries(typesByWord).flatMap(([word, types]) =>
  types.split(' ').map((type) => [type, word])))

/** Returns the display name of a type, with the raw name as its title. @param {string} type */
const typeInWords = (type) => foreign(words.get(type) ?? type, { title: type })

/** Returns what ended a wait, or what the wait was for. @param {Place} place */
const endOf = ({ until, label }) => until ?? label

/**
 * Returns frames from the outermost caller down to the site.
 * @param {{ at?: string, callers: string[] }} site
 */
const framesOf = ({ at: frame, callers }) => [...callers].reverse().concat(frame ?? [])

/** @param {string} frame */
const shortCode = (frame) => foreign(shortFrame(frame), { class: 'code', title: frame })

/** @param {string[]} [callers] innermost first */
const callersOf = (callers = []) => callers.map((caller) =>
  h('span', { class: 'callers', title: caller }, ' ← ', foreign(shortFrame(caller), { class: 'code' })))

/**
 * Names a site with its callers and the end of its waits.
 * @param {Place} place
 * @param {(() => void) | undefined} open shows the site in the flame graph
 */
function siteName (place, open) {
  const { at: frame, callers } = place
  const until = endOf(place)
  const name = frame === undefined
    ? foreign('not known', { class: 'code' })
    : open === undefined
      ? shortCode(frame)
      : link(foreign(shortFrame(frame)), open, { class: 'code', title: `${frame}: show in the flame graph` })
  const end = until !== undefined && h('small', { class: 'until' }, 'until ', foreign(until))
  return [name, callersOf(callers), end]
}

/**
 * Formats a wait: where it started, how long it took, what ended it.
 * @param {Place & { ms: number, count: number }} wait
 */
function waitText (wait) {
  const { ms, count, at: frame } = wait
  const until = endOf(wait)
  const length = count === 1 ? time(ms) : `${time(ms)} in ${counted(count, 'wait')}`
  return [frame && shortFrame(frame), length, until && `until ${until}`].filter(Boolean).join(' · ')
}

/**
 * @param {Digest} span
 * @param {PageTrace} trace
 * @param {(id: string) => any} buttonOf returns the button of a span in the same trace
 * @returns {any[]}
 */
function spanDetail (span, trace, buttonOf) {
  const { split, name, waits, ran, delayedBy, events, runs } = span
  const attributes = Object.entries(span.attributes)
  return [
    h('h3', {}, foreign(name)),
    spanFacts(span, trace),
    split !== undefined && split.run + split.waited + split.delayed > 0 &&
      [h('h4', {}, 'Where its time went'), splitDetail(split, name)],
    listOf('Where it waited', waits.map((wait) => siteItem(wait, 'wait', 'until'))),
    listOf('Where it ran', ran.map((site) => siteItem(site, 'callback', 'after'))),
    listOf('Delayed by', delayedBy.map((delayer) => delayerItem(delayer, buttonOf))),
    events.length > 0 && [h('h4', {}, 'Errors and events'), events.map((event) => eventItem(event, span))],
    span.stack !== undefined && [h('h4', {}, 'Created at'), stack(span.stack)],
    runs.length > 0 && callbacks(span),
    attributes.length > 0 && h('details', { open: attributes.length <= OPEN_ATTRIBUTES },
      h('summary', {}, 'Attributes'),
      facts(attributes.map(([key, value]) => [foreign(key), foreign(String(value))])))
  ].flat(Infinity).filter(Boolean)
}

/** @param {Digest} span @param {PageTrace} trace */
function spanFacts ({ ms, startUnixMs, kind, status: { code, message }, end, service, spanId }, trace) {
  return facts([
    ['Took', time(ms)],
    ['Started', `+ ${time(startUnixMs - trace.startUnixMs)} · ${clock(startUnixMs)} UTC`],
    ['Kind', kind.toLowerCase()],
    ['Status', h('span', { class: code === 'ERROR' ? 'failure' : undefined },
      states[code], message !== undefined && [' · ', foreign(message)])],
    end !== undefined && ['Ended', ends[end] ?? foreign(end)],
    service !== undefined && ['Service', foreign(service)],
    ['Trace', h('code', {}, trace.id)],
    ['Span', h('code', {}, spanId)]
  ])
}

/** @param {string} title @param {any[]} items */
const listOf = (title, items) => items.length > 0 && [h('h4', {}, title), h('ul', { class: 'delays' }, items)]

/**
 * Describes a site of a span's critical path, with its callers.
 * @param {import('../../../aggregate/digest').Ran & { delayed?: number }} site
 * @param {string} noun
 * @param {string} preposition precedes what ended a wait, or what a callback followed
 */
function siteItem (site, noun, preposition) {
  const { ms, delayed = 0, count, at: frame, callers } = site
  const end = endOf(site)
  return h('li', {}, h('b', {}, time(ms)), count > 1 && ` in ${counted(count, noun)}`,
    frame !== undefined && [' at ', foreign(frame, { class: 'code' })], callersOf(callers),
    end !== undefined && [` ${preposition} `, foreign(end)],
    delayed > 0 && h('small', {}, `, then delayed ${time(delayed)}`))
}

/** @param {Digest['delayedBy'][number]} delayer @param {(id: string) => any} buttonOf */
function delayerItem ({ spanId, name, ms, at: frame }, buttonOf) {
  const button = spanId === undefined ? undefined : buttonOf(spanId)
  const label = name === undefined ? 'code outside any span' : foreign(name)
  const go = () => { button.click(); button.focus() }
  return h('li', {}, h('b', {}, time(ms)), ' ', button === undefined ? label : link(label, go),
    frame !== undefined && [' in ', foreign(frame, { class: 'code' })])
}

/** @param {Digest['events'][number]} event @param {Digest} span */
function eventItem (event, { startUnixMs }) {
  const { name, message = '', unixMs, stack: text } = event
  return h('div', { class: 'event' },
    h('p', { class: 'failure' }, foreign(name), message !== '' && [': ', foreign(message)],
      unixMs > 0 && ` · after ${time(unixMs - startUnixMs)}`),
    folded(text))
}

/** Lists callbacks, with the waits that they certainly ended. @param {Digest} span */
function callbacks (span) {
  const { runs } = span
  const gaps = waitGapsOf(span)
  const waitBefore = (/** @type {Digest['runs'][number]} */ [start]) => {
    const gap = gaps.find(({ end }) => Math.abs(end - start) < GAP_ROUNDING_MS)
    if (gap === undefined) return ''
    const { at: frame } = gap.wait
    const site = frame === undefined ? foreign(endOf(gap.wait) ?? '') : shortCode(frame)
    return [`${time(gap.end - gap.start)} at `, site]
  }
  const table = createTable({
    caption: 'Callbacks',
    rows: runs,
    maxRows: MAX_RUNS,
    columns: [
      textual('What', ([, , type]) => type, { cell: ([, , type]) => typeInWords(type) }),
      { title: 'After', text: true, class: 'after', cell: waitBefore },
      figure('Start', ([start]) => start, time),
      figure('Duration', ([, ms]) => ms, time)
    ]
  })
  return [h('h4', {}, 'Callbacks on the event loop'), h('div', { class: 'narrow' }, table.element)]
}

module.exports = { endOf, framesOf, shortCode, siteName, spanDetail, waitText }
