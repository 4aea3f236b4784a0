'use strict'

// Runs programs that serve and send requests, with spans to a file, and reads that file.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { program, root } = require('./run')
const { recordsOf } = require('./records')

/**
 * Beginning of every program. `done()` waits until no span is open, reports the number of open spans, and
 * ends the program; the program's own observations go to `saw`.
 */
const prelude = `
const { createRequire } = require('node:module')
const need = createRequire(${JSON.stringify(path.join(root, 'package.json'))})
const fs = require('node:fs'), http = require('node:http'), https = require('node:https'), net = require('node:net'), tls = require('node:tls')
const trace = require(${JSON.stringify(root)})
const saw = {}
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const listen = (server, ...where) => new Promise((resolve) => {
  server.listen(...(where.length > 0 ? where : [0, '127.0.0.1']), () => resolve(server.address().port))
})
const pem = (name) => fs.readFileSync(${JSON.stringify(path.join(root, 'test/fixtures/chains/'))} + name + '.pem')
const pair = { key: pem('key'), cert: pem('cert') }
/** Status, headers and body; or the error. */
const ask = (options, act, from = http) => new Promise((resolve) => {
  const request = from.request({ host: '127.0.0.1', rejectUnauthorized: false, ...options }, (response) => {
    let body = ''
    response.setEncoding('utf8').on('data', (text) => { body += text }).on('error', () => {})
    response.on('close', () => resolve({ status: response.statusCode, headers: response.headers, body, complete: response.complete }))
  })
  request.on('error', (error) => resolve({ error: error.code ?? error.message, stack: error.stack }))
  if (act === undefined) request.end()
  else act(request)
})
/** The response of a connection to given bytes, until it closes. */
const raw = (port, text) => new Promise((resolve) => {
  let got = ''
  const socket = net.connect(port, '127.0.0.1', () => socket.write(text))
  socket.setEncoding('utf8').on('data', (more) => { got += more }).on('error', () => {}).on('close', () => resolve(got))
})
/** Resolves when the server gets the next request. */
const got = (server) => new Promise((resolve) => server.once('request', () => setImmediate(resolve)))
const settled = async () => {
  for (let i = 0; i < 300 && trace.stats().spans.open > 0; i++) await wait(10)
  const { spans, fault } = trace.stats()
  return { open: spans.open, fault }
}
const done = async () => {
  const { open, fault } = await settled()
  fs.writeSync(1, JSON.stringify({ open, fault, saw }) + '\\n')
  process.exit()
}
`

/**
 * @typedef {object} Outcome
 * @property {any[]} spans in the order in which they ended
 * @property {any} saw observations of the program
 * @property {(name: string, kind?: string) => any} one the only span of that name
 * @property {string} stderr
 */

/**
 * Runs a program to its end: no span may be left open, and longstack must have no fault.
 * @param {import('ava').ExecutionContext} t
 * @param {string} source body of an async function
 * @param {{ env?: Record<string, string>, args?: string[], type?: 'cjs' | 'mjs', open?: number }} [options]
 * @returns {Promise<Outcome>}
 */
async function story (t, source, { env = {}, open = 0, ...options } = {}) {
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'longstack-web-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'spans.jsonl')
  const text = `${prelude}\n;(async () => {\n${source}\nawait done()\n})()`
  const { stdout, stderr, code } = await program(text, { env: { LONGSTACK_SPANS: file, ...env }, ...options })
  t.is(code, 0, stderr)
  const told = JSON.parse(stdout)
  t.deepEqual({ open: told.open, fault: told.fault }, { open, fault: undefined })
  const spans = read(file)
  return { spans, saw: told.saw, stderr, one: (name, kind) => only(t, spans, name, kind) }
}

/** @param {string} file @returns {any[]} */
function read (file) {
  return !fs.existsSync(file) ? [] : recordsOf(fs.readFileSync(file, 'utf8'))
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {any[]} spans
 * @param {string} name
 * @param {string} [kind]
 */
function only (t, spans, name, kind) {
  const found = spans.filter((span) => span.name === name && (kind === undefined || span.kind === kind))
  t.is(found.length, 1, `spans called ${name} among ${spans.map((span) => `${span.kind} ${span.name}`).join(', ')}`)
  return found[0]
}

/** Formats how spans ended, one line each, for comparison. @param {any[]} spans */
function lines (spans) {
  return spans.map(({ kind, name, status, attributes }) => [kind, name.replace(/:\d{4,5}$/, ':PORT').replace(/:\d{4,5}\//, ':PORT/'), status.code,
    attributes['http.response.status_code'] ?? '', attributes['longstack.end'] ?? ''].join(' ').trim().replace(/ {2,}/g, ' '))
}

module.exports = { lines, read, story, prelude }
