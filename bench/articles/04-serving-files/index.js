'use strict'

// Serving files: chunks of many sizes, strings compared with Buffers, and more connections; longstack's spans
// break down the time of a request. After "Node.js Can Really Scale", "Node File Read Performance" and "Node
// JS and Binary Data" (Andrew Cholakian, 2010), on node-paperboy (Felix Geisendörfer, 2010); on strings also
// "You Did What?!? Understanding Node Optimizations" (Trevor Norris, 2013).
//
//     node bench/articles/04-serving-files --answers             prints the server's answers
//     node bench/articles/04-serving-files --json [--quick]      measures the claims and tables once

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { obey, start, load, end, paired, digits, main } = require('../common/measure')
const { answers } = require('./answers')
const claims = require('./claims.json')
const { createServer, ways, writeFile, KIB } = require('./ways')

const CLI = path.join(__dirname, '..', '..', '..', 'lib', 'cli', 'main.js')
const CONNECTIONS = 8
const LIMIT_MS = { full: 450, quick: 10 }

/**
 * The ways on each side of a claim; for encodings, the encodings of the strings.
 * @type {Record<string, string[]>}
 */
const comparedWays = {
  'chunk-size': ['four', 'whole'],
  'string-over-buffer': ['boxed', 'latin1'],
  'large-strings': ['latin1', 'oneLatin1'],
  'fresh-over-reused': ['reused', 'medium']
}
const comparedEncodings = { a: 'latin1', b: 'utf8' }
const comparedConnections = { a: 10, b: 500 }

// The children

/** The measured server. @param {string} root */
function serve (root) {
  const server = createServer(root)
  server.keepAliveTimeout = 120_000
  server.listen({ port: 0, host: '127.0.0.1', backlog: 2048 }, () => obey({ port: server.address().port }))
}

/** Decodes 512 KiB repeatedly. @param {string} encoding */
function decode (encoding) {
  const buffer = Buffer.alloc(512 * KIB, 'a plain text. ')
  obey({
    async run (units) {
      for (let i = 0; i < units; i++) {
        if (buffer.toString(encoding).length !== buffer.length) throw new Error('decoded incompletely')
      }
    }
  })
}

// The measurements

/** Returns the number of connections within the limit of open files: a socket and a file per request. */
function maxConnections () {
  const limits = fs.existsSync('/proc/self/limits') ? fs.readFileSync('/proc/self/limits', 'latin1') : ''
  const [, limit = '1024'] = /^Max open files +(\d+)/m.exec(limits) ?? []
  return Math.floor((Number(limit) - 100) / 2)
}

/**
 * Loads a server after a warm-up.
 * @param {Awaited<ReturnType<typeof start>>} server
 * @param {string} way
 * @param {{ limit: number, connections?: number, mark?: string }} options limit: ms; mark: part of span
 *   name
 */
async function loadServer (server, way, { limit, connections = CONNECTIONS, mark }) {
  await load({ port: server.port, paths: [`/${way}/warm`], connections, limit: limit / 3 })
  const before = await server.cpu()
  const paths = [mark === undefined ? `/${way}` : `/${way}/${mark}`]
  const figures = await load({ port: server.port, paths, connections, limit })
  return { ...figures, cpu: (await server.cpu() - before) / figures.units }
}

/**
 * Returns the routes of `longstack report --json`, by name.
 * @param {string} file
 * @returns {Map<string, any>}
 */
function routesOf (file) {
  const args = [CLI, 'report', '--json', file]
  const json = execFileSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 64 << 20 })
  const { routes } = JSON.parse(json)
  return new Map(routes.map((route) => [route.name, route]))
}

const ms = (value) => value === undefined ? '' : digits(value)

/** Formats the quartiles of a route's requests, and the mean breakdown of their time. */
function cellsOf ({ summary: { q1, median, q3 }, split: { run, wait, delayed } }) {
  const longest = Object.entries(wait).sort(([, a], [, b]) => b - a).slice(0, 2)
  const waits = longest.map(([name, value]) => `${name} ${ms(value)}`).join(', ') || '0'
  return [q1, median, q3, run].map(ms).concat(waits, ms(delayed))
}

/** @param {boolean} quick */
function tablesOf (quick) {
  const names = quick ? ['whole'] : Object.keys(ways)
  const amounts = (quick ? [10] : [1, 10, 100, 1000]).filter((connections) => connections <= maxConnections())
  return [{
    title: `500 KiB, ${CONNECTIONS} connections`,
    heading: 'sent as',
    rows: names.map((way) => ({ label: ways[way].name, way, connections: CONNECTIONS }))
  }, {
    title: '500 KiB in chunks of 64 KiB, more and more connections',
    heading: 'connections',
    rows: amounts.map((connections) => ({ label: String(connections), way: 'medium', connections }))
  }]
}

const EXPLANATION = 'MB/s bare and traced; ms of a traced request: quartiles, and averages of where ' +
  'they went, which a few slow requests raise'
const HEADING = ['MB/s', 'traced', '1st Qu.', 'median', '3rd Qu.', 'run', 'wait', 'delayed']

/**
 * Measures the tables: throughput of a bare server and of one that writes spans, and the figures of its
 * spans.
 * @param {string} root
 * @param {boolean} quick
 */
async function measureTables (root, quick) {
  const file = path.join(root, 'spans.jsonl')
  const tables = tablesOf(quick)
  const bare = await start(__filename, ['serve', root])
  const traced = await start(__filename, ['serve', root], { traced: true, env: { LONGSTACK_SPANS: file } })
  const throughputs = []
  try {
    for (const { way, connections } of tables.flatMap(({ rows }) => rows)) {
      // Long enough for one request per connection
      const limit = Math.max(LIMIT_MS[quick ? 'quick' : 'full'], connections * 1.5)
      const off = await loadServer(bare, way, { limit, connections })
      const on = await loadServer(traced, way, { limit, connections, mark: `of-${connections}` })
      throughputs.push([off, on].map(({ throughput }) => digits(throughput / 1e6)))
    }
  } finally {
    await bare.end()
    await traced.end()
  }
  const routes = routesOf(file)
  return tables.map(({ title, heading, rows }) => ({
    title: `${title}: ${EXPLANATION}`,
    heading: [heading, ...HEADING],
    rows: rows.map(({ label, way, connections }) =>
      [label, ...throughputs.shift(), ...cellsOf(routes.get(`GET /${way}/of-${connections}`))])
  }))
}

/** @param {boolean} quick */
async function measureEncodings (quick) {
  return await paired(async (side, traced) => {
    const child = await start(__filename, ['decode', comparedEncodings[side]], { traced })
    await child.run(quick ? 50 : 500)
    const cpu = await child.run(quick ? 100 : 5_000)
    await child.end()
    return cpu
  }, quick)
}

/** @param {{ off: any, on: any }} servers @param {boolean} quick */
async function measureConnections (servers, quick) {
  const reach = Math.min(quick ? 40 : comparedConnections.b, maxConnections())
  const limit = LIMIT_MS[quick ? 'quick' : 'full']
  const figures = await paired(async (side, traced) => {
    const connections = side === 'a' ? comparedConnections.a : reach
    const options = { connections, limit: Math.max(limit, connections * (quick ? 1 : 3)) }
    return 1000 / (await loadServer(servers[traced ? 'on' : 'off'], 'medium', options)).rate
  }, quick)
  return { b: `${reach} connections`, ...figures }
}

/** @param {string} id @param {{ off: any, on: any }} servers @param {boolean} quick */
async function measureClaim (id, servers, quick) {
  if (id === 'utf8-over-latin1') return await measureEncodings(quick)
  if (id === 'more-connections') return await measureConnections(servers, quick)
  const limit = LIMIT_MS[quick ? 'quick' : 'full']
  const [a, b] = comparedWays[id]
  return await paired(async (side, traced) => {
    return (await loadServer(servers[traced ? 'on' : 'off'], side === 'a' ? a : b, { limit })).cpu
  }, quick)
}

/** @param {boolean} quick */
async function measure (quick) {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'serving-files-'))
  writeFile(root)
  try {
    const servers = {
      off: await start(__filename, ['serve', root]),
      on: await start(__filename, ['serve', root], { traced: true })
    }
    const measured = []
    for (const claim of claims) measured.push({ ...claim, ...await measureClaim(claim.id, servers, quick) })
    await servers.off.end()
    await servers.on.end()
    return { claims: measured, tables: await measureTables(root, quick) }
  } finally {
    await end()
    fs.rmSync(root, { recursive: true })
  }
}

main({ answers, measure, roles: { serve, decode } })
