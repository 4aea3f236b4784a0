'use strict'

// Runs programs with the run log beside today's account of their spans, and reads what it wrote.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const layout = require('../../lib/core/run-log-words')
const { SpanReader } = require('../../report/path/window')
const { root } = require('./run')
const { timesOf } = require('./spans')

const preload = path.join(root, 'test', 'fixtures', 'shadow-log', 'preload.js')
const KIND = (1 << layout.KIND_BITS) - 1

/**
 * @typedef {object} Entry
 * @property {number} number
 * @property {number} kind
 * @property {number} flags
 * @property {number} ref
 * @property {number} chain
 * @property {number} request
 * @property {number} registered
 * @property {number} settled
 * @property {number} time
 * @property {number} a
 * @property {number} b
 * @property {number} x
 *
 * @typedef {object} Names what numbers stood for when the thread ended
 * @property {Record<string, { at?: string, label?: string }>} chains
 * @property {Record<string, string>} requests spanId by number; empty: it was no longer known
 * @property {Record<string, { type: string, subsystem?: string }>} types of what ran, by number of the run
 * @property {Record<string, number>} causes of it by its record: reference, 0: there is none any more
 *
 * @typedef {{ ring: SharedArrayBuffer, entries: Entry[], names: Names }} Shadow of one thread
 */

/**
 * Calls a function that runs programs, and reads the run logs of all their threads.
 * @template T
 * @param {(env: Record<string, string>) => Promise<T>} run with these variables
 * @returns {Promise<{ result: T, shadows: Shadow[] }>}
 */
async function shadowed (run) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-shadow-'))
  try {
    const result = await run({ NODE_OPTIONS: `--require ${preload}`, SHADOW_LOG: directory })
    const files = fs.readdirSync(directory).filter((name) => name.endsWith('.ring'))
    return { result, shadows: files.map((name) => read(path.join(directory, name.slice(0, -'.ring'.length)))) }
  } finally {
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

/** @param {string} file without its ending @returns {Shadow} */
function read (file) {
  const ring = new SharedArrayBuffer(layout.BYTES)
  Buffer.from(ring).set(fs.readFileSync(`${file}.ring`))
  return { ring, entries: entriesOf(ring), names: JSON.parse(fs.readFileSync(`${file}.json`, 'utf8')) }
}

/** @param {SharedArrayBuffer} ring @returns {Entry[]} oldest first */
function entriesOf (ring) {
  const words = new Int32Array(ring)
  const doubles = new Float64Array(ring)
  const count = words[layout.COUNT]
  const entries = []
  for (let number = Math.max(1, count - layout.ENTRIES + 1); number <= count; number++) {
    const place = layout.HEADER + ((number - 1) & (layout.ENTRIES - 1)) * layout.WORDS
    entries.push(entryAt(words, doubles, place, number))
  }
  return entries
}

/**
 * Reads an entry.
 * @param {Int32Array} words
 * @param {Float64Array} doubles the same memory
 * @param {number} place of its first word
 * @param {number} number
 * @returns {Entry}
 */
function entryAt (words, doubles, place, number) {
  return {
    number,
    kind: words[place + layout.HEAD] & KIND,
    flags: words[place + layout.HEAD] >>> layout.KIND_BITS,
    ref: words[place + layout.REF],
    chain: words[place + layout.CHAIN],
    request: words[place + layout.REQUEST],
    registered: words[place + layout.REGISTERED],
    settled: words[place + layout.SETTLED],
    time: doubles[(place >> 1) + layout.TIME],
    a: words[place + layout.A],
    b: words[place + layout.B],
    x: doubles[(place >> 1) + layout.X]
  }
}

/**
 * @typedef {object} SiteWait waits of one span at one place, ended by one kind of thing
 * @property {string} at
 * @property {string} until subsystem, or the name of another request
 * @property {number} ms
 * @property {number} delayed
 * @property {number} most ms delayed, if what it waited for had come as early as may be
 * @property {number} count
 *
 * @typedef {object} Account of a span, in ms
 * @property {number} duration
 * @property {number} run
 * @property {number} waited
 * @property {number} delayed
 * @property {number} most
 * @property {number} [asleep] ms for which the loop slept though what it waited for had come
 * @property {number} [asleepMost] the same, if that had come as early as may be
 * @property {SiteWait[]} waits longest first
 * @property {Array<{ name: string, ms: number, max: number }>} by who delayed it
 * @property {Array<{ start: number, end: number, at: string, unanswered: boolean }>} queries ms after begin
 *
 * @typedef {{ name: string, record: any, today: Account, log: Account }} Both
 */

/**
 * Reads spans from a run log, beside what was told of them.
 * @param {any[]} records
 * @param {Shadow} shadow of the same thread
 * @returns {Both[]}
 */
function bothOf (records, { ring, entries, names }) {
  const reader = new SpanReader()
  reader.push({ first: entries[0]?.number ?? 1, entries: bytesOf(ring), isLast: true })
  const spans = reader.ended().sort((a, b) => a.request.number - b.request.number)
  const polls = entries.filter(({ kind }) => kind === layout.POLL)
  const told = new Map(records.map((record) => [record.spanId, record]))
  const nameOf = (/** @type {number} */ number) => told.get(names.requests[number])?.name ?? ''
  return spans.filter(({ request: { number } }) => told.has(names.requests[number])).map((span) => {
    const { request, path, figures } = span
    const record = told.get(names.requests[request.number])
    const { duration, run, waited, delayed, delayedMax: most } = figures
    const siteAt = (/** @type {number} */ chain) => names.chains[chain]?.at ?? ''
    const untilOf = (/** @type {any} */ { callback, settler }) => {
      if (settler !== 0) return `${nameOf(settler)} of another request`
      return names.types[callback]?.subsystem ?? ''
    }
    const waits = path.waits.map((wait) => {
      const { ms, delayed, delayedMax: most, site } = wait
      return { at: siteAt(site), until: untilOf(wait), ms, delayed, most, count: 1 }
    })
    const by = span.delays.map(({ request: other, ms, max }) => ({ name: nameOf(other), ms, max }))
    const queries = span.queries.map(({ start, end, chain, unanswered }) => {
      return { start: start - request.begin, end: end - request.begin, at: siteAt(chain), unanswered }
    })
    const times = inMs({ duration, run, waited, delayed, most })
    const asleep = sum(path.waits.map(({ cameBy, until }) => sleptIn(polls, cameBy, until)))
    const asleepMost = sum(path.waits.map(({ cameAfter, until }) => sleptIn(polls, cameAfter, until)))
    const log = { ...times, asleep, asleepMost, waits: merged(waits), by: summed(by), queries }
    return { name: record.name, record, today: accountOf(record, told), log }
  })
}

/** Returns the entries of a ring, oldest first. @param {SharedArrayBuffer} ring */
function bytesOf (ring) {
  const bytes = Buffer.from(ring, layout.HEADER * 4)
  const count = new Int32Array(ring)[layout.COUNT]
  const oldest = (count & (layout.ENTRIES - 1)) * layout.WORDS * 4
  return count > layout.ENTRIES
    ? Buffer.concat([bytes.subarray(oldest), bytes.subarray(0, oldest)])
    : bytes.subarray(0, count * layout.WORDS * 4)
}

/** @param {number[]} lengths */
const sum = (lengths) => lengths.reduce((total, ms) => total + ms, 0)

/** @param {Entry[]} polls @param {number} from @param {number} until @returns {number} ms */
function sleptIn (polls, from, until) {
  return sum(polls.map(({ time, x }) => Math.max(0, Math.min(time, until) - Math.max(time - x, from))))
}

/**
 * @template {Record<string, number>} T
 * @param {T} figures in microseconds
 * @returns {T} in ms
 */
function inMs (figures) {
  return /** @type {any} */ (Object.fromEntries(Object.entries(figures).map(([key, us]) => [key, us / 1000])))
}

/**
 * Reads today's account of a span.
 * @param {any} record
 * @param {Map<string, any>} told all spans, by spanId
 * @returns {Account}
 */
function accountOf (record, told) {
  const { duration, run, waited, delayed, most, by, waits } = timesOf(record)
  const entries = waits.map(({ at = '', until = '', ms, delayed = 0, delayed_max: most = delayed, count }) => {
    return { at, until: until.replace(/^([A-Z]+) \S+$/, '$1'), ms, delayed, most, count }
  })
  const delayers = by.map(({ spanId, name = '', ms, max = ms }) => {
    let outermost = told.get(String(spanId)) // the log tells requests, not spans inside of them
    while (outermost !== undefined && outermost.kind !== 'SERVER') outermost = told.get(outermost.parentSpanId)
    return { name: outermost?.name ?? name, ms, max }
  })
  /** @type {any[]} */
  const asked = record.attributes['longstack.asked'] ?? []
  const queries = asked.map(({ start, ms, at = '', unanswered = false }) => {
    return { start, end: start + ms, at, unanswered }
  })
  return { duration, run, waited, delayed, most, waits: merged(entries), by: summed(delayers), queries }
}

/** @param {SiteWait[]} waits @returns {SiteWait[]} */
function merged (waits) {
  /** @type {SiteWait[]} */
  const sums = []
  for (const wait of waits) {
    const equal = sums.find(({ at, until }) => at === wait.at && until === wait.until)
    if (equal === undefined) {
      sums.push({ ...wait })
      continue
    }
    for (const key of /** @type {const} */ (['ms', 'delayed', 'most', 'count'])) equal[key] += wait[key]
  }
  return sums.sort((a, b) => b.ms + b.delayed - a.ms - a.delayed)
}

/** @param {Account['by']} delayers @returns {Account['by']} */
function summed (delayers) {
  /** @type {Account['by']} */
  const sums = []
  for (const { name, ms, max } of delayers) {
    const equal = sums.find((other) => other.name === name)
    if (equal === undefined) sums.push({ name, ms, max })
    else Object.assign(equal, { ms: equal.ms + ms, max: equal.max + max })
  }
  return sums.sort((a, b) => b.max - a.max)
}

const NEAR = 1 // ms between readings of the clock, which is the same
const MIN_SHARE = 2 / 100 // of the duration, of waits that today are told

/**
 * Lists what differs between the two accounts of a span, other than where the log is known to be nearer to
 * the truth:
 *
 * - A range of less than a millisecond is told by the log alone.
 * - When the machine woke the loop late, nobody's code ran: today that time is called a delay if others ran
 *   earlier in the same wait, the log counts it as waited.
 * - When several answers were outstanding on a connection, the kernel's time of the last data is not that of
 *   each of them: today it is taken for certain, the log tells a range.
 * - Where today no place is known, the log may tell one.
 * - Code that runs on after its request has ended is that request's in the log, nobody's today.
 * - A span inside of a request has a path of its own in the log; today it has that of whatever the request
 *   ran before, which may be a sibling. What the request ran meanwhile is a wait in the log, partly a delay
 *   today.
 *
 * @param {Both} both
 * @returns {string[]}
 */
function differencesOf ({ name, record, today, log }) {
  const { asleep = 0, asleepMost = 0 } = log
  /** @type {string[]} */
  const differences = []
  /** @param {string} what @param {number} old @param {number} ms @param {number} [slack] */
  const compare = (what, old, ms, slack = 0) => {
    if (Math.abs(old - ms) >= NEAR + slack) differences.push(`${name} ${what}: today ${old}, log ${ms}`)
  }
  const total = (/** @type {any[]} */ list, /** @type {string} */ key) => sum(list.map((each) => each[key]))
  const isInner = record.kind !== 'SERVER' && record.parentSpanId !== undefined
  compare('duration', today.duration, log.duration)
  compare('run', today.run, log.run)
  compare('parts', log.duration, log.run + log.waited + log.delayed)
  compare('delayers', log.delayed, total(log.by, 'ms'))
  if (isInner) return differences
  const most = Math.max(log.most, log.delayed + asleep)
  compare('delayed', today.delayed, Math.min(most, Math.max(log.delayed, today.delayed)))
  compare('delayed at most', today.most, Math.min(most, Math.max(log.delayed, today.most)), asleepMost)
  const unplaced = today.waits.filter(({ at }) => at === '')
  const untold = log.duration * MIN_SHARE + total(unplaced, 'ms') + total(unplaced, 'delayed')
  for (const delayer of today.by) {
    if (delayer.name === '' || delayer.name === name || delayer.ms < log.duration / 20) continue
    const ms = log.by.find((other) => other.name === delayer.name)?.ms ?? 0
    compare(`delayed by ${delayer.name}`, delayer.ms, Math.min(ms + asleep, delayer.ms))
  }
  for (const at of new Set([...today.waits, ...log.waits].map((wait) => wait.at))) {
    const lost = [today, log].map(({ waits }) => waits.filter((wait) => wait.at === at))
      .map((waits) => total(waits, 'ms') + total(waits, 'delayed'))
    compare(at, lost[0], lost[1], untold)
  }
  // Who released it is a request in the log, today the innermost span
  const keyOf = ({ at, until }) => `${at} until ${until.replace(/^.* of another/, 'end of another')}`
  for (const key of new Set([...today.waits, ...log.waits].map(keyOf))) {
    const sums = [today, log].map(({ waits }) => total(waits.filter((wait) => keyOf(wait) === key), 'ms'))
    compare(key, sums[0], sums[1], asleep + untold)
  }
  return differences
}

/** Returns the log of the thread that ran most. @param {Shadow[]} shadows */
const mainOf = (shadows) => shadows.reduce((a, b) => a.entries.length > b.entries.length ? a : b)

/** Requests to the server of fixtures/path, one group after another; see critical-path.test.js. */
const pathGroups = [
  ...[
    'sequence', 'read-files', 'repeat', 'all', 'all-settled', 'race', 'any', 'nested', 'remote', 'library',
    'leak', 'heartbeat', 'prefetch-late', 'prefetch-early', 'prefetch-unused', 'gzip', 'readable', 'worker',
    'fetch', 'http', 'http-again', 'tick', 'lazy', 'lazy-again', 'timers', 'read-callback', 'microtasks',
    'compute', 'compute-between', 'spans'
  ].map((name) => [{ path: `/${name}` }]),
  [{ path: '/large', client: 'readSlowly' }],
  [{ path: '/turn-holder' }, { path: '/turn', after: 20 }],
  [{ path: '/bound-holder' }, { path: '/bound', after: 20 }],
  [{ path: '/bare-holder' }, { path: '/bare', after: 20 }],
  [{ path: '/shared-user' }, { path: '/shared-role' }, { path: '/shared-sequence' }],
  [{ path: '/delayed' }, { path: '/blocker' }],
  [{ path: '/abort', client: 'abort' }],
  [{ path: '/open', client: 'leaveOpen' }]
]

module.exports = { bothOf, bytesOf, differencesOf, entryAt, mainOf, pathGroups, shadowed }
