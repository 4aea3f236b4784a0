'use strict'

// A span's line is put together of prepared parts: it is what JSON.stringify makes of its record, to the
// letter.

const test = require('ava')
const { SpanWriting } = require('../../lib/spans/span-record')
const { unixNano } = require('../../lib/spans/unix-nano')
const { describeServed } = require('../../lib/spans/http-attributes')
const { byteLineOf, byteLineOfJson } = require('../../lib/sinks/serialize')
const { textOf } = require('../../lib/encoding/json')

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
    runs: some(() => [start + time(random), time(random), any(random, ['Timeout', 'PROMISE', 'HTTPINCOMINGMESSAGE', 'odd "one"'])], 6)
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
    until: maybe('TCP 127.0.0.1:15432'),
    unproven: random() < 0.2,
    sent: any(random, [0, 0, 1, 3]),
    unsent: any(random, [0, 0.0004, 12.5]),
    beside: any(random, [0, 2]),
    subsystem: maybe(any(random, ['TCP', 'TIMER', 'FS', 'mine'])),
    on: maybe([7, 2 ** 30])
  }
}

/** @param {() => number} random */
function siteOf (random) {
  const maybe = (/** @type {any} */ value) => random() < 0.3 ? undefined : value
  return {
    at: maybe('load (/app/x.js:3:5)'),
    callers: maybe(['handle (/app/ü.js:1:5)', any(random, strings)]),
    label: maybe(any(random, strings)),
    json: undefined
  }
}

/** @param {() => number} random */
function surroundingsOf (random) {
  const delayers = [{ span: undefined, ms: 3.5, max: 3.5, start: 1, longest: 2 }, { span: { spanId: 'd'.repeat(16), name: any(random, strings) }, ms: 1.25, max: any(random, [1.25, 9]), start: 1, longest: 2 }]
  const [above, frame] = [any(random, strings), any(random, strings)]
  return /** @type {any} */ ({
    loop: { recent: { delayers: () => delayers }, zero: 3 },
    resource: any(random, [{ 'service.name': 'shop', 'process.pid': 7 }, { 'service.name': 'ü"' }]),
    stack: () => undefined,
    frameAt: () => undefined,
    ...(random() < 0.5 ? {} : { stack: () => `    at f (/app/x.js:1:2)\n${above}`, frameAt: () => frame })
  })
}

/** @param {Record<string, any>} span a copy, the attributes of which can be added to */
const copy = (span) => ({
  ...span,
  attributes: Object.defineProperties({}, Object.getOwnPropertyDescriptors(span.attributes))
})

/**
 * JSON.stringify calls toJSON with the key; where the whole throws each value is written by itself, without a
 * key.
 * @param {string} line
 */
const keyless = (line) => line.replace(/"as (?:[^"\\]|\\.)*"/g, '"as"')

test('lines of 20,000 odd spans, with and without weight', (t) => {
  const random = seeded(Number(process.env.SEED ?? 7))
  let whole = 0
  for (let i = 0; i < 20_000; i++) {
    const span = spanOf(random, Array.from({ length: Math.floor(random() * 6) }, () => any(random, values)))
    const surroundings = surroundingsOf(random)
    const weight = random() < 0.8 ? 1 : any(random, [0.1, 0.5, 1e-7])
    const record = new SpanWriting(/** @type {any} */ (copy(span)), surroundings).record()
    if (weight !== 1) record.attributes['longstack.sample_ratio'] = weight
    const replaced = [0, 0]
    const json = new SpanWriting(/** @type {any} */ (copy(span)), surroundings).json(weight, () => {
      replaced[0]++
    })
    const expected = byteLineOf(record, () => { replaced[1]++ })
    if (json === undefined) {
      t.true(Object.hasOwn(span.attributes, 'toJSON'))
      continue
    }
    if (replaced[1] === 0) {
      whole++
      const exact = JSON.stringify(record).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
      if (textOf(json) !== exact) return t.is(textOf(json), exact, `span ${i}`)
    }
    if (keyless(byteLineOfJson(json)) !== keyless(expected)) return t.is(byteLineOfJson(json), expected, `span ${i}`)
    if (replaced[0] !== replaced[1]) return t.deepEqual(replaced, [replaced[1], replaced[1]], `span ${i}`)
  }
  t.true(whole > 5000)
})

test('a name of a figure, and a toJSON for everything, are left to JSON.stringify', (t) => {
  const random = seeded(1)
  const writing = (/** @type {object} */ attributes) =>
    new SpanWriting({ ...spanOf(random, []), attributes }, surroundingsOf(random))
  const names = ['toJSON', 'longstack.run_ms', 'code.stacktrace', 'longstack.sample_ratio', 'longstack.runs', 'longstack.ran', 'longstack.beside_ms']
  for (const name of names) t.is(writing({ [name]: 'mine' }).json(1, () => {}), undefined)
  /** @type {Array<[any, any]>} */
  const prototypes = [[Array.prototype, []], [Object.prototype, {}]]
  for (const [prototype, value] of prototypes) {
    try {
      prototype.toJSON = () => 'rewritten'
      t.is(writing({ value }).json(1, () => {}), undefined)
    } finally {
      delete prototype.toJSON
    }
  }
  t.is(typeof writing({}).json(1, () => {}), 'string')
})

test('the record may be asked for before the line, and the line again', (t) => {
  const random = seeded(2)
  const span = spanOf(random, ['a', 1, { b: 2 }])
  const writing = new SpanWriting(span, surroundingsOf(random))
  const record = writing.record()
  t.is(writing.record(), record)
  const expected = JSON.stringify(record).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
  for (let i = 0; i < 2; i++) t.is(textOf(writing.json(1, () => {}) ?? ''), expected)
})

test('the waits of the critical path: ten are told, all are summed', (t) => {
  const noSite = { at: undefined, callers: undefined, label: undefined, json: undefined }
  const wait = (/** @type {object} */ given) => ({
    ms: 1.23456,
    delayed: 0,
    delayedMax: 0,
    count: 1,
    site: noSite,
    until: undefined,
    unproven: false,
    sent: 0,
    unsent: 0,
    beside: 0,
    subsystem: undefined,
    on: undefined,
    ...given
  })
  const site = { at: 'load (/app/x.js:3:5)', callers: ['handle (/app/x.js:9:3)'], label: 'await', json: undefined }
  const waits = [wait({ ms: 20.00049, delayed: 3.5, delayedMax: 9.5, count: 3, site, until: 'TCP 127.0.0.1:15432', subsystem: 'TCP', on: [12] }),
    ...Array.from({ length: 11 }, () => wait({ subsystem: 'TIMER' })), wait({ ms: 0.5 })]
  const recordOf = (/** @type {object | undefined} */ path) =>
    new SpanWriting({ ...spanOf(seeded(5), []), start: 0, end: 100, path }, surroundingsOf(seeded(5)))
      .record().attributes
  const attributes = recordOf({ waits, ran: undefined, beside: 0, late: [] })
  const { at, callers, label } = site
  t.deepEqual(attributes['longstack.waits'][0], { ms: 20, count: 3, delayed: 3.5, delayed_max: 9.5, at, callers, label, until: 'TCP 127.0.0.1:15432', on: [12] })
  t.deepEqual(attributes['longstack.waits'].slice(1), Array(9).fill({ ms: 1.235, count: 1 }))
  t.deepEqual(attributes['longstack.wait_ms'], { TCP: 20, TIMER: 13.58, unknown: 0.5 })
  t.is(attributes['longstack.waited_ms'], 34.081)
  t.false('longstack.ran' in attributes || 'longstack.beside_ms' in attributes)
  const none = recordOf(undefined)
  t.deepEqual([none['longstack.waits'], none['longstack.wait_ms'], none['longstack.waited_ms']], [[], {}, 0])
})

test('own code on the critical path and beside it; what is zero once rounded is left out', (t) => {
  const site = { at: 'load (/app/x.js:3:5)', callers: undefined, label: 'await', json: undefined }
  const ran = Array.from({ length: 12 }, () => ({ ms: 2.0004, count: 1, site }))
  const attributesOf = (/** @type {number} */ beside, end = 100) => {
    const span = { ...spanOf(seeded(5), []), start: 0, end, path: { waits: [], ran, beside, late: [] } }
    return new SpanWriting(span, surroundingsOf(seeded(5))).record().attributes
  }
  t.deepEqual(attributesOf(4)['longstack.ran'], Array(10).fill({ ms: 2, count: 1, at: site.at, label: 'await' }))
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

test('requests that come again have the beginning of their attributes prepared, and say the same', (t) => {
  const random = seeded(4)
  let prepared = 0
  for (let i = 0; i < 500; i++) {
    const host = any(random, ['a:80', 'a:80', 'a:80', 'a:80', '[::1]:8080', 'ü:1', 'b'])
    const request = {
      method: any(random, ['GET', 'POST']),
      url: any(random, ['/', '/é"\\?x', '/users/7', '/' + 'x'.repeat(300)]),
      httpVersion: '1.1',
      rawHeaders: ['Host', host]
    }
    const remoteAddress = any(random, ['::1', '10.0.0.1'])
    const socket = { remoteAddress, remotePort: 1 + i, encrypted: random() < 0.1 }
    const { attributes, preparedJson } = describeServed(request, socket)
    if (preparedJson !== undefined) prepared++
    if (random() < 0.5) attributes['http.response.status_code'] = 200
    if (random() < 0.2) attributes['error.type'] = 'é'
    const span = { ...spanOf(random, []), attributes, preparedJson, preparedFor: attributes }
    const surroundings = surroundingsOf(random)
    const json = new SpanWriting(span, surroundings).json(1, () => {})
    const plain = new SpanWriting(copy(/** @type {any} */ (span)), surroundings).record()
    const expected = JSON.stringify(plain).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
    t.is(textOf(json ?? ''), expected)
  }
  t.true(prepared > 50, `${prepared}`)
})
