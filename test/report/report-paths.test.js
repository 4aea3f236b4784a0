'use strict'

// Waits by site, trees of critical paths, failures and the time axis: files with known figures, and random
// ones whose sums must agree.

const test = require('ava')
const fc = require('fast-check')
const { file, report, span, split } = require('../helpers/span-files')
const { createModel } = require('../../report/aggregate/model')

const QUERY = { at: 'query (/app/pool.js:34:9) via pg', callers: ['report (/app/app.js:24:9)'], until: 'TCP 127.0.0.1:5432', label: 'await' }
const NAP = { at: 'report (/app/app.js:30:9)', until: 'TIMER', label: 'setTimeout(5)' }

/**
 * A request of 40 ms: 10 ms of own code, of which 1 beside; 24 of waits, of which 4 are at sites that its
 * line leaves out; 6 of delays, 2 of them at the query.
 */
function request ({ name = 'GET /report', at = 0, query = 15, ...rest } = {}) {
  return span({
    name,
    at,
    ms: query + 25,
    ...rest,
    attributes: {
      ...split({ run: 10, waited: query + 9, delayed: 6 }, { TCP: query }, [
        { ms: query, count: 3, ...QUERY, delayed: 2 }, { ms: 5, ...NAP }
      ]),
      'longstack.ran': [{ ms: 5, count: 1 }, { ms: 4, count: 3, at: QUERY.at, callers: QUERY.callers, label: 'await' }],
      'longstack.beside_ms': 1
    }
  })
}

/** @param {any} node @returns {string[]} name, kind, ms and count of all nodes, indented */
function outline (node, depth = 0) {
  const line = `${'  '.repeat(depth)}${node.name} ${node.kind} ${node.ms} ${node.count}`
  return [line, ...node.children.flatMap((/** @type {any} */ child) => outline(child, depth + 1))]
}

/** @param {any} node @returns {any[]} */
const nodesOf = (node) => [node, ...node.children.flatMap(nodesOf)]

test('each site of a route has sum, share, count and quartiles of a request\'s wait there', async (t) => {
  const { model } = await report([file(t, [10, 15, 20, 30, 75].map((query) => request({ query })))])
  const [{ totalMs, sites, otherSites }] = model.routes
  t.is(totalMs, 275)
  t.is(sites.length, 2)
  const { byBucket, ...query } = sites[0]
  t.deepEqual(query, {
    ...QUERY,
    ...{ ms: 150, share: 150 / 275, count: 15, spans: 5, delayed: 10 },
    summary: { min: 10, q1: 15, median: 20, q3: 30, max: 75 }
  })
  t.deepEqual(byBucket, [0, 150, 15])
  t.like(sites[1], { at: NAP.at, callers: [], ms: 25, share: 25 / 275, count: 5, spans: 5 })
  t.deepEqual(otherSites, { count: 0, ms: 20 })
})

test('the tree of all requests: frames from the outermost caller; run, waited, delayed and off the path', async (t) => {
  const { model } = await report([file(t, [request(), request(), span({ name: 'GET /old', ms: 9 })])])
  t.deepEqual(outline(model.tree), [
    'all requests root 80 2',
    '  GET /report route 80 2',
    '    report (/app/app.js:24:9) frame 42 18',
    '      query (/app/pool.js:34:9) via pg frame 42 18',
    '        TCP 127.0.0.1:5432 waited 30 6',
    '        ran ran 8 6',
    '        delayed by others delayed 4 6',
    '    report (/app/app.js:30:9) frame 10 2',
    '      TIMER waited 10 2',
    '    ran ran 10 2',
    '    other sites waited 8 2',
    '    delayed by others delayed 8 0',
    '    ran beside beside 2 2'
  ])
})

test('the tree of the slowest 1 % has at least one request of each route', async (t) => {
  const slow = Array.from({ length: 300 }, (_, i) => request({ at: i, query: i < 3 ? 500 + i : 15 }))
  const { model } = await report([file(t, [...slow, request({ name: 'GET /b' })])])
  t.deepEqual(model.slowTree.children.map((/** @type {any} */ { name, count, ms }) => [name, count, ms]), [['GET /report', 3, 1578], ['GET /b', 1, 40]])
  t.deepEqual(model.slowTree.children[0].traceIds, [slow[2], slow[1], slow[0]].map(({ traceId }) => traceId))
  t.deepEqual(model.notes, [])
})

test('sampled lines count by their weight', async (t) => {
  const sampled = request()
  sampled.attributes = { ...sampled.attributes, 'longstack.sample_ratio': 0.25 }
  const { model } = await report([file(t, [sampled, request({ query: 35 })])])
  t.like(model.routes[0].sites[0], { ms: 95, count: 15, spans: 5, delayed: 10 })
  t.deepEqual(model.routes[0].sites[0].summary, { min: 15, q1: 15, median: 15, q3: 15, max: 35 })
  t.is(model.tree.count, 5)
  t.is(model.tree.ms, 220)
})

test('without critical paths, time has no site', async (t) => {
  const { 'longstack.waits': waits, ...attributes } = split({ run: 4, delayed: 1, waited: 5 })
  const { model } = await report([file(t, [span({ ms: 10, attributes })])])
  t.deepEqual(outline(model.tree).slice(2), ['    unknown waited 5 1', '    ran ran 4 1', '    delayed by others delayed 1 0'])
  t.deepEqual(model.routes[0].sites, [])
})

const frame = fc.constantFrom('a (/a.js:1:1)', 'b (/a.js:2:1)', 'c (/c.js:3:1) via pg', 'd "quoted" \\ {[,]} é (/d.js:4:1)')
const ms = fc.integer({ min: 0, max: 90_000 }).map((micros) => micros / 1000)
const label = fc.constantFrom('await', 'Promise.all }')
const callers = fc.array(frame, { maxLength: 8 })
const site = fc.record({ at: frame, callers, label }, { requiredKeys: [] })
const wait = fc.tuple(ms, fc.integer({ min: 1, max: 9 }), fc.option(ms, { nil: undefined }), site, fc.constantFrom(undefined, 'TIMER', 'TCP ::1:1'), fc.constantFrom(undefined, [7], [7, 8, 9]))
  .map(([ms, count, delayed, site, until, on]) => ({ ms, count, delayed, ...site, until, on }))
  .map((entry) => JSON.parse(JSON.stringify(entry)))
const ran = fc.tuple(ms, site).map(([ms, site]) => ({ ms, count: 1, ...site }))
const lists = { waits: fc.array(wait, { maxLength: 10 }), ran: fc.array(ran, { maxLength: 10 }) }
const name = fc.constantFrom('GET /a', 'GET /b')
const figures = fc.record({ name, ...lists, more: fc.tuple(ms, ms, ms), beside: ms })

/** @param {Array<{ name: string, waits: any[], ran: any[], more: number[], beside: number }>} requests */
function recordsOf (requests) {
  const sum = (/** @type {any[]} */ list, /** @type {string} */ key) =>
    list.reduce((total, entry) => total + (entry[key] ?? 0), 0)
  return requests.map(({ name, waits, ran, more, beside }, i) => {
    const run = sum(ran, 'ms') + beside + more[0]
    const waited = sum(waits, 'ms') + more[1]
    const delayed = sum(waits, 'delayed') + more[2]
    const parts = split({ run, waited, delayed }, {}, waits)
    const attributes = { ...parts, 'longstack.ran': ran, 'longstack.beside_ms': beside }
    return span({ name, at: i, ms: run + waited + delayed, attributes })
  })
}

test('for any requests, children add up to their parent, and all to the requests\' time', async (t) => {
  const anyRequests = fc.array(figures, { minLength: 1, maxLength: 30 })
  await t.notThrowsAsync(fc.assert(fc.asyncProperty(anyRequests, async (requests) => {
    const records = recordsOf(requests)
    const { tree, slowTree, routes } = await createModel([file(t, records)])
    const total = records.reduce((sum, { attributes }) => sum + attributes['longstack.run_ms'] + attributes['longstack.waited_ms'] + attributes['longstack.delayed_ms'], 0)
    const rounding = 0.02 * records.length // remainders that are only rounding are in no node
    if (Math.abs(tree.ms - total) > rounding) throw new Error(`${tree.ms} of ${total} ms`)
    for (const node of [...nodesOf(tree), ...nodesOf(slowTree)]) {
      if (node.children.length === 0) continue
      const sum = node.children.reduce((/** @type {number} */ all, /** @type {any} */ { ms }) => all + ms, 0)
      if (Math.abs(sum - node.ms) > 1e-6 * (1 + sum)) throw new Error(`${node.name}: ${sum}, not ${node.ms}`)
    }
    const times = routes.flatMap(({ sites, otherSites }) =>
      [otherSites?.ms ?? 0, ...sites.map(({ ms }) => ms)])
    const waited = times.reduce((sum, ms) => sum + ms)
    const listed = requests.flatMap(({ waits }) => waits).reduce((sum, { ms }) => sum + ms, 0)
    if (waited < listed - 1e-6 || waited > total + 1e-6) throw new Error(`${waited} ms at sites, ${listed} listed`)
  }), { numRuns: 25 }))
})

test('paths in other formats are read, and hostile ones do no harm', async (t) => {
  const odd = [
    [{ count: 2, ms: 5, at: 'f (/a.js:1:1)' }],
    [{ ms: 5, at: 'f (/a.js:1:1)', more: { deep: [1] } }],
    [{ ms: 5, at: 'f (/a.js:1:1)', callers: 7, until: null, delayed: -1, on: 'x' }],
    [{ ms: 1e300 }, { ms: '5' }, { ms: 5e-7 }, null, 7],
    [{ ms: 5, at: 'f (/a.js:1:1)', callers: Array(50).fill('x'.repeat(2000)) }]
  ]
  const { model, code } = await report([file(t, odd.map((waits) => span({ ms: 9, attributes: { ...split({ waited: 9 }), 'longstack.waits': waits } })))])
  t.is(code, 0)
  const [{ sites }] = model.routes
  t.like(sites.find((/** @type {any} */ { callers }) => callers.length === 0), { at: 'f (/a.js:1:1)', ms: 15, count: 4 })
  const long = sites.find((/** @type {any} */ { callers }) => callers.length > 0)
  t.is(long.callers.length, 8)
  t.true(long.callers[0].length < 600)
})

test('sites beyond the limit are merged, with a note; a tree has at most 5,000 nodes', async (t) => {
  const requests = Array.from({ length: 2500 }, (_, i) => span({
    at: i,
    ms: 100,
    attributes: split({ waited: 100 }, {}, Array.from({ length: 10 }, (_, j) => ({ ms: 10, at: `f${i * 10 + j} (/a.js:${i}:${j})` })))
  }))
  const model = await createModel([file(t, requests)])
  t.is(model.tree.ms, 250_000)
  t.true(nodesOf(model.tree).length <= 5000)
  t.is(model.routes[0].sites.length, 50)
  t.deepEqual(model.routes[0].otherSites, { count: 19_950, ms: 249_500 })
  t.true(model.notes.includes('More than 20000 sites: what came later is in "other sites".'), model.notes.join('\n'))
})

test('failures are grouped by type, message without numbers, and the program\'s innermost frame', async (t) => {
  const stack = (/** @type {number} */ port) => `Error: connect ECONNREFUSED 10.0.0.${port % 9}:${port}
    at connect (node:net:1:1)
    at get (/app/node_modules/pg/index.js:1:1)
  ── await · Promise · 5 ms earlier ──
    at load (/app/load.js:7:3)`
  const failed = (/** @type {number} */ port, name = 'GET /a') => span({
    name,
    at: port,
    failed: true,
    events: [{ name: 'exception', timeUnixNano: '1763685600000000000', attributes: { 'exception.type': 'ECONNREFUSED', 'exception.message': `connect ECONNREFUSED 10.0.0.${port % 9}:${port}`, 'exception.stacktrace': stack(port) } }]
  })
  const status = span({ name: 'GET /b', at: 30, ms: 5, failed: true, attributes: { 'error.type': '500' } })
  const { model } = await report([file(t, [failed(1), failed(2), failed(3, 'GET /b'), status, span()])])
  t.is(model.failures.length, 2)
  t.like(model.failures[0], { type: 'ECONNREFUSED', message: 'connect ECONNREFUSED *', at: 'load (/app/load.js:7:3)', count: 3, firstUnixMs: 1763685600000, stack: stack(1) })
  t.deepEqual(model.failures[0].routes, [{ name: 'GET /a', count: 2 }, { name: 'GET /b', count: 1 }])
  t.like(model.failures[1], { type: '500', message: '', count: 1, firstUnixMs: 1763685600035, spanId: status.spanId })
})

test('failures: a call that the program cancelled is none, and clients that left are told apart', async (t) => {
  const error = { name: 'exception', timeUnixNano: '1763685600000000000', attributes: { 'exception.type': 'AbortError', 'exception.message': 'aborted' } }
  const cancelled = span({ name: 'GET stock', kind: 'CLIENT', events: [error], attributes: { 'longstack.end': 'cancelled' } })
  const left = span({ name: 'GET /a', failed: true, attributes: { 'longstack.end': 'aborted', 'error.type': 'ECONNRESET' } })
  const broken = span({ name: 'GET stock', kind: 'CLIENT', failed: true, attributes: { 'longstack.end': 'aborted', 'error.type': 'aborted' } })
  const { model } = await report([file(t, [cancelled, left, broken])])
  t.deepEqual(model.failures.map(({ type, isOfClient }) => [type, isOfClient]), [['ECONNRESET', true], ['aborted', false]])
})

test('an error in nested spans of a request is one failure, of the outermost', async (t) => {
  const events = [{ name: 'exception', timeUnixNano: '1763685600000000000', attributes: { 'exception.type': 'Error', 'exception.message': 'no' } }]
  const outer = span({ name: 'GET /a', failed: true, events })
  const inner = span({ name: 'pay', kind: 'INTERNAL', traceId: outer.traceId, parentSpanId: outer.spanId, failed: true, events })
  const { model } = await report([file(t, [inner, outer])])
  t.is(model.failures.length, 1)
  t.is(model.failures[0].count, 1)
  t.deepEqual(model.failures[0].routes, [{ name: 'GET /a', count: 1 }])
})

test('the timeline has round steps, and each request in the bucket of its start', async (t) => {
  const requests = Array.from({ length: 600 }, (_, i) => {
    const attributes = split({ run: 1, delayed: i % 10 })
    return span({ at: i * 1000, ms: 1 + i % 10, failed: i % 100 === 0, attributes })
  })
  const { model } = await report([file(t, requests.reverse())])
  const { fromUnixMs, stepMs, buckets, count, errors, p50, p99, delayedMs, routes } = model.series
  t.deepEqual([fromUnixMs, stepMs, buckets], [1763685600000, 5000, 120])
  t.true(count.every((/** @type {number} */ requests) => requests === 5))
  t.is(errors.reduce((/** @type {number} */ sum, /** @type {number} */ errors) => sum + errors), 6)
  t.deepEqual([p50.slice(0, 2), p99.slice(0, 2), delayedMs.slice(0, 2)], [[3, 8], [4.96, 9.96], [2, 7]])
  /** @type {number[]} */
  const histogram = routes[0].histogram
  t.is(histogram.filter((_, i) => i % 3 === 2).reduce((sum, requests) => sum + requests), 600)
})

test('requests have the name that a framework reports later, if it is certain', async (t) => {
  const named = (/** @type {string} */ id, name = 'GET /users/:id') => span({ name, attributes: { 'http.request.method': 'GET', 'url.path': `/users/${id}` } })
  const victim = span({
    name: 'GET /cheap',
    ms: 50,
    attributes: {
      ...split({ waited: 10, delayed: 40 }, {}, [{ ms: 10, at: QUERY.at, until: 'GET /users/* of another request' }]),
      'longstack.delayed_by': [{ spanId: '00000000000000ff', name: 'GET /users/*', ms: 30, at: 'hash (/app/hash.js:1:1)' }, { spanId: '00000000000000fe', name: 'GET /users/*', ms: 10 }]
    }
  })
  const open = span({ name: 'GET /users/*', attributes: { 'longstack.end': 'open' } })
  const { model } = await report([file(t, [victim, named('7'), named('8'), open])])
  t.is(model.blockers.length, 1)
  t.like(model.blockers[0], { name: 'GET /users/:id', at: 'hash (/app/hash.js:1:1)', delayedMs: 40, share: 1 })
  const cheap = model.routes.find((/** @type {any} */ { name }) => name === 'GET /cheap')
  t.is(cheap.sites[0].until, 'GET /users/:id of another request')
  t.like(model.routes.find((/** @type {any} */ { name }) => name === 'GET /users/:id'), { count: 2, open: 1 })
  t.is(model.open[0].name, 'GET /users/:id')

  const ambiguous = await report([file(t, [victim, named('7'), named('8', 'GET /users/:name')])])
  t.is(ambiguous.model.blockers[0].name, 'GET /users/*')
})
