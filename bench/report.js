'use strict'

// What a report of many spans costs: node bench/report.js [COUNT]. Makes a file of so many spans, a million if nothing
// is said, and reports on it in a process of its own, as text and as a page.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

const main = path.join(__dirname, '..', 'lib', 'cli', 'main.js')
const ROUTES = [['GET /', 0.8], ['GET /users/:id', 3], ['POST /orders', 12], ['GET /slow', 80]]
const STACK = ['    at query (/app/db.js:12:21)', '  ── setTimeout(100) · Timeout · 103 ms earlier ──', '    at Object.<anonymous> (/app/index.js:44:1)'].join('\n')

let state = 1

function draw () {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return state / 2 ** 32
}

/** @param {number} digits */
function id (digits) {
  let text = ''
  while (text.length < digits) text += Math.floor(draw() * 2 ** 32).toString(16).padStart(8, '0')
  return text
}

/** @param {number} ms */
function nanos (ms) {
  return `${Math.floor(ms / 1000)}${String(Math.floor((ms % 1000) * 1e6)).padStart(9, '0')}`
}

/** @param {number} start */
function line (start) {
  const [name, typical] = /** @type {[string, number]} */ (ROUTES[Math.floor(draw() * draw() * ROUTES.length)])
  const [run, wait, delayed] = [typical * 0.2 * (0.5 + draw()), typical * draw(), draw() < 0.2 ? 60 * draw() : 0]
  return `${JSON.stringify({
    traceId: id(32),
    spanId: id(16),
    name,
    kind: 'SERVER',
    startTimeUnixNano: nanos(start),
    endTimeUnixNano: nanos(start + run + wait + delayed),
    status: { code: draw() < 0.01 ? 'ERROR' : 'UNSET' },
    attributes: {
      'http.request.method': 'GET',
      'url.path': `/users/${Math.floor(draw() * 1e6)}`,
      'http.response.status_code': 200,
      'network.peer.address': '127.0.0.1',
      'code.stacktrace': STACK,
      'longstack.run_ms': run,
      'longstack.wait_ms': { TCP: wait * 0.8, TIMER: wait * 0.2 },
      'longstack.waits': [
        { ms: wait * 0.8, count: 2, at: 'load (/app/pool.js:34:9)', until: 'TCP 127.0.0.1:5432', label: 'await' },
        { ms: wait * 0.2, count: 1, at: 'retry (/app/retry.js:5:3)', until: 'TIMER', label: 'setTimeout(100)' }
      ],
      'longstack.waited_ms': wait,
      'longstack.delayed_ms': delayed,
      'longstack.delayed_by': delayed > 0 ? [{ spanId: id(16), name: 'GET /slow', ms: delayed, at: 'work (/app/heavy.js:3:5)' }] : [],
      'longstack.runs': [[0, run / 2, 'HTTPINCOMINGMESSAGE'], [run / 2 + wait, run / 2, 'Timeout']]
    },
    resource: { 'service.name': 'shop', 'process.pid': 1 }
  })}\n`
}

/** @param {string} to @param {number} count */
function make (to, count) {
  const file = fs.openSync(to, 'w')
  let piece = ''
  for (let i = 0; i < count; i++) {
    piece += line(1763685600000 + i)
    if (piece.length < 1 << 20 && i + 1 < count) continue
    fs.writeSync(file, piece)
    piece = ''
  }
  fs.closeSync(file)
}

/** @param {string[]} args */
function measure (args) {
  const began = process.hrtime.bigint()
  const measured = 'import fs from "node:fs"; process.on("exit", () => fs.writeSync(3, String(process.resourceUsage().maxRSS)))'
  const preload = `data:text/javascript,${encodeURIComponent(measured)}`
  const { status, output } = spawnSync(process.execPath, ['--import', preload, main, 'report', ...args], { stdio: ['ignore', 'ignore', 'inherit', 'pipe'] })
  const seconds = Number(process.hrtime.bigint() - began) / 1e9
  return { status, seconds, megabytes: Number(output[3]) / 1024 }
}

const count = Number(process.argv[2] ?? 1e6)
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-bench-'))
try {
  const file = path.join(folder, 'spans.jsonl')
  make(file, count)
  console.log(`${count} spans, ${Math.round(fs.statSync(file).size / 1e6)} MB, Node ${process.versions.node}`)
  for (const [name, ...args] of [['text'], ['page', '--html', path.join(folder, 'page.html')]]) {
    const { status, seconds, megabytes } = measure([file, ...args])
    console.log(`${name}  ${seconds.toFixed(1)} s  ${megabytes.toFixed(0)} MB${status === 0 ? '' : `  exit code ${status}`}`)
  }
} finally {
  fs.rmSync(folder, { recursive: true, force: true })
}
