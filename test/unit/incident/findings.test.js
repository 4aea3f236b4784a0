'use strict'

// Findings of longstack PID that are not of the report's verdict, in observations made by hand.

const test = require('ava')
const { findingsOf } = require('../../../lib/incident/findings')

const RETRIES = { rule: 'retries', sentence: 'GET /stock repeats GET stock:80/left.', share: 0.6, figures: { call: 'GET stock:80/left' } }

/** @param {object} parts */
function found (parts) {
  const frame = { ms: 8000, blockers: [], routes: [] }
  const lists = ['blocked', 'refused', 'files', 'queues', 'graphs', 'inFlight', 'idle', 'loads', 'boxes']
  const empty = Object.fromEntries(lists.map((name) => [name, []]))
  const looks = { handles: [], waits: [] }
  const observation = { name: '7', ...empty, frame, looks, threads: new Map([[7, []]]), cpuWaits: new Map(), total: 100, wantedMs: 8000, ...parts }
  return findingsOf(/** @type {any} */ (observation))
}

/** @param {object} parts @returns {string[]} */
const findings = (parts) => found(parts).map(({ kind }) => kind)

/** @param {object} parts @returns {string[]} */
const sentences = (parts) => found(parts).map(({ sentence }) => sentence)

test('failed calls that are retried are in the verdict', (t) => {
  const failure = (/** @type {string} */ name, count = 75) => ({ type: '503', message: '', count, routes: [{ name, count }] })
  const routes = [{ name: 'GET stock:80/left', kind: 'CLIENT', weighted: 100 }, { name: 'GET /stock', kind: 'SERVER', weighted: 25 }]
  const report = (/** @type {string} */ name, verdict = [RETRIES]) =>
    ({ report: { routes, verdict, failures: [failure(name)] } })
  t.deepEqual(findings(report('GET stock:80/left', [])), ['failed'])
  t.deepEqual(findings(report('GET stock:80/left')), ['slow'])
  t.deepEqual(findings(report('GET /stock')), ['failed', 'slow'])
  const both = { type: '503', message: '', count: 151, routes: [{ name: 'GET /left', count: 76 }, { name: RETRIES.figures.call, count: 75 }] }
  t.deepEqual(findings({ report: { routes, verdict: [RETRIES], failures: [both] } }), ['slow'])
})

test('a busy event loop: the route that it mostly runs is named', (t) => {
  const frame = { ms: 8000, routes: [] }
  const loads = [{ pid: 7, threadId: 0, share: 0.95, cpuShare: 0.9, processShare: 0.9 }]
  const route = (/** @type {string} */ name, weighted = 2000, run = 3) =>
    ({ name, kind: 'SERVER', weighted, split: { run } })
  const busy = (/** @type {object[]} */ ...routes) =>
    sentences({ frame, loads, report: { routes, verdict: [], failures: [] } })
  const worker = { pid: 8, threadId: 0, cpuShare: 0.4, processShare: 0.4 }
  t.deepEqual(busy(route('GET /item', 300, 0.2), route('GET /page')),
    ['The event loop of process 7 is busy 95 % of the time, mostly with GET /page (3.00 ms per request).'])
  t.deepEqual(busy(route('GET /item', 300, 0.2)), ['The event loop of process 7 is busy 95 % of the time.'])
  loads.push({ ...worker, share: 0.2 })
  t.regex(busy(route('GET /page'))[0], /mostly with/)
  loads.push({ ...worker, share: 0.2 })
  t.deepEqual(busy(route('GET /page')), ['The event loop of process 7 is busy 95 % of the time.'], 'the others may have run it')
})

test('--until: what may explain the limit comes first', (t) => {
  const verdict = [
    { rule: 'pool', sentence: 'GET /b waits.', share: 0.9, route: 'GET /b', figures: {} },
    { rule: 'dependency', sentence: 'GET /a is slow.', share: 0.6, route: 'GET /a', figures: {} },
    { rule: 'after', sentence: 'GET /a continues.', share: 0, route: 'GET /a', figures: {} },
    { rule: 'loop', sentence: 'GET /b keeps the loop busy.', share: 0.2, route: 'GET /b', figures: {} }
  ]
  const failure = { type: 'TypeError', message: 'no', count: 90, routes: [{ name: 'GET /a', count: 90 }] }
  const routes = [{ name: 'GET /a', kind: 'SERVER', weighted: 100 }]
  const report = { routes, verdict, failures: [failure] }
  const until = (/** @type {object} */ exceeded) =>
    found({ report, exceeded }).map(({ kind, explains }) => `${explains ? '+' : '-'} ${kind}`)
  t.deepEqual(findings({ report }), ['waits', 'failed', 'slow', 'blocks', 'after'])
  t.deepEqual(until({ metric: 'p99', route: 'GET /a' }), ['+ slow', '+ blocks', '- waits', '- failed', '- after'])
  t.deepEqual(until({ metric: 'p99' }), ['+ waits', '+ slow', '+ blocks', '- failed', '- after'])
  t.deepEqual(until({ metric: 'errors', route: 'GET /a' })[0], '+ failed')
  t.deepEqual(until({ metric: 'errors', route: 'GET /b' })[0], '- waits')
})

test('clients that go away are no failures of the program', (t) => {
  const failure = { type: 'ECONNRESET', message: 'the connection was closed', count: 7, routes: [{ name: 'GET /news', count: 7 }] }
  const routes = [{ name: 'GET /news', kind: 'SERVER', weighted: 40 }]
  t.deepEqual(findings({ report: { routes, verdict: [], failures: [failure] } }), ['failed'])
  t.deepEqual(findings({ report: { routes, verdict: [], failures: [{ ...failure, isOfClient: true }] } }), [])
})

test('callbacks that are long only because the process waits for a CPU do not block', (t) => {
  const blockers = [{ site: 'answer (/app/app.js:3:5)', count: 3, ms: 409, worstMs: 272 }]
  const frame = { ms: 8000, blockers, routes: [] }
  t.deepEqual(findings({ frame }), ['blocks'])
  t.deepEqual(findings({ frame, cpuWaits: new Map([[7, 0.05]]) }), ['blocks'])
  t.deepEqual(findings({ frame, cpuWaits: new Map([[7, 0.9]]) }), ['busy'])
})
