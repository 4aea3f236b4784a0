'use strict'

// The wait graph of services whose requests hang: deadlocks and convoys are named, and healthy services get
// no finding.

const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: wait } = require('node:timers/promises')
const test = require('ava')
const { postgresDirectory, startPostgres } = require('../helpers/database-servers')
const { livePrograms, longstack } = require('../helpers/live')
const healthy = require('../fixtures/wait-graph/healthy')

const directory = path.join(__dirname, '..', 'fixtures', 'wait-graph')
const READY_MS = 30_000

const { start } = livePrograms(test)
let sockets = 0

/**
 * Starts a service.
 * @param {'stuck' | 'healthy'} file
 * @param {string} name
 * @param {Record<string, string>} [env]
 */
async function service (file, name, env = {}) {
  const socket = path.join(os.tmpdir(), `longstack-graph-${process.pid}-${++sockets}.sock`)
  const program = await start(`
    const { start } = require(${JSON.stringify(path.join(directory, 'stuck'))})
    start(${JSON.stringify(name)}, require(${JSON.stringify(path.join(directory, file))}).services)
  `, { env: { ...env, LONGSTACK_SOCKET: socket } })
  const { port, routes } = program.ready
  /** @param {string} route @returns {Promise<void>} */
  const get = (route) => new Promise((resolve) => {
    http.get({ port, path: `/${route}`, agent: false }, (response) => response.resume().on('end', resolve))
      .on('error', () => resolve())
  })
  const ask = (/** @type {string} */ question) => askSocket(socket, question)
  /** Asks until all is said. @param {number} then how many wait besides @returns {Promise<any>} */
  async function graph (then) {
    for (const end = Date.now() + READY_MS; ; await wait(200)) {
      const answer = await ask('waitGraph')
      const [said] = [...answer.cycles, ...answer.convoys]
      if ((said !== undefined && (said.behind ?? said.count) >= then) || Date.now() > end) return answer
    }
  }
  return { ...program, get, ask, graph, routes }
}

/** @param {string} socket @param {string} name of the question @returns {Promise<any>} */
function askSocket (socket, name) {
  return new Promise((resolve, reject) => {
    let text = ''
    const client = net.connect(socket).on('error', reject).setEncoding('utf8')
    client.write(`${JSON.stringify({ id: 1, name, argument: {} })}\n`)
    client.on('data', (chunk) => {
      text += chunk
      if (!text.endsWith('\n')) return
      client.destroy()
      const { value, error } = JSON.parse(text)
      if (error === undefined) resolve(value)
      else reject(new Error(error))
    })
  })
}

/** @param {string | undefined} frame @returns {string | undefined} function and file */
const place = (frame) => frame?.replace(/\((?:.*\/)?([^/]+?):\d+:\d+\)/, '($1)')

/** @param {any} graph @returns {any[]} */
function inShort ({ cycles, convoys }) {
  return [
    ...cycles.map(({ by, behind, members }) => ({
      by,
      behind,
      members: members.map(({ request, count, took, caller, at }) =>
        [count, request, place(took), place(caller), place(at)].join(', ')).sort()
    })),
    ...convoys.map(({ by, count, requests, at, for: head }) => ({
      by,
      count,
      requests: requests.map(({ request }) => request),
      at: place(at),
      for: [head.count, head.request, place(head.took), place(head.at)].join(', ')
    }))
  ]
}

/**
 * @typedef {object} Case
 * @property {string} [service] if it is not the case's name
 * @property {string[]} [before] requests that come at once and are answered
 * @property {string[]} [meeting] requests that take, and go on once all have
 * @property {string[]} [first] such as do not
 * @property {string[]} [then] requests that come later
 * @property {any} said
 */

/** @type {Record<string, Case>} */
const cases = {
  'two locks, the first time': {
    service: 'twoLocks',
    meeting: ['a', 'b'],
    then: ['a'],
    said: {
      by: 'name',
      behind: 1,
      members: [
        '1, GET /a, a (stuck.js), a (stuck.js), acquire (locks.js)',
        '1, GET /b, b (stuck.js), b (stuck.js), acquire (locks.js)'
      ]
    }
  },
  'two locks for which others have waited before': {
    service: 'twoLocks',
    before: ['a', 'a', 'a', 'a'],
    meeting: ['a', 'b'],
    said: {
      by: 'settled',
      behind: 0,
      members: [
        '1, GET /a, a (stuck.js), a (stuck.js), acquire (locks.js)',
        '1, GET /b, b (stuck.js), b (stuck.js), acquire (locks.js)'
      ]
    }
  },
  'three locks in a ring': {
    service: 'ring',
    meeting: ['x', 'y', 'z'],
    said: {
      by: 'name',
      behind: 0,
      members: ['x', 'y', 'z'].map((name) => `1, GET /${name}, both (stuck.js), both (stuck.js), acquire (locks.js)`)
    }
  },
  'a pool that all holders wait for again': {
    service: 'pool',
    before: ['single', 'single'],
    meeting: ['pair', 'pair'],
    then: ['single', 'single', 'single'],
    said: { by: 'name', behind: 3, members: ['2, GET /pair, pair (stuck.js), pair (stuck.js), acquire (locks.js)'] }
  },
  'p-queue, entered again by what it runs': {
    service: 'queue',
    meeting: ['outer'],
    said: { by: 'name', behind: 0, members: ['1, GET /outer, outer (stuck.js), task (stuck.js), add (index.js)'] }
  },
  'async-mutex': {
    service: 'asyncMutex',
    meeting: ['a', 'b'],
    said: {
      by: 'name',
      behind: 0,
      members: [
        '1, GET /a, both (stuck.js), nested (stuck.js), runExclusive (Mutex.js)',
        '1, GET /b, both (stuck.js), nested (stuck.js), runExclusive (Mutex.js)'
      ]
    }
  },
  'a mutex of promises': {
    service: 'tails',
    meeting: ['a', 'b'],
    said: {
      by: 'promise',
      behind: 0,
      members: [
        '1, GET /a, a (stuck.js), a (stuck.js), lock (locks.js)',
        '1, GET /b, b (stuck.js), b (stuck.js), lock (locks.js)'
      ]
    }
  },
  'generic-pool': {
    service: 'genericPool',
    meeting: ['pair', 'pair'],
    said: { by: 'name', behind: 0, members: ['2, GET /pair, pair (stuck.js), pair (stuck.js), acquire (Pool.js)'] }
  },
  'many behind one': {
    service: 'convoy',
    first: ['slow'],
    then: ['quick', 'quick', 'quick', 'quick'],
    said: { by: 'name', count: 4, requests: ['GET /quick'], at: 'acquire (locks.js)', for: '1, GET /slow, slow (stuck.js), slow (stuck.js)' }
  },
  'many behind one, whose records are overwritten': {
    service: 'busyConvoy',
    first: ['slow'],
    then: ['quick', 'quick', 'quick', 'work'],
    said: { by: 'name', count: 3, requests: ['GET /quick'], at: 'acquire (locks.js)', for: '1, GET /slow, slow (stuck.js), slow (stuck.js)' }
  },
  'many behind one that waits for an answer': {
    service: 'convoyBehindAnswer',
    before: ['quick'],
    first: ['slow'],
    then: ['quick', 'quick', 'quick'],
    said: { by: 'name', count: 3, requests: ['GET /quick'], at: 'acquire (locks.js)', for: '1, GET /slow, slow (stuck.js), slow (stuck.js)' }
  },
  'many in a queue behind one': {
    service: 'queueConvoy',
    first: ['slow'],
    then: ['quick', 'quick', 'quick'],
    said: { by: 'name', count: 3, requests: ['GET /quick'], at: 'add (index.js)', for: '1, GET /slow, slow (stuck.js), slow (stuck.js)' }
  },
  'many behind one, each with several pending awaits': {
    service: 'mutexConvoy',
    first: ['slow'],
    then: ['quick', 'quick', 'quick'],
    said: { by: 'name', count: 3, requests: ['GET /quick'], at: 'runExclusive (Mutex.js)', for: '1, GET /slow, slow (stuck.js), slow (stuck.js)' }
  },
  'each behind the one before it': {
    service: 'tailConvoy',
    first: ['slow'],
    then: ['quick', 'quick', 'quick'],
    said: { by: 'promise', count: 3, requests: ['GET /quick'], at: 'lock (locks.js)', for: '1, GET /slow, slow (stuck.js), slow (stuck.js)' }
  }
}

/** @param {import('ava').ExecutionContext<any>} t @param {Case} one @param {Record<string, string>} [env] */
async function ask (t, { service: name = '', before = [], meeting = [], first = [], then = [], said }, env) {
  const { get, graph, told, pid, stderr } = await service('stuck', name, env)
  await Promise.all(before.map(get))
  if (meeting.length > 0) await get(`meet/${meeting.length}`)
  for (const route of [...meeting, ...first]) get(route)
  for (let i = 0; i < first.length; i++) await told('taken')
  if (meeting.length > 0) await told('met')
  for (const route of then) get(route)
  const answer = await graph(then.filter((route) => route !== 'work').length)
  t.deepEqual(inShort(answer), [said])
  t.notRegex(stderr(), /longstack:/)
  return { pid, answer }
}

for (const [title, one] of Object.entries(cases)) test(title, (t) => ask(t, one))

const bin = postgresDirectory()
const withPostgres = bin === undefined && process.env.CI === undefined ? test.skip : test
if (bin === undefined) console.log('no PostgreSQL: its pool is not tested')

withPostgres('a PostgreSQL pool is deadlocked: all clients wait for another one, and many requests for them', async (t) => {
  const server = await startPostgres(/** @type {string} */ (bin))
  try {
    const env = { PG_PORT: String(server.port) }
    await ask(t, {
      service: 'pg',
      before: Array(20).fill('quick'),
      meeting: ['nested', 'nested'],
      said: { by: 'settled', behind: 0, members: ['2, GET /nested, nested (stuck.js), nested (stuck.js), connect (index.js)'] }
    }, env)
    await ask(t, {
      service: 'pg',
      first: ['slow', 'slow'],
      then: ['quick', 'quick', 'quick'],
      said: { by: 'name', count: 3, requests: ['GET /quick'], at: 'connect (index.js)', for: '2, GET /slow, slow (stuck.js), slow (stuck.js) via pg' }
    }, env)
  } finally {
    await server.stop()
  }
})

test('the graph is printed as text and as JSON', async (t) => {
  const { pid } = await ask(t, cases['two locks, the first time'])
  const { stdout } = await longstack('why', pid)
  t.regex(stdout, /^Who waits for whom\n\nprobably a deadlock: GET \/[ab] holds what it took at [ab] \(stuck\.js:\d+\) and waits at [ab] \(stuck\.js:\d+\), in acquire \(locks\.js:\d+\), for what GET \/[ab] took at /m)
  t.regex(stdout, /; 1 more request waits behind\n {2}a guess: /)
  const [{ threads: [{ waitsFor }] }] = JSON.parse((await longstack('why', '--json', pid)).stdout).processes
  t.deepEqual(Object.keys(waitsFor), ['edges', 'cycles', 'convoys'])
})

for (const name of Object.keys(healthy.services)) {
  test(`nothing is reported for ${name}`, async (t) => {
    const { get, ask, routes } = await service('healthy', name)
    for (let i = 0; i < 6; i++) {
      for (const route of routes) get(route)
      await wait(5)
    }
    await wait(1600) // until what hangs has hung for longer than a second
    const { cycles, convoys } = await ask('waitGraph')
    t.deepEqual([cycles, convoys], [[], []])
  })
}
