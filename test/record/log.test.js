'use strict'

// A process that only records: its log equals that of one with spans, and its texts define the
// numbers.

const path = require('node:path')
const test = require('ava')
const layout = require('../../lib/core/run-log-words')
const { SpanReader } = require('../../report/path/window')
const { runServer } = require('../helpers/critical-path')
const { recorded } = require('../helpers/record-log')
const { program, root } = require('../helpers/run')
const { faultsOf } = require('../helpers/run-log-faults')
const { bytesOf, mainOf, pathGroups, shadowed } = require('../helpers/shadow-log')
const { patient } = require('../helpers/starved')

const { ARRIVED, BEGIN, CAME, CLIENT, END, INNER, POLL, RUN, SENT, SERVER, SETTLED_BY_ANSWER } = layout
const KINDS = { SERVER, CLIENT, INTERNAL: INNER }
const ROUNDED = 0.0011 // ms
const LONG = 9 // ms: of a wait that is no accident
// Of the pool of threads, and of a machine that is slow to connect
const ANY_LENGTH = /until (?:FSREQ\w+|ZLIB|TCPCONNECTWRAP)$/

/** @typedef {import('../helpers/record-log').RecordLog} RecordLog */

/** @param {RecordLog} log @returns {string[]} what is wrong with it in itself */
const wrongIn = ({ entries }) => faultsOf({ entries })

/**
 * Lists what numbers of entries no text tells, or only a later one.
 * @param {RecordLog} log
 * @returns {string[]}
 */
function untold ({ entries, texts }) {
  const missing = []
  const chains = new Map()
  const ended = new Set()
  let next = 0
  for (const text of texts) {
    if (text.chain !== undefined) chains.set(text.chain, text)
    if (text.span !== undefined) ended.add(text.span)
    if (text.upTo === undefined) continue
    for (; next < text.upTo; next++) {
      const { a, chain, kind, number, request } = entries[next]
      const told = chains.get(chain)
      if (chain !== 0 && told?.type === undefined) missing.push(`${number}: chain ${chain}`)
      if (kind === BEGIN && typeof told?.stack !== 'string') missing.push(`${number}: stack of ${chain}`)
      if (kind === END && a !== layout.DISCARDED && !ended.has(request)) missing.push(`${number}: span ${request}`)
    }
  }
  return missing
}

/**
 * Returns the long waits of requests that servers got, as text, by path.
 * @param {Uint8Array} entries
 * @param {(number: number) => string | undefined} pathOf the path of a request, undefined: not wanted
 * @param {(chain: number) => { at?: string, type?: string }} chainOf
 */
function waitsOf (entries, pathOf, chainOf) {
  const reader = new SpanReader()
  reader.push({ first: 1, entries, isLast: true })
  /** @type {Record<string, string[]>} */
  const waits = {}
  for (const { request, path } of reader.ended()) {
    const route = request.kind === SERVER ? pathOf(request.number) : undefined
    if (route === undefined) continue
    const long = path.waits.filter(({ ms, delayed }) => ms + delayed >= LONG)
    waits[route] = long.map(({ ended, settler, site }) => {
      const by = settler !== 0 ? 'another' : ended === undefined ? '' : chainOf(ended.chain)?.type
      return `${chainOf(site)?.at} until ${by}`
    }).filter((wait) => !ANY_LENGTH.test(wait))
  }
  return waits
}

/** @param {{ function: string, file?: string, line?: number, column?: number } | undefined} place */
const placeText = (place) => place && `${place.function} (${place.file}:${place.line}:${place.column})`

for (const engine of ['native', 'js']) {
  patient(test)(`${engine}: a log without an account has the waits that one beside spans has`, async (t) => {
    const env = { LONGSTACK_CAPTURE: engine }
    const alone = await recorded((own) => runServer(pathGroups, { ...env, ...own, LONGSTACK_SPANS: '' }))
    const beside = await shadowed((own) => runServer(pathGroups, { ...env, ...own }))
    t.deepEqual(alone.logs.flatMap(wrongIn), [])
    t.deepEqual(alone.logs.flatMap(untold), [])
    const [log] = alone.logs
    const main = mainOf(beside.shadows)
    const { names } = main
    const { records } = beside.result

    const told = (/** @type {any} */ { kind, name, status, attributes }) => {
      return `${kind} ${name.replace(/:\d+$/, '')} ${status.code} ${attributes['http.response.status_code']}`
    }
    t.deepEqual(log.spans.map(told).sort(), records.map(told).sort())
    for (const { span, kind, parentSpanId, start, end } of log.spans) {
      const begun = log.entries.find((entry) => entry.kind === BEGIN && entry.request === span)
      const ended = log.entries.find((entry) => entry.kind === END && entry.request === span)
      t.is(begun?.a, KINDS[kind])
      t.true(Math.abs(begun?.time - start) < ROUNDED && Math.abs(ended?.time - end) < ROUNDED)
      const parent = log.spans.find((other) => other.span === begun?.b)
      t.is(parent?.spanId, kind === 'SERVER' ? undefined : parentSpanId)
    }

    const paths = new Map(log.spans.map(({ span, attributes }) => [span, attributes['url.path']]))
    const spanPaths = new Map(records.map(({ spanId, attributes }) => [spanId, attributes['url.path']]))
    const own = waitsOf(log.bytes, (number) => paths.get(number), (chain) => {
      const { at, type } = log.chains.get(chain) ?? {}
      return { at: placeText(at), type }
    })
    const types = new Map()
    for (const { chain, number } of main.entries) {
      if (names.types[number] !== undefined) types.set(chain, names.types[number].type)
    }
    const others = waitsOf(bytesOf(main.ring), (number) => spanPaths.get(names.requests[number]), (chain) => {
      return { at: names.chains[chain]?.at?.replace(/ via \S+$/, ''), type: types.get(chain) }
    })
    // On a busy machine a wait may be long by accident, or come in another order
    const [mine, theirs] = [own, others].map((waits) => new Set(Object.values(waits).flat()))
    const same = [...mine].filter((wait) => theirs.has(wait))
    t.true(same.length > 25, String(same.length))
    t.true(same.length > 0.85 * Math.max(mine.size, theirs.size), JSON.stringify([own, others]))
    for (const kind of [POLL, ARRIVED, SENT, CAME, SETTLED_BY_ANSWER]) {
      t.true(log.entries.some((entry) => entry.kind === kind), String(kind))
    }
    t.true(log.texts.some(({ connection, peer }) => connection > 0 && peer.startsWith('127.0.0.1:')))
  })
}

test('no part of a long callback is lost: entries are read during it', async (t) => {
  const { result, logs: [log] } = await recorded((env) => program(`
    const trace = require(${JSON.stringify(root)})
    for (let i = 0; i < 30_000; i++) trace.span('step', { i }, () => {})
    setTimeout(() => {}, 1)
  `, { env: { ...env, TAKE_MS: '0' } }))
  t.is(result.stderr, '')
  t.true(log.takes > 3)
  t.true(log.entries.length > layout.ENTRIES)
  t.deepEqual(wrongIn(log).slice(0, 3), [])
  t.deepEqual(untold(log), [])
  t.deepEqual(log.spans.map(({ attributes }) => attributes.i), Array.from({ length: 30_000 }, (_, i) => i))
})

test('spans still open at the end are marked so, in each thread', async (t) => {
  const { result, logs } = await recorded((env) => program(`
    const trace = require(${JSON.stringify(root)})
    const { Worker, isMainThread, threadId } = require('node:worker_threads')
    trace.span('forever ' + threadId, {}, () => new Promise(() => {
      setTimeout(() => trace.span('inner', {}, () => { if (!isMainThread) throw new Error('ends it') }), 5)
    }))
    if (isMainThread) new Worker(__filename).on('error', () => setTimeout(() => process.exit(3), 800))
  `, { env }))
  t.is(result.code, 3, result.stderr)
  t.is(logs.length, 2)
  const told = logs.map(({ spans }) => spans.map(({ name, open, status }) => `${name} ${open} ${status.code}`))
  t.deepEqual(told.sort(), [
    ['inner undefined UNSET', 'forever 0 true UNSET'], ['inner undefined ERROR', 'forever 1 true ERROR']
  ].sort())
  for (const log of logs) {
    t.deepEqual(wrongIn(log), [])
    t.deepEqual(untold(log), [])
    const [{ source, resource }] = log.texts
    t.is(resource['longstack.thread'] ?? 0, source.thread)
  }
  const [main] = logs.filter(({ texts }) => texts[0].source.thread === 0)
  const [forever] = main.spans.filter(({ name }) => name === 'forever 0')
  t.deepEqual(main.texts.filter(({ name, request }) => name !== undefined && request !== undefined), [
    { name: forever.span, request: 'forever 0', ids: forever.ids }
  ])
})

test('chains are written before they are forgotten', async (t) => {
  const { result, logs: [log] } = await recorded((env) => program(`
    const trace = require(${JSON.stringify(root)})
    const lib = ${JSON.stringify(path.join(root, 'lib'))}
    const capture = require(lib + '/stacks/capture')
    let turns = 0
    function turn () {
      if (++turns % 10 === 0) capture.reset()
      if (turns < 100) setImmediate(turn)
    }
    turn()
  `, { env: { ...env, TAKE_MS: '0' } }))
  t.is(result.stderr, '')
  t.deepEqual(untold(log), [])
  const immediates = log.entries.filter(({ kind, flags }) => kind === RUN && (flags & layout.ONE_SHOT) !== 0)
  t.true(immediates.length >= 99)
  // What runs next after it has a chain whose number stands for nothing any more
  const places = immediates.filter(({ chain }) => log.chains.get(chain)?.at?.function === 'turn')
  t.true(places.length >= 80, String(places.length))
})

test('attributes that cannot be written cost no span', async (t) => {
  const { result, logs: [log] } = await recorded((env) => program(`
    const trace = require(${JSON.stringify(root)})
    const bad = { toJSON () { throw new Error('no') } }
    trace.span('odd', { big: 1n, fine: 'x' }, (span) => span.set({ bad }))
    trace.span('fine', { a: 1 }, () => {})
  `, { env }))
  t.is(result.code, 0)
  t.deepEqual(log.spans.map(({ name }) => name), ['odd', 'fine'])
  t.is(log.spans[0].attributes.fine, 'x')
  t.is(result.stderr, '')
})
