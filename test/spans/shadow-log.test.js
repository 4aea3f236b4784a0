'use strict'

// Spans as today's account tells them, and as they are read from the run log, in the same processes. Both
// must agree, but for what `differencesOf` lists and what is named here: there the log is nearer to the
// truth, which the other end of a connection has told.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { runServer } = require('../helpers/critical-path')
const {
  hasMariadb, hasRedis, postgresDirectory, startMariadb, startPostgres, startRedis
} = require('../helpers/database-servers')
const { lacks, runDrivers } = require('../helpers/drivers')
const { installPackages } = require('../helpers/install-packages')
const { recordsOf } = require('../helpers/records')
const { node, register, root } = require('../helpers/run')
const { bothOf, differencesOf, mainOf, pathGroups, shadowed } = require('../helpers/shadow-log')
const { patient } = require('../helpers/starved')

const KERNEL = 5 // ms: its clock has 4
const TIMER = 1 // ms by which a timer may be early
const SEEDS = [1, 2, 3]
const REQUESTS = 48 // of a random program
const fixtures = path.join(root, 'test', 'fixtures')
const timed = patient(test)

/**
 * @typedef {import('../helpers/shadow-log').Both} Both
 * @typedef {import('../helpers/shadow-log').Shadow} Shadow
 */

/**
 * Runs a program that prints its spans.
 * @param {string[]} args
 * @param {Record<string, string>} [env]
 * @returns {Promise<{ printed: any, both: Both[] }>}
 */
async function run (args, env = {}) {
  const { result, shadows } = await shadowed((shadow) => node(['-r', register, ...args], { env: { ...env, ...shadow } }))
  if (result.code !== 0 || result.stderr !== '') throw new Error(`${result.code}: ${result.stderr}`)
  const printed = JSON.parse(result.stdout)
  return { printed, both: bothOf(printed.records, mainOf(shadows)) }
}

/** @param {Both[]} both @param {string} route @returns {Both} of a server */
function served (both, route) {
  const found = both.filter(({ record }) => record.kind === 'SERVER' && record.attributes['url.path'] === route)
  if (found.length !== 1) throw new Error(`${found.length} requests are of ${route}`)
  return found[0]
}

const text = (/** @type {unknown} */ value) => JSON.stringify(value)

for (const engine of ['native', 'js']) {
  timed(`${engine}: both agree about the critical paths`, async (t) => {
    const env = { LONGSTACK_CAPTURE: engine }
    const { result, shadows } = await shadowed((shadow) => runServer(pathGroups, { ...env, ...shadow }))
    const both = bothOf(result.records, mainOf(shadows))
    t.is(both.length, result.records.length)
    // A bound callback of the one is called by the other, in a timer: today the timer is told
    const bound = served(both, '/bound')
    const isBound = (/** @type {Both} */ each) => each === bound
    t.deepEqual(both.filter((each) => !isBound(each)).flatMap(differencesOf), [])
    t.is(bound.log.waits[0].until, 'GET /bound-holder of another request', text(bound))
    t.is(bound.log.waits[0].at, bound.today.waits[0].at)
  })
}

timed('both agree about random programs', async (t) => {
  for (const seed of SEEDS) {
    const program = path.join(fixtures, 'shadow-log', 'random.js')
    const { both } = await run([program, String(seed), String(REQUESTS)])
    t.true(both.filter(({ record }) => record.kind === 'SERVER').length >= REQUESTS)
    // In the first fetch of Node 20, V8 resolves a promise outside of any hook, at a time that is not known
    const known = both.filter(({ log }) => !log.waits.some(({ at, until }) => at.startsWith('host ') && until === 'TIMER'))
    t.true(known.length > both.length * 0.9)
    t.deepEqual(known.flatMap(differencesOf), [], `seed ${seed}`)
  }
})

timed('delays are what they were: the other end has told, or a timer', async (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-shadow-'))
  const pipe = path.join(directory, 'pipe')
  const args = [path.join(fixtures, 'delays', 'upstream.js'), pipe]
  const upstream = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    const port = String((await once(upstream.stdout, 'data'))[0]).trim()
    const { printed, both } = await run([path.join(fixtures, 'delays', 'app.js'), port, pipe])
    t.deepEqual(both.flatMap(differencesOf), [])
    let count = 0
    for (const each of both) {
      const [least, most] = printed.truths[each.name] ?? [0, null]
      const [wait] = each.log.waits
      if (printed.truths[each.name] === undefined || wait === undefined) continue
      count++
      // What the span ran since its callback began is none
      t.true(wait.most > least - each.log.run - KERNEL, text(each))
      t.true(most === null || wait.delayed < most + KERNEL, text(each))
    }
    t.true(count > 20)
  } finally {
    upstream.kill()
    fs.rmSync(directory, { recursive: true, force: true })
  }
})

/** @param {string} name of a case in fixtures/shadow-log/truths.js */
const truthOf = (name) => run([path.join(fixtures, 'shadow-log', 'truths.js'), name])

timed('a queue hands a connection on in ticks: each request has its own queries', async (t) => {
  const { both } = await truthOf('turns') // today two, none and none
  let end = 0
  for (const name of ['a', 'b', 'c']) {
    const { record, log: { queries } } = served(both, `/${name}`)
    const start = Number(BigInt(record.startTimeUnixNano)) / 1e6
    t.is(queries.length, 3, text(queries))
    for (const query of queries) {
      t.true(query.end - query.start >= 20 - TIMER && !query.unanswered, text(queries))
      t.true(start + query.start > end - TIMER, 'one after another')
      t.regex(query.at, /^query /)
      end = start + query.end
    }
  }
})

timed('commands of several requests go out in one write: each has its query', async (t) => {
  const { both } = await truthOf('batch') // today the first one alone
  for (const name of ['a', 'b', 'c', 'd']) {
    const { log: { queries } } = served(both, `/${name}`)
    t.is(queries.length, 1, text(queries))
    t.true(queries[0].end - queries[0].start >= 30 - TIMER && !queries[0].unanswered, text(queries))
  }
})

timed('two answers come while the loop is blocked: a range that has what is true', async (t) => {
  const { both, printed: { late } } = await truthOf('pipelined') // today of the earlier one what is true of the later
  for (const name of ['fast', 'slow']) {
    const { log } = served(both, `/${name}`)
    const [{ delayed, most }] = log.waits
    t.true(delayed < late[name] + KERNEL && most > late[name] - log.run - KERNEL, text([late, log]))
  }
  t.true(late.fast > late.slow + 100, text(late))
})

timed('an answer on a connection that an agent has kept: the kernel tells when it came', async (t) => {
  const { both, printed: { late } } = await truthOf('agent')
  const { log } = served(both, '/a')
  t.is(log.most, log.delayed, text(log))
  t.true(Math.abs(log.waits[0].delayed - late.a) < KERNEL + log.run, text([late, log]))
  t.deepEqual(log.queries, [], 'a request of HTTP is no query')
})

timed('a query that is begun, and awaited after a shorter sleep, is the wait', async (t) => {
  const { both } = await truthOf('begun') // today a part of it is the sleep's
  const { log } = served(both, '/a')
  t.deepEqual(log.waits.filter(({ until }) => until === 'TIMER'), [], text(log))
  t.is(log.waits[0].until, 'TCP')
  t.true(log.waits[0].ms >= 60 - TIMER - log.run, text(log))
})

/** Routes of fixtures/drivers, one group after another. */
const driven = [
  ...['/got', '/undici', '/undici-again', '/undici-fetch', '/piscina', '/pbkdf2'].map((route) => [route]),
  ['/p-queue', '/p-queue-again'],
  ['/fastq', '/fastq-again'],
  ['/fastq-callback', '/fastq-callback-again'],
  ...lacks.redis ? [] : [['/ioredis'], ['/redis']],
  ...lacks.postgres
    ? []
    : [
        ['/pg'], ['/pg-again'], ['/pg-sequence'], ['/pg-all'], ['/pg-callback'],
        ['', '-again-1', '-again-2', '-again-3'].map((again) => `/pg-turn${again}`),
        ['', '-again-1', '-again-2'].map((again) => `/pg-client${again}`)
      ]
]

timed('both agree about drivers and queues, and count their queries', async (t) => {
  const { result, shadows } = await shadowed((env) => runDrivers(driven, env))
  const both = bothOf([...result.spans.values()], mainOf(shadows))
  t.is(both.length, driven.flat().length)
  t.deepEqual(both.flatMap(differencesOf), [])
  for (const { name, today: { queries }, log } of both) {
    if (!/\/(pg|ioredis|redis)/.test(name)) { // today the first request of HTTP on a connection is one
      t.deepEqual(log.queries, [], name)
      continue
    }
    t.is(log.queries.length, queries.length, name)
    log.queries.forEach(({ start, end, at, unanswered }, i) => {
      const isSame = Math.abs(start - queries[i].start) < TIMER && Math.abs(end - queries[i].end) < TIMER
      t.true(isSame && unanswered === queries[i].unanswered, `${name}: ${text([log.queries, queries])}`)
      t.is(at.split(' ')[0], queries[i].at.split(' ')[0], name)
    })
  }
})

/** Queries by route of fixtures/instrumented where the log tells others than today's account. */
const otherQueries = {
  '/ioredis-pipeline': 2, // commands: today those of one write are one
  '/ioredis-multi': 4
}

timed('queries of drivers are as many as are told today, one for each command', async (t) => {
  const { directory, offline } = installPackages('instrumented')
  if (directory === undefined) throw new Error(offline)
  const bin = postgresDirectory()
  const starts = Object.entries({
    POSTGRES: bin && (() => startPostgres(bin)),
    MYSQL: hasMariadb() && startMariadb,
    REDIS: hasRedis() && startRedis
  })
  const servers = await Promise.all(starts.map(async ([name, start]) => {
    return { name, server: start && await start() }
  }))
  try {
    const ports = servers.flatMap(({ name, server }) => server ? [[`${name}_PORT`, String(server.port)]] : [])
    const { result, shadows } = await shadowed(async (env) => {
      const file = path.join(env.SHADOW_LOG, 'spans.jsonl')
      const app = path.join(fixtures, 'instrumented', 'app.js')
      const { code, stderr } = await node(['-r', register, app], {
        env: { ...env, ...Object.fromEntries(ports), PACKAGES: directory, LONGSTACK_SPANS: file }
      })
      if (code !== 0) throw new Error(`${code}: ${stderr}`)
      return recordsOf(fs.readFileSync(file, 'utf8'))
    })
    const both = bothOf(result, mainOf(shadows)).filter(({ record }) => record.kind === 'SERVER')
    t.true(both.length > 0)
    t.deepEqual(both.flatMap(differencesOf), [])
    for (const { name, record, today, log } of both) {
      const expected = otherQueries[record.attributes['url.path']] ?? today.queries.length
      t.is(log.queries.length, expected, `${name}: ${text([today.queries, log.queries])}`)
      if (expected !== today.queries.length) continue
      const starts = [today, log].map(({ queries }) => queries.map(({ start }) => start))
      t.true(starts[0].every((start, i) => Math.abs(start - starts[1][i]) < TIMER), `${name}: ${text(starts)}`)
    }
  } finally {
    await Promise.all(servers.map(({ server }) => server && server.stop()))
  }
})
