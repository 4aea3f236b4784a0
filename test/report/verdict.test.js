'use strict'

// The verdict on running programs: services with one fault each, for which it names the rule, the place and
// the route, and healthy ones without findings. Shares are compared with limits that hold on a busy machine;
// exact ones are in test/unit/report/aggregate/verdict.test.js.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { createModel } = require('../../report/aggregate/model')
const expected = require('../fixtures/verdict/expected')
const { folder } = require('../helpers/span-files')
const { node, register, root, runsAll } = require('../helpers/run')

const fixtures = path.join(root, 'test', 'fixtures', 'verdict')
/** @type {Array<import('node:child_process').ChildProcess>} */
const servers = []
/** by environment variable @type {Record<string, string>} */
const ports = {}

/** Starts a server that the services use. @param {string} name */
async function start (name) {
  const stdio = /** @type {const} */ (['pipe', 'pipe', 'inherit'])
  const child = spawn(process.execPath, [path.join(fixtures, `${name}.js`)], { stdio })
  servers.push(child)
  ports[`${name.toUpperCase()}_PORT`] = String((await once(child.stdout, 'data'))[0]).trim()
}

test.before(() => Promise.all(['database', 'upstream', 'redis'].map(start)))

test.after.always(() => { for (const server of servers) server.kill() })

/**
 * Runs a service to its end, and returns the verdict on it. A machine that gives the service no CPU is a
 * fault of its own, which the verdict tells: where another is expected, the service runs up to three times.
 * @param {import('ava').ExecutionContext} t
 * @param {string} name
 * @param {string[]} expected rules and routes
 * @param {Record<string, string>} [env]
 * @param {number} [convoy] requests that wait at once, at least; 0: no such thing
 */
async function verdictOn (t, name, expected, env, convoy) {
  for (let attempts = 1; ; attempts++) {
    const { verdict: findings, convoys } = await modelOfRun(t, name, env)
    const told = findings.map((finding) => `${finding.rule} ${finding.route}`)
    const isAsExpected = told.join() === expected.join() && (convoy !== 0 || convoys.length === 0)
    if (attempts < 3 && !isAsExpected) {
      t.log(`attempt ${attempts}: ${told.join(', ')} ${JSON.stringify(convoys)}`)
      continue
    }
    t.deepEqual(told, expected)
    if (convoy === 0) t.deepEqual(convoys, [])
    if (convoy > 0) t.is(convoys[0]?.at, findings[0].at)
    if (convoy > 0) t.true(convoys[0]?.count >= convoy, JSON.stringify(convoys))
    return findings
  }
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} name
 * @param {Record<string, string>} [env]
 * @param {'LONGSTACK_SPANS' | 'LONGSTACK_RECORD'} [output]
 */
async function modelOfRun (t, name, env = {}, output = 'LONGSTACK_SPANS') {
  const file = path.join(folder(t), output === 'LONGSTACK_SPANS' ? 'spans.jsonl' : 'app.rec')
  const options = { env: { [output]: file, ...ports, ...env } }
  const { stderr, code } = await node(['-r', register, path.join(fixtures, `${name}.js`)], options)
  t.is(code, 0, stderr)
  const model = await createModel([file])
  t.true(model.routes.some(({ kind, count }) => kind === 'SERVER' && count >= 10), 'requests were recorded')
  return model
}

/** Returns the line of a fixture with the fault. @param {string} name */
function faultOf (name) {
  const lines = fs.readFileSync(path.join(fixtures, `${name}.js`), 'utf8').split('\n')
  return lines.findIndex((line) => line.includes('// fault')) + 1
}

/**
 * @typedef {object} Expectation
 * @property {string} rule
 * @property {string} route
 * @property {string} [at] function, where it has a name
 * @property {Record<string, number | string>} [figures] those that time does not change
 * @property {Record<string, string>} [env]
 */

/** @type {Record<string, Expectation>} */
const faulty = {
  'pool-own-release': { rule: 'pool', route: 'GET /items', at: 'acquire', figures: { connections: 3 } },
  'pool-socket-release': { rule: 'pool', route: 'GET /items', at: 'acquire', figures: { connections: 2 } },
  'pool-query': { rule: 'pool', route: 'GET /items', at: '/items', figures: { connections: 2 } },
  'pool-undici': { rule: 'pool', route: 'GET /order', figures: { connections: 2 } },
  failing: { rule: 'failing', route: 'GET /invoice/*', figures: { path: '/invoice/3', failed: 20 } },
  queue: { rule: 'pool', route: 'GET /pdf', at: 'limit' },
  'sequence-loop': { rule: 'sequence', route: 'GET /report', at: 'loadItems' },
  'sequence-sites': { rule: 'sequence', route: 'GET /page', at: 'loadPage', figures: { places: 4 } },
  dependency: { rule: 'dependency', route: 'GET /prices', at: '/prices' },
  'lock-fetch': { rule: 'pool', route: 'GET /reserve', at: 'locked', figures: { atATime: 1 } },
  retries: { rule: 'retries', route: 'GET /item' },
  'hot-route': { rule: 'loop', route: 'GET /login' },
  'fan-out': { rule: 'fanOut', route: 'GET /export', figures: { queries: 30, atOnce: 3, peer: '127.0.0.1:PORT' } },
  blocker: { rule: 'blocker', route: 'GET /price', at: 'computePrice', env: { LONGSTACK_BLOCKED: '20' } },
  delayer: { rule: 'delayer', route: 'GET /price' },
  'after-response': { rule: 'after', route: 'GET /order' },
  'after-failure': { rule: 'after', route: 'GET /order', at: 'notify' }
}
if (runsAll) faulty.interval = { rule: 'interval', route: 'GET /watch', at: 'watch' }

for (const [name, { rule, route, at: functionName, figures = {}, env }] of Object.entries(faulty)) {
  test.serial(`${name}: the fault is found, with its place`, async (t) => {
    const [finding] = await verdictOn(t, `faulty/${name}`, [`${rule} ${route}`], env)
    t.true(finding.share >= 0 && finding.share <= 1, JSON.stringify(finding))
    for (const [key, value] of Object.entries(figures)) {
      t.is(finding.figures[key], typeof value === 'string' ? value.replace('PORT', ports.DATABASE_PORT) : value, key)
    }
    t.regex(finding.sentence, /^\S.*\.$/)
    if (functionName === undefined) return
    const place = `${name}.js:${faultOf(`faulty/${name}`)}:`
    t.true(finding.at?.includes(place), `${finding.at}, not ${place}`)
    t.true(finding.at?.includes(functionName), finding.at)
  })
}

/**
 * Faults that a recording shows: rule, route and part of the sentence.
 * @type {Record<string, [rule: string, route: string | undefined, words: RegExp]>}
 */
const recorded = {
  'threads-pbkdf2': ['threads', 'GET /login', /a thread of libuv's pool at hashPassword .* up to 1[0-6] tasks at once for 4 /],
  'worker-one': ['workers', 'GET /thumbnail', /a free worker thread at .* up to [78] tasks at once for 1 worker/],
  'dns-slow': ['opening', 'GET /convert', /opening connections to 127\.0\.0\.1:\d+ at dns-slow\.js:\d+: each takes 1\d\d ms/],
  'stampede-cache': ['stampede', 'GET /prices', /sends a query at query .* ← loadPrices .* up to \d+ at once do, \d+ times/],
  'no-answer': ['unanswered', 'GET /item/*', /\(all \/item\/2\) got no response .* They last ran at sendItem /],
  'one-connection': ['dependency', 'GET /user', /up to 8 queries at once share 1 connection; each waits /],
  'agent-sockets': ['pool', 'GET /price', /a free socket of an http\.Agent at agent-sockets\.js:\d+ .*: 1 at a time/],
  'agent-undici': ['pool', 'GET /price', /a turn .*: 1 connection, 1 query per request/],
  'sockets-growing': ['grows', undefined, /\d+ × TCP connection opened at connection\.js:31 are open, \d+ more than .* s before: /],
  fastq: ['pool', 'GET /seat', /a lock at bookSeat \(fastq\.js:13\) .*: 1 at a time/],
  'p-queue': ['pool', 'GET /contact', /a lock at sendMail \(p-queue\.js:11\) via p-queue .*: 1 at a time/],
  transaction: ['pool', 'GET /pay', /a turn at acquire .*: up to 3 at a time; \d+ % of a turn is the wait for 127\.0\.0\.1:\d+ at pay \(transaction/]
}
if (runsAll) {
  for (const [name, [rule, route, words]] of Object.entries(recorded)) {
    test.serial(`${name}: the fault is found in a recording`, async (t) => {
      const { verdict: findings } = await modelOfRun(t, `faulty/${name}`, {}, 'LONGSTACK_RECORD')
      const finding = findings.find((each) => each.rule === rule && each.route === route)
      // How many go at a time is only said if it is steady, which it is not without a CPU
      const isUnsteady = rule === 'pool' && findings.some((each) => each.rule === 'starved')
      t.regex(String(finding?.sentence), isUnsteady ? / waits for a (?:lock|turn|free socket)/ : words, JSON.stringify(findings))
    })
  }

  test.serial('code outside of requests is found, unless the process waits for a CPU', async (t) => {
    const { verdict: findings } = await modelOfRun(t, 'faulty/small-callbacks', {}, 'LONGSTACK_RECORD')
    const finding = findings.find(({ rule }) => rule === 'background' || rule === 'starved')
    t.regex(String(finding?.sentence), /scheduled at reindex \(small-callbacks\.js:\d+\)|used only \d+ % of a CPU/)
  })
}

test.serial('sequential queries are counted even if the loop and a pool are busy', async (t) => {
  for (const CLIENTS of ['1', '12']) {
    const { verdict: findings } = await modelOfRun(t, 'faulty/sequence-pool', { CLIENTS })
    const { sentence, at: frame } = findings.find(({ rule }) => rule === 'sequence') ?? {}
    t.regex(String(sentence), /: 8 × loadUser in each request, /, `${CLIENTS}: ${JSON.stringify(findings)}`)
    t.regex(String(frame), /loadUser|listOrders|\/orders /)
  }
})

test.serial('a lock is reported as a lock, even if the guarded code uses connections', async (t) => {
  const [finding] = await verdictOn(t, 'faulty/lock', ['pool GET /cache'], {}, 3)
  t.regex(finding.sentence, /waits for a lock at lock \(lock\.js:\d+\)/)
  t.is(finding.figures.atATime, 1)
})

test('bench/advice.js expects a finding for each faulty service', (t) => {
  const files = fs.readdirSync(path.join(fixtures, 'faulty')).map((file) => `faulty/${path.basename(file, '.js')}`)
  const names = Object.entries(expected.faulty).map(([name, { file = `faulty/${name}` }]) => file)
  t.deepEqual([...new Set(names)].sort(), files.sort())
})

for (const file of fs.readdirSync(path.join(fixtures, 'healthy'))) {
  const name = path.basename(file, '.js')
  test.serial(`${name}: there is no finding`, async (t) => {
    await verdictOn(t, `healthy/${name}`, [], { LONGSTACK_BLOCKED: '50' }, 0)
  })
}
