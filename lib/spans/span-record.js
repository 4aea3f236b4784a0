'use strict'

// A span as it is written: OpenTelemetry's names, and where the time went. As an object for who listens, or as JSON for
// files, which is put together of parts that are prepared once; both say the same to the letter. Data in, data out.

const { begin, put, putBytes, putMilliseconds, putNumber, putPadded, putWhole, text } = require('../encoding/bytes')
const { HEAD_KEYS } = require('./http-attributes')
const { putSpanId, putTraceId } = require('./identities')
const { isRewritten, member, quote, quoteLong, sentenceOf, stringify } = require('../encoding/json')

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('./span').Status} Status
 *
 * @typedef {object} SpanRecord a span, as written in JSON Lines and given to listeners
 * @property {string} traceId 32 hex digits
 * @property {string} spanId 16 hex digits
 * @property {string} [parentSpanId]
 * @property {string} name
 * @property {'SERVER' | 'CLIENT' | 'INTERNAL'} kind
 * @property {string} startTimeUnixNano decimal
 * @property {string} endTimeUnixNano decimal
 * @property {Status} status
 * @property {Record<string, any>} attributes OpenTelemetry's, and `longstack.run_ms` and its like; README tells
 * @property {Array<{ name: string, timeUnixNano: string, attributes: Record<string, unknown> }>} [events]
 * @property {Record<string, unknown>} resource
 *
 * @typedef {object} Surroundings
 * @property {import('./loop-time').LoopTime} loop
 * @property {Record<string, unknown>} resource
 * @property {(span: Span) => string | undefined} stack the long stack of the place that made it
 * @property {(start: number, end: number) => string | undefined} frameAt the innermost frame seen inside a blocked run of that time
 */

const DELAYERS = 5
const WAITS = 10
const UNKNOWN = 'unknown' // the subsystem of a wait where none is known
const RATIO = 'longstack.sample_ratio'

/**
 * Names of attributes that make a record's JSON more than the sum of its parts: those of longstack's figures, which are
 * written over what the program gave, and that of the method that JSON.stringify calls.
 */
const specialNames = new Set(['toJSON', 'code.stacktrace', 'longstack.run_ms', 'longstack.waits', 'longstack.wait_ms', 'longstack.waited_ms',
  'longstack.delayed_ms', 'longstack.delayed_by', 'longstack.runs', RATIO])

const kinds = Object.fromEntries(['SERVER', 'CLIENT', 'INTERNAL'].map((kind) => [kind, `,"kind":"${kind}","startTimeUnixNano":"`]))
const statuses = { UNSET: '{"code":"UNSET"}', OK: '{"code":"OK"}', ERROR: '{"code":"ERROR"}' }

/**
 * @typedef {object} Figures in ms, not rounded
 * @property {string | undefined} trace
 * @property {number} run
 * @property {Wait[]} waits on the critical path, the longest first
 * @property {Record<string, number>} sums of waits, by subsystem of what ended them
 * @property {number} waited
 * @property {number} delayed
 * @property {Delay[]} delays
 *
 * @typedef {object} Wait one or several at the same site
 * @property {number} ms
 * @property {number} count
 * @property {string} [at] the innermost frame of the program where it was registered
 * @property {string} [until] what ended it: subsystem and peer
 * @property {string} [label] of what was waited for
 * @property {string} [subsystem] of what ended it
 *
 * @typedef {{ by: { spanId: string, name: string } | undefined, ms: number, at: string | undefined }} Delay
 */

/** A span that has ended, or is written while it is open. Its figures are taken once, with the first question. */
class Writing {
  /** @param {Span} span @param {Surroundings} surroundings */
  constructor (span, surroundings) {
    this.span = span
    this.surroundings = surroundings
    /** @type {Figures | undefined} */
    this.figures = undefined
    /** the attributes that were given, not longstack's figures @type {string[]} */
    this.keys = []
    /** @type {SpanRecord | undefined} */
    this.made = undefined
  }

  measure () {
    if (this.figures === undefined) {
      this.keys = Object.keys(this.span.attributes)
      this.figures = figuresOf(this.span, this.surroundings)
    }
    return this.figures
  }

  /** Returns the record, the same object each time. @returns {SpanRecord} */
  record () {
    this.made ??= recordOf(this.span, this.measure(), this.surroundings.resource)
    return this.made
  }

  /**
   * Puts the record's JSON into the buffer of bytes.js. False: only JSON.stringify can tell it.
   * @param {number} weight the part of all spans that is written, 1 where it stands for itself
   * @param {() => void} replaced called for each attribute that cannot be written
   * @returns {boolean}
   */
  put (weight, replaced) {
    const figures = this.measure()
    if (isRewritten()) return false
    for (let i = headOf(this.span) === undefined ? 0 : HEAD_KEYS; i < this.keys.length; i++) {
      if (specialNames.has(this.keys[i])) return false
    }
    begin()
    putSpan(this.span, this.keys, figures, this.surroundings.resource, weight, replaced)
    return true
  }

  /**
   * Returns the record's JSON as a text of bytes, undefined where only JSON.stringify can tell it.
   * @param {number} weight
   * @param {() => void} replaced
   * @returns {string | undefined}
   */
  json (weight, replaced) {
    return this.put(weight, replaced) ? text() : undefined
  }

  // What outputs judge it by.
  get ms () { return this.span.end - this.span.start }
  get failed () { return this.span.status.code === 'ERROR' }
  get traceId () { return this.span.traceId }
}

/**
 * The prepared part of its attributes, if they are still the object that it was made for.
 * @param {Span} span
 */
function headOf ({ head, headed, attributes }) {
  return headed === attributes ? head : undefined
}

/** @param {Span} span @param {Surroundings} surroundings @returns {Figures} */
function figuresOf (span, { loop, stack, frameAt }) {
  const total = span.end - span.start
  const run = Math.min(span.run, total)
  const delayed = within(span.delayed, total - run)
  /** @type {Wait[]} */
  const waits = /** @type {any} */ (span).path ?? []
  /** @type {Record<string, number>} */
  const sums = {}
  let waited = 0
  for (const { ms, subsystem = UNKNOWN } of waits) {
    waited += ms
    sums[subsystem] = (sums[subsystem] ?? 0) + ms
  }
  return { trace: stack(span), run, waits, sums, waited, delayed, delays: delayed < 0.2 ? [] : delayers(span, loop, frameAt, delayed) }
}

/** @param {Span} span @param {Figures} figures @param {Record<string, unknown>} resource @returns {SpanRecord} */
function recordOf (span, figures, resource) {
  const { origin, traceId, spanId, parentSpanId, name, kind, status, events } = span
  const startTimeUnixNano = unixNano(origin, span.start)
  const endTimeUnixNano = unixNano(origin, span.end)
  const attributes = addFigures(span, figures)
  /** @type {SpanRecord} */
  const record = parentSpanId === undefined
    ? { traceId, spanId, name, kind, startTimeUnixNano, endTimeUnixNano, status, attributes, resource }
    : { traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, status, attributes, resource }
  if (events !== undefined) record.events = eventsOf(span)
  return record
}

/** @param {Span} span */
function eventsOf ({ origin, events = [] }) {
  return events.map(({ time, ...event }) => ({ ...event, timeUnixNano: unixNano(origin, time) }))
}

/** Adds to the span's own attributes, which nobody needs after this: bench/run.js, longstack-spans. @param {Span} span @param {Figures} figures */
function addFigures ({ attributes, runs, start }, { trace, run, waits, sums, waited, delayed, delays }) {
  if (trace !== undefined) attributes['code.stacktrace'] = trace
  attributes['longstack.run_ms'] = micro(run)
  attributes['longstack.waits'] = waits.slice(0, WAITS).map(waitOf)
  attributes['longstack.wait_ms'] = rounded(sums)
  attributes['longstack.waited_ms'] = micro(waited)
  attributes['longstack.delayed_ms'] = micro(delayed)
  attributes['longstack.delayed_by'] = delays.map(({ by, ms, at }) => ({
    ...(by === undefined ? {} : { spanId: by.spanId, name: by.name }),
    ms: micro(ms),
    ...(at === undefined ? {} : { at })
  }))
  if (runs.length > 0) attributes['longstack.runs'] = runs.map(([begin, ms, type]) => [micro(begin - start), micro(ms), type])
  return attributes
}

/** @param {Wait} wait @returns {Wait} as it is written */
function waitOf ({ ms, count, at, until, label }) {
  return {
    ms: micro(ms),
    count,
    ...(at === undefined ? {} : { at }),
    ...(until === undefined ? {} : { until }),
    ...(label === undefined ? {} : { label })
  }
}

/**
 * @param {Span} span
 * @param {string[]} keys of its attributes, none of them special
 * @param {Figures} figures
 * @param {Record<string, unknown>} resource
 * @param {number} weight
 * @param {() => void} replaced
 */
function putSpan (span, keys, figures, resource, weight, replaced) {
  const { origin, parentSpanId, status, attributes, events } = span
  put('{"traceId":"')
  if (span.seq === undefined || span.trace !== undefined) put(span.traceId)
  else putTraceId(span.seq)
  put('","spanId":"')
  putIdOf(span)
  if (parentSpanId !== undefined) {
    put('","parentSpanId":"')
    put(parentSpanId)
  }
  put('","name":')
  put(quote(span.name))
  put(kinds[span.kind])
  putUnixNano(origin, span.start)
  put('","endTimeUnixNano":"')
  putUnixNano(origin, span.end)
  put('","status":')
  put(status.message === undefined ? statuses[status.code] : stringify(status))
  put(',"attributes":{')
  const head = headOf(span)
  if (head !== undefined) putHead(head, attributes)
  for (let i = head === undefined ? 0 : HEAD_KEYS; i < keys.length; i++) {
    putMember(attributes, keys[i], replaced)
  }
  putFigures(span, figures)
  if (weight !== 1) put(`,"${RATIO}":${weight}`)
  put('},"resource":')
  put(resourceJson(resource))
  if (events !== undefined) {
    put(',"events":')
    put(stringify(eventsOf(span)))
  }
  put('}')
}

/**
 * The first attributes of a request that a server got, with a comma after them: see http.js.
 * @param {Uint8Array} head
 * @param {Record<string, any>} attributes
 */
function putHead (head, attributes) {
  putBytes(head)
  put(quote(attributes['network.peer.address']))
  put(',"network.peer.port":')
  putNumber(attributes['network.peer.port'])
  put(',"network.protocol.version":')
  put(quote(attributes['network.protocol.version']))
  put(',')
}

/**
 * With a comma after it. Nothing is put where anything may fail: half a member would spoil the line.
 * @param {Record<string, unknown>} attributes
 * @param {string} key
 * @param {() => void} replaced
 */
function putMember (attributes, key, replaced) {
  let text
  let name
  try {
    const value = attributes[key]
    if (typeof value === 'string') {
      name = quote(key)
      text = quote(value)
    } else {
      text = member(key, value)
    }
  } catch (error) {
    replaced()
    name = undefined
    text = `${quote(key)}:${stringify(sentenceOf(error))}`
  }
  if (text === undefined) return
  if (name !== undefined) {
    put(name)
    put(':')
  }
  put(text)
  put(',')
}

/** @param {Span} span @param {Figures} figures members of an object */
function putFigures (span, { trace, run, waits, sums, waited, delayed, delays }) {
  if (trace !== undefined) {
    put('"code.stacktrace":')
    put(quoteLong(trace))
    put(',')
  }
  put('"longstack.run_ms":')
  putMilliseconds(run)
  put(',"longstack.waits":[')
  for (let i = 0; i < waits.length && i < WAITS; i++) putWait(waits[i], i)
  put('],"longstack.wait_ms":{')
  putSums(sums)
  put('},"longstack.waited_ms":')
  putMilliseconds(waited)
  put(',"longstack.delayed_ms":')
  putMilliseconds(delayed)
  put(',"longstack.delayed_by":[')
  for (let i = 0; i < delays.length; i++) putDelay(delays[i], i)
  put(']')
  const { notes } = span
  if (notes === undefined) putRuns(span.runs, span.start)
  else if (notes.count > 0) putNotes(notes, span.start)
}

/** @param {import('./span').RunNotes} notes @param {number} start of the span */
function putNotes ({ count, starts, lengths, types }, start) {
  put(',"longstack.runs":')
  for (let i = 0; i < count; i++) putRun(starts[i] - start, lengths[i], types[i], i)
  put(']')
}

/** @param {Array<[number, number, string]>} runs @param {number} start of the span */
function putRuns (runs, start) {
  if (runs.length === 0) return
  put(',"longstack.runs":')
  for (let i = 0; i < runs.length; i++) putRun(runs[i][0] - start, runs[i][1], runs[i][2], i)
  put(']')
}

/**
 * @param {number} begun ms after the start of the span
 * @param {number} ms
 * @param {string} type
 * @param {number} i
 */
function putRun (begun, ms, type, i) {
  put(i === 0 ? '[[' : ',[')
  putMilliseconds(begun)
  put(',')
  putMilliseconds(ms)
  put(',')
  put(quote(type))
  put(']')
}

/** @param {Wait} wait @param {number} i */
function putWait ({ ms, count, at, until, label }, i) {
  put(i === 0 ? '{"ms":' : ',{"ms":')
  putMilliseconds(ms)
  put(',"count":')
  putNumber(count)
  putOptional(',"at":', at)
  putOptional(',"until":', until)
  putOptional(',"label":', label)
  put('}')
}

/** @param {string} key @param {string | undefined} value */
function putOptional (key, value) {
  if (value === undefined) return
  put(key)
  put(quote(value))
}

/** @param {Record<string, number>} sums ms by name */
function putSums (sums) {
  let isFirst = true
  for (const name of Object.keys(sums)) {
    if (!isFirst) put(',')
    isFirst = false
    put(quote(name))
    put(':')
    putMilliseconds(sums[name])
  }
}

/** @param {Delay} delay @param {number} i */
function putDelay ({ by, ms, at }, i) {
  put(i === 0 ? '{' : ',{')
  if (by !== undefined) {
    put('"spanId":"')
    putIdOf(by)
    put('","name":')
    put(quote(by.name))
    put(',')
  }
  put('"ms":')
  putMilliseconds(ms)
  putOptional(',"at":', at)
  put('}')
}

/** @param {{ spanId: string, seq?: number, id?: string }} by a span, or who it is */
function putIdOf (by) {
  if (by.seq === undefined || by.id !== undefined) put(by.spanId)
  else putSpanId(by.seq)
}

/** @type {Record<string, unknown> | undefined} */
let lastResource
let lastResourceJson = ''

/** @param {Record<string, unknown>} resource */
function resourceJson (resource) {
  if (resource !== lastResource) {
    lastResource = resource
    lastResourceJson = stringify(resource)
  }
  return lastResourceJson
}

/** @param {Record<string, number>} sums ms by name */
function rounded (sums) {
  /** @type {Record<string, number>} */
  const result = {}
  for (const name of Object.keys(sums)) result[name] = micro(sums[name])
  return result
}

/** @param {Span} span @param {Surroundings['loop']} loop @param {Surroundings['frameAt']} frameAt @param {number} most ms @returns {Delay[]} */
function delayers (span, loop, frameAt, most) {
  let rest = most // the share of many short runs in a part of their time is an estimate
  return loop.delayers(span, span.end, DELAYERS).map(({ span: by, ms: given, start, longest }) => {
    const ms = Math.min(given, rest)
    rest -= ms
    return { by, ms, at: frameAt(start, start + longest) }
  })
}

/** Sums of small figures are not exact. @param {number} ms @param {number} most */
function within (ms, most) {
  return Math.max(0, Math.min(ms, most))
}

/** @param {number} ms */
function micro (ms) {
  return Math.round(ms * 1000) / 1000
}

/**
 * @param {number} origin ms since 1970
 * @param {number} time ms after it
 * @returns {string} ns since 1970
 */
function unixNano (origin, time) {
  const us = Math.floor(origin * 1000) // below 2 ** 53, which ns are not
  const ns = Math.round(time * 1e6)
  const high = us + Math.floor(ns / 1000)
  const low = ns - Math.floor(ns / 1000) * 1000
  const seconds = Math.floor(high / 1e6)
  // In two small integers, which are faster to print than a large one.
  if (seconds >= 1) return seconds + String(1e9 + (high - seconds * 1e6) * 1000 + low).slice(1)
  return `${high}${low < 10 ? '00' : low < 100 ? '0' : ''}${low}`
}

/** The same, put into the buffer of bytes.js. @param {number} origin @param {number} time */
function putUnixNano (origin, time) {
  const us = Math.floor(origin * 1000)
  const ns = Math.round(time * 1e6)
  const high = us + Math.floor(ns / 1000)
  const seconds = Math.floor(high / 1e6)
  if (!(seconds >= 1 && seconds < 0x7fffffff)) return put(unixNano(origin, time))
  putWhole(seconds)
  putPadded((high - seconds * 1e6) * 1000 + ns - Math.floor(ns / 1000) * 1000, 9)
}

module.exports = { Writing, unixNano }
