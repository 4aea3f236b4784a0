'use strict'

// Arbitraries of files of spans: lines as longstack writes them, and what a disk, an attacker or another tool
// makes of them.

const zlib = require('node:zlib')
const { fc } = require('./property')

/** Told from any text that a report writes itself. */
const CANARY = '"\'><img src=x onerror=canary()></script></noscript><!--`canary()`\\'

const POLLUTION = '"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},'

const MAX_LINES = 60
const MAX_DEPTH = 100_000

/** Texts with what HTML, terminals, Markdown and CSV could take for commands. */
const hostileText = fc.oneof(
  fc.constantFrom(CANARY, '\x1b]8;;http://x\x07\x1b[2J', '\u009b31m', '\u202e\u2066rtl', 'a\nb\rc\td\u2028e',
    '=1+1|`x`', '__proto__', 'constructor', 'toString', '', '\ud800', 'x'.repeat(20_000), '\u0000',
    '/a/:b/{c}', '-'.repeat(500)),
  fc.string({ unit: 'binary' }), fc.string())

const hostileNumber = fc.oneof(fc.integer(), fc.double(),
  fc.constantFrom(0, -1, 1e308, -1e308, 5e-324, 2 ** 53, -0, 1e21, 1e-9))

const nano = fc.oneof(
  { arbitrary: fc.nat(1e6).map((ms) => String(1795379290000000000n + BigInt(ms) * 1000000n)), weight: 12 },
  fc.constantFrom('0', '-1', '9'.repeat(40), '18446744073709551616', '1e9', '', 'x', '0x10'), hostileNumber)

/** @param {number} digits */
const id = (digits) => fc.oneof(
  { arbitrary: fc.nat(20).map((n) => n.toString(16).padStart(digits, '0')), weight: 12 }, hostileText)

const ownFrame = fc.nat(5).map((n) => `load${n} (/app/db.js:${n}:3)`)
const frame = fc.oneof({ arbitrary: ownFrame, weight: 6 }, hostileText)

/** @param {Record<string, fc.Arbitrary<any>>} model */
const some = (model) => fc.record(model, { requiredKeys: [] })

const wait = some({
  ms: hostileNumber,
  count: fc.nat(9),
  delayed: hostileNumber,
  at: frame,
  callers: fc.array(frame, { maxLength: 3 }),
  label: hostileText,
  until: hostileText,
  unproven: fc.boolean(),
  on: fc.array(fc.nat(30), { maxLength: 3 }),
  beside: fc.boolean()
})

const blockers = some({ spanId: id(16), name: hostileText, ms: hostileNumber, at: frame })

const intervals = some({ at: frame, count: fc.nat(), requests: fc.dictionary(hostileText, hostileNumber) })

const attributes = some({
  'http.request.method': fc.oneof(fc.constantFrom('GET', 'POST'), hostileText),
  'url.path': fc.oneof(fc.constantFrom('/a', '/b/1'), hostileText),
  'http.route': hostileText,
  'http.response.status_code': fc.oneof(fc.constantFrom(200, 404, 500), hostileNumber),
  'server.address': hostileText,
  'code.stacktrace': fc.oneof(frame.map((text) => `  ── await · PROMISE ──\n    at ${text}`), hostileText),
  'exception.message': hostileText,
  'exception.type': hostileText,
  'longstack.run_ms': hostileNumber,
  'longstack.waited_ms': hostileNumber,
  'longstack.delayed_ms': hostileNumber,
  'longstack.waits': fc.array(wait, { maxLength: 4 }),
  'longstack.ran': fc.array(wait, { maxLength: 4 }),
  'longstack.wait_ms': fc.dictionary(hostileText, hostileNumber, { maxKeys: 4 }),
  'longstack.delayed_by': fc.array(blockers, { maxLength: 3 }),
  'longstack.runs': fc.array(fc.tuple(hostileNumber, hostileNumber, hostileText), { maxLength: 5 }),
  'longstack.end': fc.constantFrom('aborted', 'open', 'timeout', 'x'),
  'longstack.open_intervals': fc.array(intervals, { maxLength: 2 }),
  'longstack.sample': hostileNumber
})

const span = fc.record({
  traceId: id(32),
  spanId: id(16),
  parentSpanId: fc.option(id(16), { nil: undefined }),
  name: fc.oneof(fc.constantFrom('GET /a', 'GET /b/:id', 'query', 'open intervals', 'blocked'), hostileText),
  kind: fc.oneof({ arbitrary: fc.constantFrom('SERVER', 'CLIENT', 'INTERNAL'), weight: 8 }, hostileText),
  startTimeUnixNano: nano,
  endTimeUnixNano: nano,
  status: some({ code: fc.constantFrom('OK', 'ERROR', 'UNSET', 'x'), message: hostileText }),
  attributes,
  events: fc.array(some({ name: hostileText, timeUnixNano: nano, attributes }), { maxLength: 2 }),
  resource: some({ attributes: fc.dictionary(hostileText, hostileText), 'process.pid': hostileNumber })
}, { requiredKeys: ['traceId', 'spanId', 'name', 'kind', 'startTimeUnixNano', 'endTimeUnixNano'] })

// Format 2: what repeats is defined once, by a number, and figures stand beside the attributes.

const source = fc.oneof({ arbitrary: fc.constantFrom('0a', '0b'), weight: 12 }, hostileText)
const number = fc.oneof({ arbitrary: fc.nat(4), weight: 12 }, hostileNumber)
const micros = fc.oneof({ arbitrary: fc.nat(1e6), weight: 6 }, hostileNumber)
const place = some({ function: hostileText, file: hostileText, line: hostileNumber, column: hostileNumber })

const definition = fc.tuple(source, fc.oneof(
  fc.record({ resource: some({ 'service.name': hostileText, 'process.pid': hostileNumber }) }),
  fc.record({ stack: number, text: frame }),
  fc.record({ name: number, text: hostileText }),
  fc.record({ shared: number, attributes }),
  fc.record({ site: number, at: place, callers: fc.array(place, { maxLength: 3 }), label: hostileText })
)).map(([writer, members]) => ({ longstack: 2, source: writer, ...members }))

const newWait = some({
  us: micros,
  count: fc.nat(9),
  delayed: micros,
  site: number,
  until: number,
  peer: hostileText,
  request: number
})

const newSpan = fc.record({
  traceId: id(32),
  spanId: id(16),
  start: fc.oneof({ arbitrary: fc.tuple(fc.nat(1e6).map((s) => 1_795_379_290 + s), fc.nat(1e9)), weight: 8 },
    fc.tuple(hostileNumber, hostileNumber), hostileNumber),
  duration: micros,
  parentSpanId: fc.option(id(16), { nil: undefined }),
  name: fc.oneof(fc.constantFrom('GET /a', 'query'), hostileText),
  kind: fc.option(fc.constantFrom('CLIENT', 'INTERNAL'), { nil: undefined }),
  source,
  stack: number,
  shared: number,
  attributes,
  run: micros,
  beside: micros,
  wait: fc.dictionary(hostileText, micros, { maxKeys: 4 }),
  waited: micros,
  delayed: micros,
  delayed_max: micros,
  delayed_by: fc.array(
    fc.oneof(fc.tuple(micros), fc.tuple(micros, id(16), number, micros, frame)), { maxLength: 3 }),
  waits: fc.array(newWait, { maxLength: 4 }),
  ran: fc.option(fc.array(fc.oneof(fc.tuple(micros), fc.tuple(micros, number, fc.nat(9))), { maxLength: 4 })),
  asked: fc.array(fc.tuple(micros, fc.oneof(micros, fc.constant(-1)), number, number, fc.nat(9), micros,
    micros, micros, number, number), { maxLength: 3 }),
  asked_more: fc.tuple(fc.nat(9), micros),
  delays: fc.array(fc.tuple(micros, micros), { maxLength: 3 }),
  runs: fc.oneof(number, fc.array(fc.tuple(micros, micros, number), { maxLength: 5 }))
}, { requiredKeys: ['traceId', 'spanId', 'start', 'duration', 'name', 'source'] })

// What OpenTelemetry's file exporter writes

/** @param {string} key @param {fc.Arbitrary<any>} item */
const otlpList = (key, item) => fc.record({ [key]: fc.record({ values: fc.array(item, { maxLength: 2 }) }) })

const otlpScalar = fc.oneof(
  fc.record({ stringValue: hostileText }),
  fc.record({ intValue: fc.oneof(hostileNumber, hostileText) }),
  fc.record({ doubleValue: hostileNumber }))

const otlpKey = fc.oneof(
  fc.constantFrom('http.route', 'longstack.wait_ms.TCP', 'longstack.waits', 'service.name'), hostileText)

const otlpAttributes = fc.array(fc.record({
  key: otlpKey,
  value: fc.oneof(otlpScalar, otlpList('arrayValue', otlpScalar),
    otlpList('kvlistValue', fc.record({ key: otlpKey, value: otlpScalar })))
}), { maxLength: 5 })

const otlpSpan = fc.record({
  traceId: id(32),
  spanId: id(16),
  name: hostileText,
  kind: fc.constantFrom(2, 'SPAN_KIND_CLIENT'),
  startTimeUnixNano: nano,
  endTimeUnixNano: nano,
  status: some({ code: fc.constantFrom(1, 'STATUS_CODE_ERROR') }),
  attributes: otlpAttributes
}, { requiredKeys: ['traceId', 'spanId'] })

const otlpLine = fc.record({
  resourceSpans: fc.array(fc.record({
    resource: some({ attributes: otlpAttributes }),
    scopeSpans: fc.array(fc.record({ spans: fc.array(otlpSpan, { maxLength: 3 }) }), { maxLength: 2 })
  }), { maxLength: 2 })
})

/** Of a kind that nobody expects; with `toString` it throws when it is made a text or a number. */
const anyValue = fc.oneof({ arbitrary: fc.jsonValue(), weight: 3 },
  fc.constantFrom('{"toString":1}', '{"valueOf":1,"toString":1}', '[{"toString":1}]', '{"length":1e9}')
    .map((json) => JSON.parse(json)))

/** A record of which one value is any JSON. @param {fc.Arbitrary<any>} record @returns {fc.Arbitrary<any>} */
const changed = (record) => fc.tuple(record, fc.nat(500), anyValue).map(([original, place, value]) => {
  const object = structuredClone(original) // fast-check keeps what it has generated
  /** @type {Array<[any, string]>} */
  const places = []
  JSON.stringify(object, function (key, inner) {
    if (key !== '') places.push([this, key])
    return inner
  })
  const [owner, key] = places[place % places.length]
  owner[key] = value
  return object
})

const spanText = fc.oneof(
  { arbitrary: span, weight: 4 }, { arbitrary: changed(span), weight: 2 },
  { arbitrary: newSpan, weight: 4 }, { arbitrary: changed(newSpan), weight: 2 },
  { arbitrary: definition, weight: 4 }, { arbitrary: changed(definition), weight: 3 },
  { arbitrary: otlpLine, weight: 1 }, { arbitrary: changed(otlpLine), weight: 2 })
  .map((object) => JSON.stringify(object))

const line = fc.oneof(
  { arbitrary: spanText, weight: 10 },
  spanText.map((text) => text.replace('"name":', `${POLLUTION}"name":`)),
  fc.tuple(spanText, fc.nat(5000)).map(([text, length]) => text.slice(0, length)),
  fc.nat(MAX_DEPTH).map((depth) => `{"name":${'['.repeat(depth)}`),
  fc.json(), hostileText, fc.constant('null'), fc.constant(''))

/** The bytes of a file of spans, possibly damaged, possibly compressed. @returns {fc.Arbitrary<Buffer>} */
function spanFile () {
  const lines = fc.array(line, { maxLength: MAX_LINES, size: 'max' })
    .map((list) => Buffer.from(`${list.join('\n')}\n`))
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 20 })
  const damaged = fc.tuple(lines, changes).map(([bytes, changed]) => {
    for (const [place, value] of changed) bytes[place % bytes.length] = value
    return bytes
  })
  const compressed = fc.tuple(fc.oneof(lines, damaged), fc.nat(3000)).map(([bytes, cut]) => {
    const zipped = zlib.gzipSync(bytes)
    return cut < zipped.length ? zipped.subarray(0, zipped.length - cut) : zipped
  })
  const noise = fc.uint8Array({ maxLength: 500 }).map((array) => Buffer.from(array))
  return fc.oneof({ arbitrary: lines, weight: 3 }, damaged, compressed, noise)
}

module.exports = { CANARY, changed, hostileNumber, hostileText, spanFile }
