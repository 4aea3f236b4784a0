'use strict'

// A service whose spans go to a file and whose runs are also recorded: `longstack spans` prints the same
// spans from the recording, and reports on both are equal.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { recordsOf } = require('../helpers/records')
const { node, register, root } = require('../helpers/run')
const { longstack, report } = require('../helpers/span-files')

const SERVICE = path.join(root, 'test', 'fixtures', 'record', 'service.js')
const NEAR = 1 // ms between readings of one clock
const OTHERS = new RegExp(`^longstack\\.(${[
  'run_ms', 'waited_ms', 'wait_ms', 'delayed_ms', 'delayed_max_ms', 'delayed_by', 'delays', 'beside_ms', 'waits',
  'ran', 'runs', 'asked', 'asked_more'
].join('|')})$`)

/** @type {string} */
let directory
/** @type {{ file: any[], recorded: any[], stderr: string }} */
let told

/** Whether a record is a span, and not facts for the verdict. @param {any} record */
const isSpan = ({ traceId }) => traceId !== 'f'.repeat(32)

test.before(async () => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-lines-'))
  const [spans, recording] = ['spans.jsonl', 'app.rec'].map((name) => path.join(directory, name))
  const env = { LONGSTACK_SPANS: spans, LONGSTACK_RECORD: recording, LONGSTACK_BLOCKED: '30' }
  const { code, stderr } = await node(['-r', register, SERVICE], { env })
  if (code !== 0) throw new Error(stderr)
  const printed = await longstack(['spans', recording])
  if (printed.code !== 0) throw new Error(printed.stderr)
  const [file, recorded] = [fs.readFileSync(spans, 'utf8'), printed.stdout].map((lines) => recordsOf(lines).filter(isSpan))
  told = { file, recorded, stderr: printed.stderr }
})

test.after.always(() => fs.rmSync(directory, { recursive: true, force: true }))

/** What no clock tells, and no account: as it is in both. @param {any} record */
function identityOf ({ attributes, ...record }) {
  const own = Object.entries(attributes).filter(([key]) => !OTHERS.test(key))
  return { ...record, attributes: Object.fromEntries(own.sort(([a], [b]) => a.localeCompare(b))) }
}

/** @param {any[]} records */
const byId = (records) => new Map(records.map((record) => [record.spanId, record]))

test('all spans have ids, names, times, status, events and attributes', (t) => {
  const { file, recorded, stderr } = told
  t.is(stderr, '', 'nothing is missing')
  t.true(file.length > 100)
  const known = byId(recorded)
  t.is(recorded.length, file.length)
  for (const record of byId(file).values()) { // a callback that blocks for long is told twice
    const other = known.get(record.spanId)
    if (other === undefined) return t.fail(`${record.name} is missing`)
    t.deepEqual(identityOf(other), identityOf(record), record.name)
  }
  const names = new Set(recorded.map(({ name }) => name))
  for (const name of ['checkout', 'refused', 'GET /aborted', 'GET /open', 'GET 127.0.0.1/timer', 'blocked']) {
    t.true(names.has(name), name)
  }
  t.is(new Set(recorded.map(({ resource }) => resource['longstack.thread'])).size, 3, 'two workers')
})

test('a request\'s figures match its path, and add up', (t) => {
  const known = byId(told.file)
  for (const record of told.recorded) {
    const { spanId, name, kind, parentSpanId, startTimeUnixNano, endTimeUnixNano, attributes } = record
    if (name === 'blocked') continue
    const [run, waited, delayed] = ['run', 'waited', 'delayed'].map((part) => attributes[`longstack.${part}_ms`])
    const duration = Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6
    t.true(Math.abs(run + waited + delayed - duration) < 0.002, name)
    const sum = Object.values(attributes['longstack.wait_ms']).reduce((total, ms) => total + ms, 0)
    t.true(Math.abs(sum - waited) < NEAR, name)
    const isInner = kind !== 'SERVER' && parentSpanId !== undefined // its account is of another request
    if (isInner) continue
    const today = known.get(spanId).attributes
    t.true(Math.abs(run - today['longstack.run_ms']) < NEAR, `${name}: ${run} ${today['longstack.run_ms']}`)
    const [worst] = attributes['longstack.waits']
    if (kind !== 'SERVER' || name === 'GET /upstream' || worst === undefined || worst.ms < duration / 5) continue
    const places = today['longstack.waits'].map((/** @type {any} */ wait) => wait.at)
    t.true(places.includes(worst.at), `${name}: ${worst.at} ${places}`)
  }
})

test('whoever delayed a request is named, with its span', (t) => {
  const blockers = told.recorded.filter(({ name }) => name === 'GET /blocker')
  const delayed = told.recorded.filter(({ name }) => name === 'GET /delayed')
  t.is(delayed.length, 5)
  const ids = new Set(blockers.map(({ spanId }) => spanId))
  const worst = delayed.map(({ attributes }) => attributes['longstack.delayed_by'][0])
    .filter((delayer) => delayer?.name === 'GET /blocker')
  t.true(worst.length > 0)
  for (const { ms, spanId } of worst) t.true(ids.has(spanId) && ms > 1)
})

test('reports of the recording and of the span file agree', async (t) => {
  const models = await Promise.all(['app.rec', 'spans.jsonl'].map(async (name) => {
    const { model, code } = await report([path.join(directory, name)])
    t.is(code, 0)
    return model
  }))
  const routes = models.map((model) => model.routes.map((/** @type {any} */ route) => {
    const { name, kind, count, errors, open, totalMs, summary } = route
    return { name, kind, count, errors, open, totalMs, summary }
  }))
  t.true(routes[0].length > 10)
  t.deepEqual(routes[0], routes[1])
  const failures = models.map((model) => model.failures.map((/** @type {any} */ { type, message, count }) => {
    return { type, message, count }
  }))
  t.true(failures[0].length > 0)
  t.deepEqual(failures[0], failures[1])
  t.deepEqual(models.map(({ openCount }) => openCount), [2, 2], 'of its client and of the server')
})
