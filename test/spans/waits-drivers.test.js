'use strict'

// Waits of requests with real drivers and queues: their site, their end and their length. Lengths are those
// of the servers' own sleeps, so they are lower bounds: time that others ran meanwhile counts, and time that
// the request itself ran is subtracted.

const test = require('ava')
const { parseSite, timesOf } = require('../helpers/critical-path')
const { lacks, runDrivers } = require('../helpers/drivers')
const { skip } = require('../helpers/skip')
const { patient } = require('../helpers/starved')

const INEXACT = 0.9 // of a known length: clocks of two processes
const MAIN_PART = 0.8 // of what a request did not run, where its length is not known
const [QUERY, SHORT_QUERY, POP, TASK, ANSWER] = [70, 30, 80, 60, 60] // ms, as in fixtures/drivers/app.js

/**
 * @typedef {import('../helpers/drivers').Outcome} Outcome
 *
 * @typedef {object} Expected of one request
 * @property {string} [at] functions of which one waits: `takeTurn|workInTurn`
 * @property {string} [via] packages, of which one is named
 * @property {string} until pattern, in which names of servers stand for their ports
 * @property {number} [ms] at least; default most of what it did not run
 * @property {boolean} [unproven] if a site is told
 *
 * @typedef {object} Case
 * @property {string} name
 * @property {'postgres' | 'redis'} [needs]
 * @property {Array<[path: string, ...expected: Expected[]]>} requests sent at once
 * @property {(t: import('ava').ExecutionContext, outcome: Outcome) => void} [check] what else holds
 */

const POSTGRES = 'TCP 127.0.0.1:postgres'
const querySlowly = { at: 'querySlowly', until: POSTGRES, ms: QUERY }
const fetched = { until: 'TCP( 127.0.0.1:upstream)?', ms: ANSWER }

/** @type {Case[]} */
const cases = [
  {
    name: 'pg: the request that opens the connection',
    needs: 'postgres',
    requests: [['/pg', { ...querySlowly, via: 'pg|pg-pool' }]]
  },
  {
    name: 'pg: a connection that another request opened',
    needs: 'postgres',
    requests: [['/pg-again', { ...querySlowly, via: 'pg|pg-pool' }]]
  },
  {
    name: 'pg: one query after another',
    needs: 'postgres',
    requests: [['/pg-sequence', { at: 'queryShortly', until: POSTGRES, ms: SHORT_QUERY }, querySlowly]]
  },
  {
    name: 'pg: of queries at once the slowest is waited for',
    needs: 'postgres',
    requests: [['/pg-all', querySlowly]]
  },
  {
    name: 'pg: four queries on a pool of two',
    needs: 'postgres',
    requests: ['', '-again-1', '-again-2', '-again-3'].map((again) => [`/pg-turn${again}`, querySlowly]),
    check: (t, { spans }) => {
      const paths = ['/pg-turn', '/pg-turn-again-1', '/pg-turn-again-2', '/pg-turn-again-3']
      const lengths = paths.map((path) => lostAt(spans, path, 'querySlowly')).sort((a, b) => b - a)
      t.true(lengths[1] >= 1.2 * QUERY, `two waited for a connection, too: ${lengths}`)
    }
  },
  {
    name: 'pg: clients of a pool of two are released by another request',
    needs: 'postgres',
    requests: ['', '-again-1', '-again-2'].map((again) => {
      return [`/pg-client${again}`, { at: 'queryWithClient', until: POSTGRES, ms: QUERY }]
    }),
    check: (t, { spans }) => {
      const third = spans.get('/pg-client-again-2')
      const turn = third?.attributes['longstack.waits'].find((/** @type {any} */ { until }) => {
        return /^GET \/pg-client\S* of another request$/.test(until)
      })
      t.is(parseSite(turn?.at)?.functionName, 'queryWithClient', JSON.stringify(third))
      t.true(turn.ms + (turn.delayed ?? 0) > QUERY / 4)
    }
  },
  {
    name: 'pg: in callback style the site is that of the last write',
    needs: 'postgres',
    requests: [['/pg-callback', { at: 'queryByCallback', via: 'pg', until: POSTGRES, ms: QUERY }]]
  },
  {
    name: 'pg: in callback style the path ends where it leaves the request',
    needs: 'postgres',
    requests: [['/pg-callbacks', { until: POSTGRES, ms: 2 * QUERY, unproven: true }]]
  },
  {
    name: 'ioredis',
    needs: 'redis',
    requests: [['/ioredis', { at: 'waitByIoredis', until: 'TCP 127.0.0.1:redis', ms: POP }]]
  },
  {
    name: 'redis',
    needs: 'redis',
    requests: [['/redis', { at: 'waitByRedis', via: '@redis/client', until: 'TCP 127.0.0.1:redis', ms: POP }]]
  },
  { name: 'undici.request', requests: [['/undici', { at: 'requestByUndici', ...fetched }]] },
  { name: 'undici.request on its pool', requests: [['/undici-again', { at: 'requestByUndici', ...fetched }]] },
  {
    name: 'undici.fetch on a connection that another request opened',
    requests: [['/undici-fetch', { at: 'fetchByUndici', via: 'undici', ...fetched }]]
  },
  { name: 'got', requests: [['/got', { at: 'requestByGot', ...fetched }]] },
  { name: 'piscina', requests: [['/piscina', { at: 'askWorker', via: 'piscina', until: 'MESSAGE', ms: TASK }]] },
  {
    name: 'p-queue: the second waits for its turn',
    requests: [
      ['/p-queue', { at: 'takeTurn|workInTurn', until: 'TIMER', ms: TASK }],
      ['/p-queue-again', { at: 'takeTurn', via: 'p-queue', until: 'GET /p-queue of another request', ms: TASK }]
    ]
  },
  {
    name: 'fastq: the second waits for its turn',
    requests: [
      ['/fastq', { at: 'pushPromised|workPromised', until: 'TIMER', ms: TASK }],
      ['/fastq-again', { at: 'pushPromised', until: 'GET /fastq of another request', ms: TASK }]
    ]
  },
  {
    name: 'fastq with callbacks: the second is called in the context of the first',
    requests: [
      ['/fastq-callback', { at: 'workCalled', until: 'TIMER', ms: TASK }],
      ['/fastq-callback-again', { until: 'TIMER', ms: TASK, unproven: true }]
    ]
  },
  { name: 'pbkdf2', requests: [['/pbkdf2', { at: 'deriveKey', until: 'CRYPTO' }]] },
  { name: 'gzip by a pipeline', requests: [['/gzip', { at: 'compressFile', until: '(ZLIB|FS|TCP|STREAM|HTTP).*' }]] }
]

/**
 * Adds up what a request lost at functions: what it waited, and what others ran meanwhile.
 * @param {Outcome['spans']} spans
 * @param {string} path
 * @param {string} [functions] default all
 */
function lostAt (spans, path, functions) {
  const record = spans.get(path)
  if (record === undefined) throw new Error(`no span of ${path}`)
  return timesOf(record).waits
    .filter(({ at }) => functions === undefined || functions.split('|').includes(parseSite(at)?.functionName ?? ''))
    .reduce((sum, { ms, delayed = 0 }) => sum + ms + delayed, 0)
}

/** @param {string} until @param {Outcome['ports']} ports */
function untilPattern (until, ports) {
  return RegExp(`^${until.replace(/:([a-z]+)/, (_, name) => `:${ports[name]}`)}$`)
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {Outcome} outcome
 * @param {string} path
 * @param {Expected} expected
 * @param {boolean} sites whether every site is known
 */
function checkWait (t, { spans, ports }, path, { at: functions, via, until, ms, unproven }, sites) {
  const record = spans.get(path)
  if (record === undefined) return t.fail(`no span of ${path}`)
  const { run, duration, waits } = timesOf(record)
  const text = `${path} ran ${run} of ${duration} ms: ${JSON.stringify(waits)}`
  const least = ms === undefined ? MAIN_PART * (duration - run) : INEXACT * ms - run
  const lost = lostAt(spans, path, sites ? functions : undefined)
  t.true(lost >= least, `${lost} of at least ${least} ms: ${text}`)
  const names = functions?.split('|')
  const entry = sites && names !== undefined
    ? waits.find(({ at, until: end }) => names.includes(parseSite(at)?.functionName ?? '') && untilPattern(until, ports).test(end ?? ''))
    : waits.find(({ until: end }) => untilPattern(until, ports).test(end ?? ''))
  if (entry === undefined && least <= 0) return t.pass() // its own code ran for as long
  if (!sites) return t.true(entry !== undefined || /another request/.test(until), `until ${until}: ${text}`)
  t.true(entry !== undefined, `at ${functions} until ${until}: ${text}`)
  if (via !== undefined) t.true(via.split('|').includes(String(parseSite(entry?.at)?.via)), text)
  const isMarked = /** @type {any} */ (entry).unproven === true
  t.is(isMarked, unproven === true && entry?.at !== undefined, text)
}

/** @param {Case} testCase @returns {string | undefined} what the machine lacks for it */
function lackOf ({ needs }) {
  if (needs === undefined || !lacks[needs]) return undefined
  return needs === 'postgres' ? 'PostgreSQL (Debian: postgresql)' : 'redis-server'
}

/**
 * Defines a test of each case; all share one run of the program, and a further attempt has one of its own.
 * @param {string} mode
 * @param {Record<string, string>} env
 * @param {boolean} sites whether every site is known
 */
function defineTests (mode, env, sites) {
  const possible = cases.filter((testCase) => lackOf(testCase) === undefined)
  const groups = possible.map(({ requests }) => requests.map(([path]) => path))
  /** @type {Promise<Outcome> | undefined} */
  let shared
  for (const testCase of cases) {
    patient(test)(`${mode}: ${testCase.name}`, async (t, attempt) => {
      const lack = lackOf(testCase)
      if (lack !== undefined) {
        return skip(t, `there is no ${lack}`)
      }
      const outcome = await (attempt === 1 ? shared ??= runDrivers(groups, env) : runDrivers(groups, env))
      for (const [path, ...expected] of testCase.requests) {
        for (const wait of expected) checkWait(t, outcome, path, wait, sites)
      }
      if (sites) testCase.check?.(t, outcome)
    })
  }
}

defineTests('full mode', {}, true)
