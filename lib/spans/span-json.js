'use strict'

// The JSON of a span's record, put together in the buffer of bytes.js of parts that are prepared once. To the
// letter what JSON.stringify makes of the record (span-record.js): test/spans/spans-line.test.js. Hot path:
// bench/run.js, longstack-spans.

const { put, putBytes, putMilliseconds, putNumber } = require('../encoding/bytes')
const { member, quote, quoteLong, sentenceOf, stringify } = require('../encoding/json')
const { putOptional, putPath } = require('./path-json')
const { PREPARED_KEYS } = require('./prepared-attributes')
const { putSpanId, putTraceId } = require('./identities')
const { putUnixNano, unixNano } = require('./unix-nano')

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('./span-figures').Figures} Figures
 * @typedef {import('./span-figures').Delay} Delay
 * @typedef {import('./span-figures').Delayer} Delayer
 */

const kinds = Object.fromEntries(['SERVER', 'CLIENT', 'INTERNAL'].map((kind) => {
  return [kind, `,"kind":"${kind}","startTimeUnixNano":"`]
}))
const statuses = { UNSET: '{"code":"UNSET"}', OK: '{"code":"OK"}', ERROR: '{"code":"ERROR"}' }

/** Returns the events of a span as they are written. @param {Span} span */
function eventsOf ({ origin, events = [] }) {
  return events.map(({ time, ...event }) => ({ ...event, timeUnixNano: unixNano(origin, time) }))
}

/**
 * Returns the prepared JSON of its first attributes, if they still are the object that it was prepared for.
 * @param {Span} span
 */
function preparedOf ({ preparedJson, preparedFor, attributes }) {
  return preparedFor === attributes ? preparedJson : undefined
}

/**
 * Puts a record into the buffer of bytes.js.
 * @param {Span} span
 * @param {string[]} keys of its attributes, none of them special
 * @param {Figures} figures
 * @param {Record<string, unknown>} resource
 * @param {number} weight
 * @param {() => void} onReplaced
 */
function putSpan (span, keys, figures, resource, weight, onReplaced) {
  const { origin, parentSpanId, status, attributes, events } = span
  put('{"traceId":"')
  if (span.seq === undefined || span.traceIdText !== undefined) put(span.traceId)
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
  const prepared = preparedOf(span)
  if (prepared !== undefined) putPrepared(prepared, attributes)
  for (let i = prepared === undefined ? 0 : PREPARED_KEYS; i < keys.length; i++) {
    putMember(attributes, keys[i], onReplaced)
  }
  putFigures(span, figures)
  if (weight !== 1) put(`,"longstack.sample_ratio":${weight}`)
  put('},"resource":')
  put(resourceJson(resource))
  if (events !== undefined) {
    put(',"events":')
    put(stringify(eventsOf(span)))
  }
  put('}')
}

/**
 * Puts the first attributes of a request that a server got, with a comma after them: see
 * prepared-attributes.js.
 * @param {Uint8Array} prepared
 * @param {Record<string, any>} attributes
 */
function putPrepared (prepared, attributes) {
  putBytes(prepared)
  put(quote(attributes['network.peer.address']))
  put(',"network.peer.port":')
  putNumber(attributes['network.peer.port'])
  put(',"network.protocol.version":')
  put(quote(attributes['network.protocol.version']))
  put(',')
}

/**
 * Puts an attribute, with a comma after it. Nothing is put before what may throw: half a member would spoil
 * the line.
 * @param {Record<string, unknown>} attributes
 * @param {string} key
 * @param {() => void} onReplaced
 */
function putMember (attributes, key, onReplaced) {
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
    onReplaced()
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

/** Puts the figures, as members of an object. @param {Span} span @param {Figures} figures */
function putFigures (span, figures) {
  const { trace, run, sums, waited, delayed, delayedMax, delayers, delays } = figures
  if (trace !== undefined) {
    put('"code.stacktrace":')
    put(quoteLong(trace))
    put(',')
  }
  put('"longstack.run_ms":')
  putMilliseconds(run)
  putPath(figures)
  put(',"longstack.wait_ms":{')
  putSums(sums)
  put('},"longstack.waited_ms":')
  putMilliseconds(waited)
  put(',"longstack.delayed_ms":')
  putMilliseconds(delayed)
  if (delayedMax > delayed) {
    put(',"longstack.delayed_max_ms":')
    putMilliseconds(delayedMax)
  }
  put(',"longstack.delayed_by":[')
  for (let i = 0; i < delayers.length; i++) putDelayer(delayers[i], i)
  put(']')
  if (delays.length > 0) putDelays(delays)
  const { longestRuns } = span
  if (longestRuns === undefined) putRuns(span.runs, span.start)
  else if (longestRuns.count > 0) putLongestRuns(longestRuns, span.start)
}

/** @param {import('./longest-runs').LongestRuns} runs @param {number} start of the span */
function putLongestRuns ({ count, starts, lengths, types }, start) {
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
 * @param {number} begin ms after the start of the span
 * @param {number} ms
 * @param {string} type
 * @param {number} i
 */
function putRun (begin, ms, type, i) {
  put(i === 0 ? '[[' : ',[')
  putMilliseconds(begin)
  put(',')
  putMilliseconds(ms)
  put(',')
  put(quote(type))
  put(']')
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

/** Puts when the span was delayed. @param {Delay[]} delays */
function putDelays (delays) {
  put(',"longstack.delays":')
  for (let i = 0; i < delays.length; i++) {
    const { start, ms, certain } = delays[i]
    put(i === 0 ? '[[' : ',[')
    putMilliseconds(start)
    put(',')
    putMilliseconds(ms)
    if (certain < ms) {
      put(',')
      putMilliseconds(certain)
    }
    put(']')
  }
  put(']')
}

/** @param {Delayer} delayer @param {number} i */
function putDelayer ({ by: delayer, ms, max, at: frame }, i) {
  put(i === 0 ? '{' : ',{')
  if (delayer !== undefined) {
    put('"spanId":"')
    putIdOf(delayer)
    put('","name":')
    put(quote(delayer.name))
    put(',')
  }
  put('"ms":')
  putMilliseconds(ms)
  if (max > ms) {
    put(',"max":')
    putMilliseconds(max)
  }
  putOptional(',"at":', frame)
  put('}')
}

/** @param {{ spanId: string, seq?: number, spanIdText?: string }} span or its identity */
function putIdOf (span) {
  if (span.seq === undefined || span.spanIdText !== undefined) put(span.spanId)
  else putSpanId(span.seq)
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

module.exports = { eventsOf, preparedOf, putSpan }
