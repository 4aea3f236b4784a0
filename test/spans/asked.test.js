'use strict'

// Queries of requests on connections, compared with OpenTelemetry's instrumentations of the same drivers in
// the same process, on real servers; and exclusions.

const { createHash } = require('node:crypto')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { operationOf } = require('../../lib/requests/peek')
const { collector } = require('../helpers/collector')
const {
  hasFerretdb, hasMariadb, hasRedis, postgresDirectory, startFerretdb, startMariadb, startPostgres, startRedis
} = require('../helpers/database-servers')
const { installPackages } = require('../helpers/install-packages')
const { node, program, register, root } = require('../helpers/run')
const { skip } = require('../helpers/skip')
const { folder, longstack } = require('../helpers/span-files')
const { patient } = require('../helpers/starved')

const instrumented = path.join(root, 'test', 'fixtures', 'instrumented', 'app.js')
const ROUNDING_MS = 1.5 // OpenTelemetry's starts are in whole ms
const MAX_MS = 5 // of the difference in a quarter of all ends: more are late on a busy machine
const ANSWER_MS = 40 // of the database below
const LEAST_MS = ANSWER_MS - 5 // when an answer came is known to 4 ms, a timer to one
const FRESH = '/pg-fresh' // asks OpenTelemetry's way before the connection is there

/**
 * How many queries both record for one request; a list: for each of those that were sent at once, sorted.
 * @type {Record<string, { own: number, otel: number | number[] }>}
 */
const expected = {
  '/pg-fresh': { own: 1, otel: 1 },
  '/pg-simple': { own: 1, otel: 1 },
  '/pg-parameter': { own: 1, otel: 1 },
  '/pg-all': { own: 3, otel: 3 },
  '/pg-sequence': { own: 3, otel: 3 },
  '/pg-callback': { own: 1, otel: 1 },
  '/pg-callbacks': { own: 2, otel: 2 },
  '/pg-transaction': { own: 3, otel: 3 },
  '/pg-error': { own: 1, otel: 1 },
  '/pg-turns': { own: 1, otel: 1 },
  '/pg-turns-resolved': { own: 1, otel: 1 }, // its callback settles a promise of who asked
  '/pg-transactions': { own: 3, otel: 3 },
  '/pg-named': { own: 2, otel: 2 },
  '/mysql2-query': { own: 1, otel: 1 },
  '/mysql2-execute': { own: 1, otel: 1 },
  '/mysql2-sequence': { own: 3, otel: 3 },
  '/mysql2-executed': { own: 2, otel: 2 },
  '/mysql2-error': { own: 1, otel: 1 },
  '/mysql2-turns': { own: 1, otel: [0, 0, 0, 0, 1, 1] }, // its queue loses OpenTelemetry's context
  '/ioredis-single': { own: 1, otel: 1 },
  '/ioredis-all': { own: 3, otel: 3 },
  '/ioredis-loop': { own: 4, otel: 4 },
  '/ioredis-mixed': { own: 4, otel: 4 },
  '/ioredis-inline': { own: 1, otel: 0 }, // without a driver
  '/ioredis-pipeline': { own: 2, otel: 2 },
  '/ioredis-multi': { own: 4, otel: 4 },
  '/mongodb-find': { own: 1, otel: 1 },
  '/mongodb-insert': { own: 1, otel: 1 },
  '/mongodb-update': { own: 1, otel: 1 },
  '/mongodb-cursor': { own: 3, otel: 3 },
  '/mongodb-sequence': { own: 3, otel: 3 },
  '/mongodb-all': { own: 3, otel: 3 },
  '/mongodb-error': { own: 1, otel: 1 },
  '/mongodb-many': { own: 1, otel: 1 },
  '/mongodb-turns': { own: 1, otel: 1 }
}

/** @type {Promise<any[]> | undefined} */
let outcome

/** Runs the program with the servers that there are. @returns {Promise<any[]>} */
async function compare () {
  const { directory, offline } = installPackages('instrumented')
  if (directory === undefined) throw new Error(offline)
  const bin = postgresDirectory()
  const servers = await Promise.all([
    bin === undefined ? undefined : startPostgres(bin),
    hasMariadb() ? startMariadb() : undefined,
    hasRedis() ? startRedis() : undefined,
    hasFerretdb() ? startFerretdb() : undefined
  ])
  try {
    const ports = ['POSTGRES', 'MYSQL', 'REDIS', 'MONGODB'].flatMap((name, i) =>
      servers[i] === undefined ? [] : [[`${name}_PORT`, String(servers[i].port)]])
    const { stdout, stderr, code } = await node(['-r', register, instrumented], {
      env: { LONGSTACK_PEEK: '1', PACKAGES: directory, ...Object.fromEntries(ports) }, timeout: 120_000
    })
    if (code !== 0) throw new Error(`${code}: ${stderr}`)
    return JSON.parse(stdout)
  } finally {
    await Promise.all(servers.map((server) => server?.stop()))
  }
}

/** @param {string} driver @param {string} needs what is not there, empty: all is */
function defineTest (driver, needs = '') {
  test(`${driver}: queries match OpenTelemetry's spans in number and time`, async (t) => {
    if (needs !== '') {
      return skip(t, `there is no ${needs}`)
    }
    const requests = (await (outcome ??= compare())).filter(({ url }) => url.startsWith(`/${driver}-`))
    const differences = []
    for (const url of new Set(requests.map((request) => request.url))) {
      const same = requests.filter((request) => request.url === url)
      if (expected[url] === undefined) continue
      const { own, otel } = expected[url]
      const text = JSON.stringify(same)
      t.deepEqual(same.map(({ asked }) => asked.length), same.map(() => own), text)
      const counts = same.map((request) => request.otel.length).sort((a, b) => a - b)
      t.deepEqual(counts, Array.isArray(otel) ? otel : same.map(() => otel), text)
      for (const { asked, otel: spans } of same) {
        for (const { at: site, unanswered, peer } of asked) {
          t.true(/app\.js:\d+:\d+\)/.test(site) && unanswered === undefined && /^127\.0\.0\.1:\d+$/.test(peer), text)
        }
        if (asked.length !== spans.length) continue
        const ends = spans.map(({ to }) => to).sort((a, b) => a - b)
        asked.sort((a, b) => a.to - b.to).forEach(({ to, from }, i) => {
          t.true(to <= ends[i] + ROUNDING_MS, `an answer came before it was handled: ${text}`)
          differences.push(Math.abs(to - ends[i]))
          const starts = spans.map((span) => span.from)
          if (url !== FRESH) t.true(from > Math.min(...starts) - ROUNDING_MS, text)
        })
      }
    }
    differences.sort((a, b) => a - b)
    const [quarter, median] = [differences[differences.length >> 2], differences[differences.length >> 1]]
    t.log(`the ends differ by ${quarter.toFixed(2)} ms in the first quarter, by ${median.toFixed(2)} in the median`)
    t.true(quarter < MAX_MS, String(quarter))
  })
}

defineTest('pg', postgresDirectory() === undefined ? 'postgresql' : '')
defineTest('mysql2', hasMariadb() ? '' : 'mariadb-server')
defineTest('ioredis', hasRedis() ? '' : 'redis-server')
defineTest('mongodb', hasFerretdb() ? '' : 'FerretDB; test/helpers/build-server.sh ferretdb builds it (needs Go)')

test('undici: HTTP requests have their own spans, and are not queries', async (t) => {
  const [{ asked, clients, otel }] = (await (outcome ??= compare())).filter(({ url }) => url === '/undici')
  t.is(asked.length, 0)
  t.is(clients, otel.length)
  t.is(clients, 4)
})

test('pg: a callback-style query that a pool sends later is omitted', async (t) => {
  if (postgresDirectory() === undefined) return t.pass()
  const requests = (await (outcome ??= compare())).filter(({ url }) => url === '/pg-turns-callback')
  t.true(requests.every(({ asked }) => asked.length <= 1))
  t.is(requests.reduce((sum, { asked }) => sum + asked.length, 0), 1)
})

/**
 * What is read of the first bytes, by path: of each query in order of start.
 * @type {Record<string, (string | undefined)[]>}
 */
const operations = {
  '/pg-parameter': ['SELECT pg_class'],
  '/pg-transaction': ['BEGIN', 'SELECT', 'COMMIT'],
  '/pg-named': ['SELECT pg_class', undefined], // prepared before
  '/mysql2-execute': ['SELECT mysql.user'],
  '/mysql2-executed': ['SELECT mysql.user', undefined],
  '/ioredis-inline': [undefined],
  '/ioredis-all': ['GET', 'SET', 'GET'],
  '/ioredis-pipeline': ['SET', 'GET'],
  '/ioredis-multi': ['MULTI', 'SET', 'GET', 'EXEC'], // in one write
  '/mongodb-insert': ['insert users'],
  '/mongodb-cursor': ['find users', 'getMore', 'killCursors users'],
  '/mongodb-error': ['aggregate users'],
  '/mongodb-all': Array(3).fill('find users')
}

test('peek: verb and table, or command, and no literal', async (t) => {
  const requests = await (outcome ??= compare())
  t.false(JSON.stringify(requests).includes('secret'))
  for (const { url, asked } of requests) {
    if (operations[url] === undefined) continue
    const inOrder = asked.sort((/** @type {any} */ a, /** @type {any} */ b) => a.start - b.start)
    t.deepEqual(inOrder.map((/** @type {any} */ { operation }) => operation), operations[url])
  }
})

/** @param {string} sql @returns {string} a Query message of PostgreSQL's */
const query = (sql) => `Q\0\0${String.fromCharCode((sql.length + 5) >> 8, (sql.length + 5) & 255)}${sql}\0`
const LITERALS = [
  ["select 'from secret' from users", 'SELECT users'],
  ["select 'it''s from secret' from users", 'SELECT users'],
  ["select 'a\\' , ' from secret", 'SELECT'],
  ["select E'\\' from secret' from users", 'SELECT'],
  ['select $a$ from secret $a$ from users', 'SELECT'],
  ["select '' -- ' \n from secret", 'SELECT'],
  ["select /* ' */ ' from secret ' from users", 'SELECT'],
  ["select 'not closed from secret", 'SELECT'],
  ['insert into "Users"(name) values ($1)', 'INSERT Users'],
  ['/* a comment */ update app.users set a = 1', 'UPDATE app.users'],
  ["secret 'x'", undefined],
  ['begin; delete from secret', 'BEGIN'],
  ['select extract(year from secret), a is distinct from secret from users', 'SELECT users'],
  ['select * from (select 1 from users) secret', 'SELECT users'],
  ['create table if not exists users (a int)', 'CREATE users'],
  ['create view users as select 1 from secret', 'CREATE'],
  ['copy users from stdin', 'COPY'],
  ['revoke all on users from secret', 'REVOKE'],
  [`select ${'a, '.repeat(335)}a from secret_that_goes_on`, 'SELECT']
]
for (const [sql, operation] of LITERALS) {
  test(`peek: ${JSON.stringify(sql).slice(0, 80)} is ${operation}`, (t) => {
    const message = query(String(sql))
    t.is(operationOf(message.slice(0, 1024), message.length)?.operation, operation)
  })
}

test('peek: for MongoDB, only collection names, and nothing from compressed data', (t) => {
  const operation = (/** @type {string} */ command, opcode = 2013) => {
    const element = Buffer.from(`\x02${command}\0\x07\0\0\0secret\0`, 'latin1')
    const message = Buffer.concat([Buffer.alloc(25), element, Buffer.alloc(1)])
    message.writeInt32LE(message.length, 0)
    message.writeInt32LE(opcode, 12)
    return operationOf(message.latin1Slice(), message.length)?.operation
  }
  t.is(operation('find'), 'find secret')
  t.is(operation('createUser'), 'createUser')
  t.is(operation('find', 2012), undefined)
  t.is(operation('find', 2004), undefined)
})

/** A package that opens a connection for each question, and asks as soon as it is there. */
const oneQuestion = `
  const net = require('node:net')
  const { once } = require('node:events')
  exports.promise = async function (port) {
    await null
    const socket = net.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.write('answer ')
    await once(socket, 'data')
    socket.destroy()
  }
  exports.callback = (port) => new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write('answer '))
    socket.on('data', () => resolve(socket.destroy()))
  })`

test('the first write of a package on a connection is a query unless it writes more', async (t) => {
  const file = path.join(folder(t), 'node_modules', 'one-question', 'index.js')
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, oneQuestion)
  const { stdout, stderr, code } = await program(`${service}
    const askOnce = require(${JSON.stringify(file)})
    const records = []
    trace.on('span', (record) => { if (record.kind === 'SERVER') records.push(record) })
    routes['/promise'] = () => askOnce.promise(database.address().port)
    routes['/callback'] = () => askOnce.callback(database.address().port)
    serve(['/promise', '/callback']).then(() => setTimeout(() => {
      console.log(JSON.stringify(records.map(({ attributes }) => attributes['longstack.asked'])))
    }, 20))`)
  t.is(code, 0, stderr)
  const asked = JSON.parse(stdout)
  t.deepEqual(asked.map((/** @type {any[]} */ questions) => questions?.length), [1, 1], stdout)
  for (const [{ ms, at }] of asked) t.true(ms >= LEAST_MS && at !== undefined, stdout)
})

test('the error of a command that MongoDB refuses names the sender', async (t) => {
  if (!hasFerretdb()) return t.pass()
  const [{ error }] = (await (outcome ??= compare())).filter(({ url }) => url === '/mongodb-error')
  t.regex(error, /^MongoServerError: .*\$nonsense/)
  t.regex(error, /at .*app\.js:\d+/)
  t.regex(error, /── GET \/mongodb-error/)
})

/** A database that answers each question after ANSWER_MS, and a server whose routes ask it. */
const service = `
  const http = require('node:http')
  const net = require('node:net')
  const trace = require(${JSON.stringify(root)})
  const database = net.createServer((socket) => socket.on('error', () => {}).on('data', (data) => {
    for (const word of String(data).split(' ')) {
      if (word === 'answer') setTimeout(() => socket.write('row\\n'), ${ANSWER_MS})
    }
  }))
  const asked = []
  function ask (socket) {
    asked.push(new Promise((resolve) => waiting.push(resolve)))
    socket.write('answer ')
    return asked.at(-1)
  }
  const waiting = []
  const routes = {}
  async function serve (paths) {
    database.listen(0, '127.0.0.1')
    await new Promise((resolve) => database.once('listening', resolve))
    const { port } = database.address()
    const socket = net.connect(port, '127.0.0.1')
    socket.on('data', (data) => { for (const row of String(data).trim().split('\\n')) waiting.shift()() })
    const server = http.createServer(async (request, response) => {
      await routes[request.url](socket)
      response.end()
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const get = (path) => new Promise((resolve) => {
      http.get({ port: server.address().port, host: '127.0.0.1', path, agent: false }, (response) => {
        response.resume().on('end', resolve)
      })
    })
    for (const path of paths) await (Array.isArray(path) ? Promise.all(path.map(get)) : get(path))
    for (const one of [database, server]) one.close()
    socket.destroy()
  }
`

// At its end a process waits a second for the collector, and no longer
patient(test)('a collector gets queries as children, with ids that stay the same', async (t) => {
  const { url, spans } = await collector(t)
  const { code, stderr } = await program(`${service}
    routes['/two'] = async function two (socket) {
      await ask(socket)
      await ask(socket)
    }
    serve(['/two'])`, { env: { LONGSTACK_SPANS: url } })
  t.is(code, 0, stderr)
  const request = spans().find(({ name }) => name === 'GET /two')
  t.not(request, undefined)
  const children = spans().filter(({ parentSpanId, name }) => parentSpanId === request.spanId && / at /.test(name))
  t.is(children.length, 2)
  for (const [i, child] of children.entries()) {
    t.regex(child.name, /^127\.0\.0\.1:\d+ at ask \(.*:\d+\)$/)
    t.is(child.kind, 3)
    t.is(child.traceId, request.traceId)
    t.is(child.spanId, createHash('sha256').update(`${request.spanId}:${i}`).digest('hex').slice(0, 16))
    t.true(BigInt(child.endTimeUnixNano) - BigInt(child.startTimeUnixNano) >= BigInt(LEAST_MS) * 1_000_000n)
    const attributes = Object.fromEntries(child.attributes.map((/** @type {any} */ { key, value }) =>
      [key, Object.values(value)[0]]))
    t.like(attributes, { 'server.address': '127.0.0.1', 'code.function.name': 'ask', 'longstack.out_bytes': 7 })
    t.true(attributes['server.port'] > 0)
  }
  t.true(BigInt(children[1].startTimeUnixNano) >= BigInt(children[0].endTimeUnixNano))
})

test('queries of several requests on one connection, one without a response, and too many to keep', async (t) => {
  const { stdout, stderr, code } = await program(`${service}
    const records = []
    trace.on('span', (record) => { if (record.kind === 'SERVER') records.push(record) })
    routes['/one'] = (socket) => ask(socket)
    routes['/many'] = (socket) => Promise.all(Array.from({ length: 70 }, () => ask(socket)))
    routes['/never'] = (socket) => { socket.write('nothing ') }
    serve([['/one', '/one', '/one'], '/many', '/never']).then(() => setTimeout(() => {
      console.log(JSON.stringify(records.map(({ attributes }) => ({
        path: attributes['url.path'], asked: attributes['longstack.asked'], more: attributes['longstack.asked_more']
      }))))
    }, 400))`) // until then it may turn out who has asked
  t.is(code, 0, stderr)
  const told = JSON.parse(stdout)
  const ones = told.filter(({ path: name }) => name === '/one')
  t.is(ones.length, 3)
  for (const { asked } of ones) {
    t.is(asked.length, 1, stdout)
    t.true(asked[0].ms >= LEAST_MS && asked[0].unanswered === undefined, stdout)
  }
  const many = told.find(({ path: name }) => name === '/many')
  t.is(many.asked.length, 70)
  const never = told.find(({ path: name }) => name === '/never')
  t.is(never.asked.length, 1)
  t.true(never.asked[0].unanswered)
})

test('a report counts a request\'s queries, and sequential ones', async (t) => {
  const file = path.join(folder(t), 'spans.jsonl')
  const { code, stderr } = await program(`${service}
    routes['/four'] = async function four (socket) {
      await ask(socket)
      await Promise.all([ask(socket), ask(socket)])
      await ask(socket)
    }
    serve(['/four', '/four', '/four'])`, { env: { LONGSTACK_SPANS: file } })
  t.is(code, 0, stderr)
  const { stdout } = await longstack(['report', file])
  t.regex(stdout, /^ {2}4 queries per request, 3 of them one after another, .* in all$/m)
  const { routes } = JSON.parse((await longstack(['report', file, '--json'])).stdout)
  t.like(routes[0], { name: 'GET /four', asked: { count: 4, serial: 3 } })
  t.true(routes[0].asked.ms >= 3 * LEAST_MS)
})
