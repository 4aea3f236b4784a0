'use strict'

// Measures the cost of a report on many spans: node bench/report.js [COUNT]. Writes a file of COUNT spans
// (default 1,000,000), each with six waits and four runs at sixty sites, and reports on it in its own
// process, as text and as a page.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

const main = path.join(__dirname, '..', 'lib', 'cli', 'main.js')
/** @type {Array<[string, number]>} name and typical ms */
const ROUTES = [
  ['GET /', 0.8], ['GET /users/:id', 3], ['POST /orders', 12], ['GET /slow', 80],
  ...Array.from({ length: 16 }, (_, i) => /** @type {[string, number]} */ ([`GET /items${i}/:id`, 2 + i]))
]
const WAITS = 6 // per request
const RAN = 4
const SITES = Array.from({ length: 60 }, (_, i) => ({
  at: `load${i} (/srv/app/services/store${i % 7}.js:${30 + i}:9)${i % 3 === 0 ? ' via pg' : ''}`,
  callers: Array.from({ length: 1 + i % 5 }, (_, depth) =>
    `step${(i + depth) % 25} (/srv/app/handlers/part${(i + depth) % 9}.js:${10 + (i * 3 + depth) % 25}:15)`),
  until: ['TCP 127.0.0.1:5432', 'TCP 10.0.0.7:6379', 'TIMER', 'FS', 'GET /queue of another request'][i % 5],
  label: ['await', 'setTimeout(100)', 'await'][i % 3]
}))
const STACK = [
  '    at query (/app/db.js:12:21)',
  '  ── setTimeout(100) · Timeout · 103 ms earlier ──',
  '    at Object.<anonymous> (/app/index.js:44:1)'
].join('\n')

let randomState = 1

/** @returns {number} between 0 and 1, the same series in each process */
function random () {
  randomState = (Math.imul(randomState, 1664525) + 1013904223) >>> 0
  return randomState / 2 ** 32
}

/** @param {number} digits */
function randomId (digits) {
  let text = ''
  while (text.length < digits) text += Math.floor(random() * 2 ** 32).toString(16).padStart(8, '0')
  return text
}

/** @param {number} ms */
function nanos (ms) {
  return `${Math.floor(ms / 1000)}${String(Math.floor((ms % 1000) * 1e6)).padStart(9, '0')}`
}

/** @param {number} ms */
function micros (ms) {
  return Math.round(ms * 1000) / 1000
}

/** @param {number} route @param {number} waited @param {number} delayed */
function waitsOf (route, waited, delayed) {
  return Array.from({ length: WAITS }, (_, i) => {
    const share = 0.5 ** (i + 1)
    const { until, label, ...site } = SITES[(route * 7 + i * (1 + Math.floor(random() * 3))) % SITES.length]
    return {
      ms: micros(waited * share),
      count: 1 + Math.floor(random() * 3),
      ...site,
      until,
      label,
      ...(delayed > 0 ? { delayed: micros(delayed * share) } : {}),
      ...(until.startsWith('TCP') ? { on: [100 + Math.floor(random() * 8)] } : {})
    }
  })
}

/** @param {number} route @param {number} ran */
function ranOf (route, ran) {
  return Array.from({ length: RAN }, (_, i) => {
    const { at: frame, callers, label } = SITES[(route * 7 + i) % SITES.length]
    const site = i === 0 ? {} : { at: frame, callers, label }
    return { ms: micros(ran * 0.5 ** (i + 1)), count: 1, ...site }
  })
}

/** @param {number} start */
function spanLine (start) {
  const index = Math.floor(random() * random() * ROUTES.length)
  const [name, typical] = ROUTES[index]
  const run = typical * 0.2 * (0.5 + random())
  const wait = typical * random()
  const delayed = random() < 0.2 ? 60 * random() : 0
  const delayedBy = [{ spanId: randomId(16), name: 'GET /slow', ms: delayed, at: 'work (/app/heavy.js:3:5)' }]
  return `${JSON.stringify({
    traceId: randomId(32),
    spanId: randomId(16),
    name,
    kind: 'SERVER',
    startTimeUnixNano: nanos(start),
    endTimeUnixNano: nanos(start + run + wait + delayed),
    status: { code: random() < 0.01 ? 'ERROR' : 'UNSET' },
    attributes: {
      'http.request.method': 'GET',
      'url.path': `/users/${Math.floor(random() * 1e6)}`,
      'http.response.status_code': 200,
      'network.peer.address': '127.0.0.1',
      'code.stacktrace': STACK,
      'longstack.run_ms': micros(run),
      'longstack.wait_ms': { TCP: wait * 0.8, TIMER: wait * 0.2 },
      'longstack.waits': waitsOf(index, wait, delayed),
      'longstack.ran': ranOf(index, run * 0.9),
      'longstack.beside_ms': micros(run * 0.1),
      'longstack.waited_ms': micros(wait),
      'longstack.delayed_ms': micros(delayed),
      'longstack.delayed_by': delayed > 0 ? delayedBy : [],
      'longstack.runs': [[0, run / 2, 'HTTPINCOMINGMESSAGE'], [run / 2 + wait, run / 2, 'Timeout']]
    },
    resource: { 'service.name': 'shop', 'process.pid': 1 }
  })}\n`
}

/** @param {string} file @param {number} count */
function writeSpans (file, count) {
  const descriptor = fs.openSync(file, 'w')
  let buffered = ''
  for (let i = 0; i < count; i++) {
    buffered += spanLine(1763685600000 + i)
    if (buffered.length < 1 << 20 && i + 1 < count) continue
    fs.writeSync(descriptor, buffered)
    buffered = ''
  }
  fs.closeSync(descriptor)
}

/** @param {string} directory for temporary files @param {string[]} args */
function measure (directory, args) {
  const memory = path.join(directory, 'memory')
  const began = process.hrtime.bigint()
  const source = 'import fs from "node:fs"; process.on("exit", () => ' +
    'fs.writeFileSync(process.env.MEMORY_FILE, String(process.resourceUsage().maxRSS)))'
  const preload = `data:text/javascript,${encodeURIComponent(source)}`
  const { status } = spawnSync(process.execPath, ['--import', preload, main, 'report', ...args], {
    env: { ...process.env, MEMORY_FILE: memory },
    stdio: ['ignore', 'ignore', 'inherit']
  })
  const seconds = Number(process.hrtime.bigint() - began) / 1e9
  return { status, seconds, megabytes: Number(fs.readFileSync(memory, 'utf8')) / 1024 }
}

const count = Number(process.argv[2] ?? 1e6)
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-bench-'))
try {
  const file = path.join(directory, 'spans.jsonl')
  writeSpans(file, count)
  console.log(`${count} spans, ${Math.round(fs.statSync(file).size / 1e6)} MB, Node ${process.versions.node}`)
  for (const [name, ...args] of [['text'], ['page', '--html', path.join(directory, 'page.html')]]) {
    const { status, seconds, megabytes } = measure(directory, [file, ...args])
    const failure = status === 0 ? '' : `  exit code ${status}`
    console.log(`${name}  ${seconds.toFixed(1)} s  ${megabytes.toFixed(0)} MB${failure}`)
  }
} finally {
  fs.rmSync(directory, { recursive: true, force: true })
}
