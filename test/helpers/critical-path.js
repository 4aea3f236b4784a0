'use strict'

// Runs the server of fixtures/path, sends it requests, and reads its spans and its own measurements.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { register, root } = require('./run')
const { recordsOf } = require('./records')

const fixtures = path.join(root, 'test', 'fixtures', 'path')
const TIMEOUT = 60_000 // ms, for the whole program
const SLOW_READER = 150 // ms until it reads
const ABORT_AFTER = 60 // ms
const HOLD_OPEN = 60 // ms

/**
 * @typedef {import('../../lib/encoding/span-form').SpanRecord} SpanRecord
 *
 * @typedef {object} Wait an entry of longstack.waits
 * @property {number} ms
 * @property {number} count
 * @property {number} [delayed]
 * @property {string} [at]
 * @property {string[]} [callers]
 * @property {number[]} [on]
 * @property {string} [until]
 * @property {string} [label]
 *
 * @typedef {object} Measures a program's own measurements of a request
 * @property {Record<string, number[]>} waits in ms, by the function that waited
 * @property {Record<string, [number, number]>} spells
 * @property {number} [idle] ms in which the event loop was idle
 * @property {number} run
 *
 * @typedef {object} Request
 * @property {string} path
 * @property {number} [after] ms after the first of its group
 * @property {'read' | 'readSlowly' | 'abort' | 'leaveOpen'} [client] default read
 *
 * @typedef {object} Outcome
 * @property {SpanRecord[]} records
 * @property {Record<string, Measures>} measures by path
 * @property {Record<string, number>} ports
 */

/**
 * Runs the server, sends each group of requests after the previous one's responses, and reads the spans;
 * there are none if LONGSTACK_SPANS is empty.
 * @param {Request[][]} groups
 * @param {Record<string, string>} [env]
 * @returns {Promise<Outcome>}
 */
async function runServer (groups, env = {}) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-path-'))
  const agent = new http.Agent({ keepAlive: true })
  try {
    const server = startServer(directory, env)
    const ports = JSON.parse(await server.readLine())
    for (const group of groups) await Promise.all(group.map((request) => send(ports.server, request, agent)))
    server.end()
    const { measures, fault } = JSON.parse(await server.readLine())
    if (fault !== undefined) throw new Error(fault)
    await server.closed
    const file = path.join(directory, 'spans.jsonl')
    const text = env.LONGSTACK_SPANS === '' ? '' : fs.readFileSync(file, 'utf8')
    const records = text.split('\n').filter(Boolean)
    const spans = recordsOf(records).filter(({ name }) => name !== 'open intervals' && name !== 'after responses')
    return { records: spans, measures, ports }
  } finally {
    agent.destroy()
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

/** @param {string} directory @param {Record<string, string>} env */
function startServer (directory, env) {
  const others = /^(LONGSTACK|NODE_|AVA_|FORCE_COLOR|NO_COLOR)/
  const inherited = Object.entries(process.env).filter(([name]) => !others.test(name))
  const engine = process.env.ENGINE ? { LONGSTACK_CAPTURE: process.env.ENGINE } : {}
  const child = spawn(process.execPath, ['-r', register, path.join(fixtures, 'app.js')], {
    env: {
      ...Object.fromEntries(inherited),
      ...engine,
      LIBRARY: installLibrary(directory),
      LONGSTACK_SPANS: path.join(directory, 'spans.jsonl'),
      ...env
    },
    timeout: TIMEOUT,
    killSignal: 'SIGKILL'
  })
  let [output, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text) => { output += text })
  child.stderr.setEncoding('utf8').on('data', (text) => { errors += text })
  child.stdin.on('error', () => {})
  const closed = once(child, 'close')
  return {
    closed,
    end: () => child.stdin.end('end'),

    /** Resolves with the next line of its output. */
    async readLine () {
      while (!output.includes('\n')) {
        await Promise.race([closed, once(child.stdout, 'data')])
        const ended = child.exitCode !== null || child.signalCode !== null
        if (ended && !output.includes('\n')) throw new Error(`The server ended: ${errors || output}`)
      }
      const line = output.slice(0, output.indexOf('\n'))
      output = output.slice(line.length + 1)
      return line
    }
  }
}

/**
 * Copies the library to a node_modules directory.
 * @param {string} directory
 * @returns {string} path to require
 */
function installLibrary (directory) {
  const installed = path.join(directory, 'node_modules', 'fakedb')
  fs.mkdirSync(installed, { recursive: true })
  fs.copyFileSync(path.join(fixtures, 'library.js'), path.join(installed, 'index.js'))
  return installed
}

/**
 * Sends a request; resolves when its client has finished.
 * @param {number} port
 * @param {Request} request
 * @param {http.Agent} agent
 * @returns {Promise<void>}
 */
async function send (port, { path: url, after = 0, client = 'read' }, agent) {
  await new Promise((resolve) => setTimeout(resolve, after))
  const own = client === 'read' ? agent : new http.Agent()
  await new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, path: url, agent: own }, (response) => {
      setTimeout(() => response.resume(), client === 'readSlowly' ? SLOW_READER : 0)
      response.on('end', resolve).on('error', reject)
    })
    if (client === 'abort') setTimeout(() => resolve(request.destroy()), ABORT_AFTER)
    if (client === 'leaveOpen') setTimeout(resolve, HOLD_OPEN)
    request.on('error', client === 'read' || client === 'readSlowly' ? reject : () => {})
  })
}

/**
 * Reads the times of a record.
 * @param {SpanRecord} record
 */
function timesOf ({ startTimeUnixNano, endTimeUnixNano, attributes }) {
  return {
    duration: Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6,
    run: /** @type {number} */ (attributes['longstack.run_ms']),
    delayed: /** @type {number} */ (attributes['longstack.delayed_ms']),
    delayedBy: /** @type {Array<{ name?: string, ms: number }>} */ (attributes['longstack.delayed_by']),
    waited: /** @type {number} */ (attributes['longstack.waited_ms']),
    bySubsystem: /** @type {Record<string, number>} */ (attributes['longstack.wait_ms']),
    waits: /** @type {Wait[]} */ (attributes['longstack.waits'])
  }
}

/**
 * Parses a site: `loadUser (/app.js:24:9) via pg`.
 * @param {string | undefined} at
 * @returns {{ functionName: string, file: string, via?: string } | undefined} the name without its object
 */
function parseSite (at) {
  const match = /^(?:(?<name>.+?) \()?(?<file>[^():]+):\d+:\d+\)?(?: via (?<via>\S+))?$/.exec(at ?? '')
  if (match === null) return undefined
  const { name = '', file, via } = /** @type {Record<string, string>} */ (match.groups)
  return { functionName: String(name.replace(/ \[as .*\]$/, '').split('.').pop()), file, via }
}

module.exports = { runServer, timesOf, parseSite, fixtures }
