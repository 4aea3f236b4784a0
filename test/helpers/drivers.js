'use strict'

// Runs the server of fixtures/drivers with the available databases, sends it requests, and reads its spans.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { hasRedis, postgresDirectory, startPostgres, startRedis } = require('./database-servers')
const { register, root } = require('./run')
const { recordsOf } = require('./records')

const program = path.join(root, 'test', 'fixtures', 'drivers', 'app.js')
const UPSTREAM_MS = 60
const PAUSE = 10 // ms between requests of one group
const TIMEOUT = 60_000 // ms, for the whole program

/** Databases missing on this machine: PostgreSQL's program directory, Redis's program. */
const bin = postgresDirectory()
const lacks = { postgres: bin === undefined, redis: !hasRedis() }

/**
 * @typedef {import('../../lib/encoding/span-form').SpanRecord} SpanRecord
 * @typedef {{ spans: Map<string, SpanRecord>, ports: Record<string, number | undefined> }} Outcome by path
 */

/**
 * Sends groups of requests, one group after another, and returns the spans of their server.
 * @param {string[][]} groups paths
 * @param {Record<string, string>} env
 * @returns {Promise<Outcome>}
 */
async function runDrivers (groups, env) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-drivers-'))
  const file = path.join(directory, 'spans.jsonl')
  const upstream = http.createServer((_, response) => setTimeout(() => response.end('up'), UPSTREAM_MS))
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const [postgres, redis] = await Promise.all([
    bin === undefined ? undefined : startPostgres(bin),
    lacks.redis ? undefined : startRedis()
  ])
  const { port } = /** @type {import('node:net').AddressInfo} */ (upstream.address())
  const ports = { upstream: port, postgres: postgres?.port, redis: redis?.port }
  try {
    await runProgram(groups, ports, { ...env, LONGSTACK_SPANS: file })
    const records = recordsOf(fs.readFileSync(file, 'utf8'))
    const served = records.filter(({ kind }) => kind === 'SERVER')
    return { spans: new Map(served.map((record) => [record.attributes['url.path'], record])), ports }
  } finally {
    upstream.closeAllConnections()
    upstream.close()
    await Promise.all([postgres?.stop(), redis?.stop()])
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

/**
 * @param {string[][]} groups
 * @param {Record<string, number | undefined>} ports
 * @param {Record<string, string>} env
 */
async function runProgram (groups, ports, env) {
  const others = /^(LONGSTACK|NODE_|AVA_|FORCE_COLOR|NO_COLOR|PG)/
  const inherited = Object.entries(process.env).filter(([name]) => !others.test(name))
  const known = Object.entries(ports).filter(([, port]) => port !== undefined)
  const child = spawn(process.execPath, ['-r', register, program], {
    env: {
      ...Object.fromEntries(inherited),
      ...Object.fromEntries(known.map(([name, port]) => [`${name.toUpperCase()}_PORT`, String(port)])),
      ...env
    },
    timeout: TIMEOUT,
    killSignal: 'SIGKILL'
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text) => { errors += text })
  child.stdin.on('error', () => {})
  const closed = once(child, 'close')
  const agent = new http.Agent({ keepAlive: true })
  try {
    const first = await Promise.race([once(child.stdout.setEncoding('utf8'), 'data'), closed.then(() => undefined)])
    if (first === undefined) throw new Error(`The server ended: ${errors}`)
    for (const paths of groups) {
      await Promise.all(paths.map((url, i) => send(Number(first[0]), url, i * PAUSE, agent)))
    }
    child.stdin.end()
    const [code] = await closed
    if (code !== 0 || errors !== '') throw new Error(`The server ended with ${code}: ${errors}`)
  } finally {
    agent.destroy()
    child.kill('SIGKILL')
  }
}

/**
 * @param {number} port
 * @param {string} url path
 * @param {number} after ms
 * @param {http.Agent} agent
 * @returns {Promise<void>}
 */
async function send (port, url, after, agent) {
  await new Promise((resolve) => setTimeout(resolve, after))
  await new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, path: url, agent }, (response) => {
      response.resume().on('end', resolve).on('error', reject)
    })
    request.on('error', reject)
  })
}

module.exports = { lacks, runDrivers }
