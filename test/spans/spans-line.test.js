'use strict'

// A line of a file with its references resolved equals the record that listeners get.

const { isDeepStrictEqual } = require('node:util')
const test = require('ava')
const { Definitions } = require('../../lib/encoding/definitions')
const { lineOf } = require('../../lib/encoding/serialize')
const { delaysOf, sumsOf, us } = require('../../lib/encoding/span-figures')
const { SpanForm } = require('../../lib/encoding/span-form')
const { unixNano } = require('../../lib/encoding/times')
const { recordsOf } = require('../helpers/records')

/** A generator of numbers from 0 to 1 that repeats itself. @param {number} seed */
function seeded (seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const strings = ['', 'GET /users/*', 'a"b\\c', '\u0000\u001f\u007f\u0080', 'é ü ß', '漢字 🙂', '\ud800', 'x\udc00y', '\u2028\u2029', '\n\t\r\b\f', '</script>', 'x'.repeat(5000),
  '__proto__', 'constructor', 'toJSON', '12', '-0', '\ufeff']
const cycle = { self: /** @type {unknown} */ (undefined) }
cycle.self = cycle
const values = [...strings, undefined, null, true, false, 0, -0, 1, -1.5, 1e21, 1e-7, 2 ** 53, 0.1 + 0.2, NaN, Infinity, -Infinity, 10n, Symbol('s'), () => {},
  [], [1, 'a', undefined, [null]], {}, { deep: { er: [1, { x: 'y' }] } }, [NaN, () => {}], new Date(0), new Date(NaN), new Map([[1, 2]]), Buffer.from('hi'), cycle,
  Object('boxed'), Object(1), { toJSON: (/** @type {string} */ key) => `as ${key}` }, { toJSON: () => undefined }, { toJSON () { throw new Error('toJSON\nsecond') } },
  { toJSON () { return 10n } }, { get bad () { throw new TypeError('getter') } }, Object.assign(() => {}, { toJSON: () => 'a function' }),
  new Proxy({}, { get () { throw new Error('trap') }, ownKeys () { throw new Error('trap') } }), Object.create({ inherited: 1 })]

/** @param {() => number} random @param {any[]} list */
const any = (random, list) => list[Math.floor(random() * list.length)]

/** Times of all kinds, some of which no span should have. @param {() => number} random */
const time = (random) =>
  any(random, [
    0,
    0.0004,
    0.0005,
    0.001,
    0.5,
    1,
    12.3456,
    999.9996,
    1000.0005,
    random() * 10,
    random() * 1e5,
    2e9 + random(),
    1e13,
    -0.0001,
    -3.2,
    NaN
  ])

/** @param {() => number} random @param {unknown[]} given values of attributes */
function spanOf (random, given) {
  const start = 1000 * random()
  const some = (/** @type {() => any} */ make, /** @type {number} */ most) =>
    Array.from({ length: Math.floor(random() * most) }, make)
  /** @type {Record<string, unknown>} */
  const attributes = {}
  for (const value of given) {
    const key = any(random, [...strings, 'http.request.method', 'url.path', '7', 'longstack.end'])
    const isGetter = random() < 0.1
    const get = () => { throw new Error('own getter') }
    const property = isGetter ? { get } : { value, writable: true }
    Object.defineProperty(attributes, key, { ...property, enumerable: true, configurable: true })
  }
  return /** @type {any} */ ({
    origin: 1763685600000 + random() * 1e6,
    traceId: 'a'.repeat(32),
    spanId: 'b'.repeat(16),
    parentSpanId: random() < 0.5 ? undefined : 'c'.repeat(16),
    name: any(random, strings),
    kind: any(random, ['SERVER', 'CLIENT', 'INTERNAL']),
    status: any(random, [{ code: 'UNSET' }, { code: 'OK' }, { code: 'ERROR' }, { code: 'ERROR', message: any(random, strings) }]),
    start,
    end: start + Math.abs(time(random) || 0),
    attributes,
    events: random() < 0.8 ? undefined : some(() => ({ name: 'exception', time: start + 1, attributes: { 'exception.type': 'E', 'exception.message': any(random, strings) } }), 3),
    run: time(random),
    path: random() < 0.2 ? undefined : pathOf(random, some),
    shared: random() < 0.5 ? undefined : { 'url.scheme': 'http', 'server.address': any(random, strings) },
    runs: some(() => ({
      start: us(time(random)),
      us: us(time(random)),
      type: any(random, ['Timeout', 'PROMISE', 'HTTPINCOMINGMESSAGE', 'odd "one"']),
      wait: undefined
    }), 6)
  })
}

/**
 * The parts of a critical path.
 * @param {() => number} random
 * @param {(make: () => any, most: number) => any[]} some
 */
function pathOf (random, some) {
  return {
    waits: some(() => waitOf(random), 14),
    ran: random() < 0.3 ? undefined : some(() => ({ ms: time(random), count: 2, site: siteOf(random) }), 14),
    beside: time(random),
    late: some(() => ({ cameAfter: start(random), cameBy: 5 + start(random), until: 12 }), 20)
  }
}

/** A time by which something may have come. @param {() => number} random */
const start = (random) => 5 * random()

/** A wait of the critical path. @param {() => number} random */
function waitOf (random) {
  const maybe = (/** @type {any} */ value) => random() < 0.3 ? undefined : value
  return {
    ms: time(random),
    delayed: time(random),
    delayedMax: time(random),
    count: 1 + Math.floor(random() * 3),
    site: siteOf(random),
    until: any(random, [{}, { until: 'TIMER' }, { until: 'mine' }, { until: 'TCP', peer: '127.0.0.1:15432' },
      { until: 'TCP', request: 'GET /x' }]),
    unproven: random() < 0.2,
    sent: any(random, [0, 0, 1, 3]),
    unsent: any(random, [0, 0.0004, 12.5]),
    beside: any(random, [0, 2]),
    on: maybe([7, 2 ** 30])
  }
}

const place = { function: 'load', file: '/app/x.js', line: 3, column: 5 }

/** @param {() => number} random */
function siteOf (random) {
  const maybe = (/** @type {any} */ value) => random() < 0.3 ? undefined : value
  return {
    at: maybe(any(random, [place, { ...place, via: 'pg' }, { function: 'map', location: 'native' }])),
    callers: maybe([{ function: 'handle', file: '/app/ü.js', line: 1, column: 5 }, { ...place, function: any(random, strings) }]),
    label: maybe(any(random, strings))
  }
}

/** The path that a span of this test was given, as it is read. @param {Record<string, any>} span */
function pathIn ({ path }) {
  const { waits, ran, beside, late } = path ?? { waits: [], ran: undefined, beside: 0, late: [] }
  const noEnd = { until: undefined, peer: undefined, request: undefined }
  return {
    waits: waits.map((/** @type {any} */ wait) => ({ ...wait, ...noEnd, ...wait.until })),
    ran: ran?.map((/** @type {any} */ run) => ({ delayed: 0, ...run })),
    beside,
    late
  }
}

/** What is beside a span. @param {() => number} random */
function surroundingsOf (random) {
  const [above, frame] = [any(random, strings), any(random, strings)]
  const isKnown = random() >= 0.5
  return {
    delayers: [
      { spanId: undefined, name: undefined, us: 3500, max: 3500, at: isKnown ? frame : undefined },
      { spanId: 'd'.repeat(16), name: any(random, strings), us: 1250, max: any(random, [1250, 9000]), at: isKnown ? frame : undefined }
    ],
    resource: any(random, [{ 'service.name': 'shop', 'process.pid': 7 }, { 'service.name': 'ü"' }]),
    trace: isKnown ? `    at f (/app/x.js:1:2)\n${above}` : undefined
  }
}

/** @param {any} span @param {any} surroundings */
function figuresOf (span, { delayers, trace }) {
  const { waits, ran, beside, late } = pathIn(span)
  const sum = (/** @type {string} */ key) => {
    return waits.reduce((/** @type {number} */ all, /** @type {any} */ wait) => all + wait[key], 0)
  }
  const duration = span.end - span.start
  const delayed = us(sum('delayed'))
  return /** @type {any} */ ({
    trace,
    run: us(span.run),
    duration,
    waits,
    ran,
    beside: us(beside),
    ...sumsOf(waits),
    waited: us(sum('ms')),
    delayed,
    delayedMax: Math.max(delayed, us(sum('delayedMax'))),
    delayers: late.length > 0 ? delayers : undefined,
    delays: late.length > 0 ? delaysOf(late, 3 - span.start, duration) : undefined,
    asked: undefined,
    runs: span.runs.length === 0 ? undefined : span.runs
  })
}

/** @param {any} span @param {any} surroundings */
const formOf = (span, surroundings) =>
  new SpanForm(span, figuresOf(span, surroundings), surroundings.resource)

/** @param {Record<string, any>} span a copy, the attributes of which can be added to */
const copy = (span) => ({
  ...span,
  attributes: Object.defineProperties({}, Object.getOwnPropertyDescriptors(span.attributes))
})

/**
 * JSON.stringify calls toJSON with the key; where the whole throws each value is written by itself, without a
 * key.
 * @param {any} record
 */
const keyless = (record) => JSON.parse(JSON.stringify(record).replace(/"as (?:[^"\\]|\\.)*"/g, '"as"'))

test('20,000 odd spans, with and without weight, are written to one file', (t) => {
  const random = seeded(Number(process.env.SEED ?? 7))
  const definitions = new Definitions()
  let text = ''
  const expected = []
  for (let i = 0; i < 20_000; i++) {
    const span = spanOf(random, Array.from({ length: Math.floor(random() * 6) }, () => any(random, values)))
    if (Object.hasOwn(span.attributes, 'toJSON')) continue // makes something else of them
    const surroundings = { ...surroundingsOf(random), resource: { 'service.name': 'ü"', 'process.pid': 7 } }
    const weight = random() < 0.8 ? 1 : any(random, [0.1, 0.5, 1e-7])
    const record = formOf(copy(span), surroundings).record()
    if (weight !== 1) record.attributes['longstack.sample_ratio'] = weight
    const replaced = [0, 0]
    const lines = formOf(copy(span), surroundings)
      .line(definitions, weight, () => { replaced[0]++ })
    text += `${lines}\n`
    expected.push(JSON.parse(lineOf(record, () => { replaced[1]++ })))
    if (replaced[0] !== replaced[1]) return t.deepEqual(replaced, [replaced[1], replaced[1]], `span ${i}`)
  }
  t.false(/[\u2028\u2029]/.test(text))
  const records = recordsOf(text)
  t.is(records.length, expected.length)
  t.true(records.length > 15_000)
  for (let i = 0; i < records.length; i++) {
    const { startTimeUnixNano: start, endTimeUnixNano: end } = expected[i]
    const isForCenturies = Number(end) - Number(start) > 2 ** 53
    if (isForCenturies) expected[i].endTimeUnixNano = records[i].endTimeUnixNano
    const [actual, wanted] = [keyless(records[i]), keyless(expected[i])]
    if (!isDeepStrictEqual(actual, wanted)) return t.deepEqual(actual, wanted, `span ${i}`)
  }
})

test('longstack\'s figures take precedence, and a general toJSON is called', (t) => {
  const random = seeded(1)
  const recordOf = (/** @type {object} */ attributes) => recordsOf(
    formOf({ ...spanOf(random, []), kind: 'INTERNAL', attributes }, surroundingsOf(random))
      .line(new Definitions(), 1, () => {}))[0]
  for (const name of ['longstack.run_ms', 'longstack.waits', 'longstack.wait_ms']) {
    t.not(recordOf({ [name]: 'mine' }).attributes[name], 'mine')
  }
  const prototype = /** @type {any} */ (Array.prototype)
  try {
    prototype.toJSON = () => 'rewritten'
    t.is(recordOf({ value: [] }).attributes.value, 'rewritten')
  } finally {
    delete prototype.toJSON
  }
})

test('the record may be requested before the line, and the line twice', (t) => {
  const random = seeded(2)
  const writing = formOf(spanOf(random, ['a', 1, { b: 2 }]), surroundingsOf(random))
  const record = writing.record()
  t.is(writing.record(), record)
  const expected = JSON.parse(JSON.stringify(record))
  const definitions = new Definitions()
  const first = writing.line(definitions, 1, () => {})
  const second = writing.line(definitions, 1, () => {})
  t.deepEqual(recordsOf(`${first}\n${second}`), [expected, expected])
  t.is(second.split('\n').length, 1, 'what is defined is not defined again')
  definitions.clear()
  t.deepEqual(recordsOf(writing.line(definitions, 1, () => {})), [expected])
})

test('a line is short: repeated values are defined once', (t) => {
  const site = { at: place, callers: [place, place], label: 'await' }
  const waits = ['FS', 'TIMER', 'TCP'].map((until) => ({ ...waitOf(seeded(1)), ms: 12.345, site, until: { until } }))
  const span = { ...spanOf(seeded(5), []), name: 'GET /', start: 0, end: 40, path: { waits, ran: [], beside: 0, late: [] } }
  const definitions = new Definitions()
  const lineOfSpan = () => formOf(copy(span), surroundingsOf(seeded(5)))
    .line(definitions, 1, () => {})
  lineOfSpan()
  t.true(lineOfSpan().length < 700, lineOfSpan())
})

test('waits of the critical path: those of at least 1/100 are listed, all are summed', (t) => {
  const noSite = { at: undefined, callers: undefined, label: undefined }
  const wait = (/** @type {object} */ given) => ({
    ms: 1.23456,
    delayed: 0,
    delayedMax: 0,
    count: 1,
    site: noSite,
    until: {},
    unproven: false,
    sent: 0,
    unsent: 0,
    beside: 0,
    on: undefined,
    ...given
  })
  const site = { at: place, callers: [{ function: 'handle', file: '/app/x.js', line: 9, column: 3 }], label: 'await' }
  const waits = [wait({ ms: 20.00049, delayed: 3.5, delayedMax: 9.5, count: 3, site, until: { until: 'TCP', peer: '127.0.0.1:15432' }, on: [12] }),
    ...Array.from({ length: 11 }, () => wait({ until: { until: 'TIMER' } })), wait({ ms: 0.5 })]
  const recordOf = (/** @type {object | undefined} */ path) =>
    formOf({ ...spanOf(seeded(5), []), start: 0, end: 100, path }, surroundingsOf(seeded(5)))
      .record().attributes
  const attributes = recordOf({ waits, ran: undefined, beside: 0, late: [] })
  const [at, callers] = ['load (/app/x.js:3:5)', ['handle (/app/x.js:9:3)']]
  t.deepEqual(attributes['longstack.waits'][0], { ms: 20, count: 3, delayed: 3.5, delayed_max: 9.5, at, callers, label: 'await', until: 'TCP 127.0.0.1:15432', on: [12] })
  t.deepEqual(attributes['longstack.waits'].slice(1), Array(11).fill({ ms: 1.235, count: 1, until: 'TIMER' }))
  t.deepEqual(attributes['longstack.wait_ms'], { TCP: 20, TIMER: 13.58, unknown: 0.5 })
  t.is(attributes['longstack.waited_ms'], 34.081)
  t.false('longstack.ran' in attributes || 'longstack.beside_ms' in attributes)
  const none = recordOf(undefined)
  t.deepEqual([none['longstack.waits'], none['longstack.wait_ms'], none['longstack.waited_ms']], [[], {}, 0])
})

test('own code on and off the critical path; values that round to zero are omitted', (t) => {
  const site = { at: place, callers: undefined, label: 'await' }
  const ran = Array.from({ length: 12 }, () => ({ ms: 2.0004, count: 1, site }))
  const attributesOf = (/** @type {number} */ beside, end = 100) => {
    const span = { ...spanOf(seeded(5), []), start: 0, end, path: { waits: [], ran, beside, late: [] } }
    return formOf(span, surroundingsOf(seeded(5))).record().attributes
  }
  t.deepEqual(attributesOf(4)['longstack.ran'], Array(12).fill({ ms: 2, count: 1, at: 'load (/app/x.js:3:5)', label: 'await' }))
  t.is(attributesOf(4)['longstack.beside_ms'], 4)
  t.is(attributesOf(0.0005)['longstack.beside_ms'], 0.001)
  t.false('longstack.beside_ms' in attributesOf(0.0004))
  t.deepEqual(attributesOf(0, 201)['longstack.ran'], [], 'less than a 100th of the duration')
})

test('times are printed to the nanosecond', (t) => {
  const exact = (/** @type {number} */ origin, /** @type {number} */ time) =>
    String(BigInt(Math.floor(origin * 1000)) * 1000n + BigInt(Math.round(time * 1e6)))
  const random = seeded(3)
  for (let i = 0; i < 5000; i++) {
    const origin = 1763685600000 + random() * 1e9
    const at = random() * 10 ** (random() * 9)
    if (unixNano(origin, at) !== exact(origin, at)) return t.is(unixNano(origin, at), exact(origin, at))
  }
  t.is(unixNano(0, 0.001), '1000')
  t.is(unixNano(1000, 0), '1000000000')
})
