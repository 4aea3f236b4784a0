'use strict'

// Span files as if from a load on a small shop, read and aggregated like the command does, and a real browser
// for viewing the page. The durations come from a fixed seed: the same page every time.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const test = require('ava')
const { createModel } = require('../../report/aggregate/model')
const { createPage } = require('../../report/render/page')

const START_MS = 1_763_685_600_000
const LONG_MS = 182_000

/** @param {number} seed */
function createRandom (seed) {
  const next = () => { // mulberry32
    seed = (seed + 0x6D2B79F5) | 0
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next())
  return {
    next,
    lognormal: (/** @type {number} */ median, /** @type {number} */ spread) =>
      median * Math.exp(spread * normal())
  }
}

/**
 * delayed: share of the spans that the report delayed; run: share of a span's duration that is its own code
 */
const loads = [
  { name: 'GET /users/:id', kind: 'SERVER', share: 0.46, median: 4.2, spread: 0.5, wait: ['TCP', 'DNS'], delayed: 0.2, run: 0.2 },
  { name: 'GET /', kind: 'SERVER', share: 0.2, median: 1.1, spread: 0.35, wait: ['FS'], delayed: 0.2, run: 0.3 },
  { name: 'POST /orders', kind: 'SERVER', share: 0.12, median: 21, spread: 0.6, wait: ['TCP', 'TIMER', 'FS'], delayed: 0.12, run: 0.25 },
  { name: 'GET', kind: 'CLIENT', share: 0.15, median: 2.6, spread: 0.45, wait: ['TCP'], delayed: 0.1, run: 0.1 },
  { name: 'warm cache', kind: 'INTERNAL', share: 0.05, median: 48, spread: 0.3, wait: ['FS', 'TIMER'], delayed: 0.1, run: 0.15 }
]

const stack = `    at work (/app/report.js:31:9)
    at Report.render (/app/report.js:12:5)
    at Layer.handle [as handle_request] (/app/node_modules/express/lib/router/layer.js:95:5)
  ── HTTP server request GET /report/2026 · HTTPINCOMINGMESSAGE · 214 ms earlier ──
    at Server.emit (node:events:518:28)
    at listen (/app/server.js:20:10)
  ── setTimeout(100) · Timeout · 1.4 s earlier ──
    at Object.<anonymous> (/app/server.js:44:1)`

/** @param {number} number */
const hex = (number, digits = 16) => number.toString(16).padStart(digits, '0')

/** @param {number} ms after the start */
const nanos = (ms) => `${BigInt(START_MS) * 1_000_000n + BigInt(Math.round(ms * 1e6))}`

let ids = 0

/**
 * Makes a line of a file.
 * @param {any} facts name, at, ms; everything else as in a record
 */
function span ({ at, ms, traceId = hex(++ids, 32), spanId = hex(++ids), kind = 'SERVER', attributes = {}, ...rest }) {
  return {
    traceId,
    spanId,
    kind,
    startTimeUnixNano: nanos(at),
    endTimeUnixNano: nanos(at + ms),
    status: { code: 'UNSET' },
    attributes,
    resource: { 'service.name': 'shop', 'process.pid': 4711 },
    ...rest
  }
}

/**
 * Makes the attributes for the time breakdown; time that is neither run nor delayed is waited.
 * @param {number} ms
 * @param {Record<'run' | 'delayed', number>} parts
 * @param {string[]} names subsystems that ended the waits
 */
function splitOf (ms, { run, delayed }, names) {
  const waited = ms - run - delayed
  const lengths = [[1], [0.8, 0.2], [0.7, 0.2, 0.1]][names.length - 1].map((part) => part * waited)
  return {
    'longstack.run_ms': run,
    'longstack.waited_ms': waited,
    'longstack.wait_ms': Object.fromEntries(names.map((name, i) => [name, lengths[i]])),
    'longstack.waits': names.map((name, i) => ({ ms: lengths[i], count: 1, ...sites[name] })),
    'longstack.delayed_ms': delayed
  }
}

/** @type {Record<string, { at: string, until: string, label: string, count?: number }>} by subsystem */
const sites = {
  TCP: { at: 'load (/app/lib/db.js:34:9)', until: 'TCP 127.0.0.1:5432', label: 'await', count: 2 },
  DNS: { at: 'find (/app/lib/peers.js:12:3)', until: 'DNS', label: 'await' },
  FS: { at: 'read (/app/lib/files.js:8:3)', until: 'FS', label: 'await' },
  TIMER: { at: 'retry (/app/lib/retry.js:5:1)', until: 'TIMER', label: 'setTimeout(100)' }
}

/**
 * @param {(typeof loads)[number]} load
 * @param {ReturnType<typeof createRandom>} random
 * @param {number} faster
 */
function quick ({ name, kind, median, spread, wait, delayed, run }, random, faster) {
  const own = random.lognormal(median, spread)
  const held = random.next() < delayed ? 180 * random.next() * faster : 0
  const failed = random.next() < (name.startsWith('POST') ? 0.012 : 0.0004)
  return span({
    name,
    kind,
    at: LONG_MS * random.next(),
    ms: own + held,
    status: { code: failed ? 'ERROR' : 'UNSET' },
    attributes: {
      ...splitOf(own + held, { run: own * run, delayed: held }, wait),
      'longstack.delayed_by': held > 0 ? [{ spanId: hex(1e9 + (ids % 300)), name: 'GET /report/:year', ms: held, at: 'work (/app/report.js:31:9)' }] : []
    }
  })
}

/**
 * Makes the expensive request, with a client request, a blocked run, a failure and an open end below it.
 * @param {number} i
 * @param {number} ms
 */
function dear (i, ms, at = LONG_MS * i / 800) {
  const traceId = hex(1e12 + i, 32)
  const [root, failed] = [hex(1e12 + 10 * i), hex(1e12 + 10 * i + 1)]
  const split = splitOf(ms, { run: ms * 0.55, delayed: ms * 0.15 }, ['TCP', 'FS'])
  const message = 'ENOENT: no such file'
  const events = [{
    name: 'exception',
    timeUnixNano: nanos(at + ms * 0.9),
    attributes: { 'exception.type': 'Error', 'exception.message': message, 'exception.stacktrace': stack }
  }]
  return [
    span({
      name: 'GET', kind: 'CLIENT', traceId, parentSpanId: root, at: at + ms * 0.03, ms: ms * 0.2, attributes: { 'server.address': 'db', 'longstack.runs': [[ms * 0.18, 2, 'TCPWRAP']] }
    }),
    span({
      name: 'blocked', kind: 'INTERNAL', traceId, parentSpanId: root, at: at + ms * 0.3, ms: ms * 0.5, attributes: { 'longstack.blocked_ms': ms * 0.5, 'code.stacktrace': stack }
    }),
    span({ name: 'read template', kind: 'INTERNAL', traceId, parentSpanId: root, spanId: failed, at: at + ms * 0.82, ms: ms * 0.08, status: { code: 'ERROR', message }, events }),
    span({ name: 'audit', kind: 'INTERNAL', traceId, parentSpanId: failed, at: at + ms * 0.9, ms: ms * 0.1, attributes: i < 2 ? { 'longstack.end': 'open' } : {} }),
    span({
      name: 'GET /report/:year',
      traceId,
      spanId: root,
      at,
      ms,
      attributes: {
        'http.request.method': 'GET',
        'url.path': '/report/2026',
        'http.response.status_code': 200,
        ...split,
        'longstack.delayed_by': [{ spanId: hex(77), name: 'POST /orders', ms: ms * 0.14, at: 'hash (/app/orders.js:8:3)' }, { ms: ms * 0.01 }],
        'longstack.runs': [[0, ms * 0.02, 'HTTPINCOMINGMESSAGE'], [ms * 0.3, ms * 0.5, 'Timeout'], [ms * 0.9, ms * 0.03, 'TCPWRAP']],
        'code.stacktrace': stack
      }
    })
  ]
}

/**
 * @param {object} [options]
 * @param {number} [options.spans] approximate number
 * @param {number} [options.faster] remaining share of the expensive request's time
 */
function * load ({ spans = 8000, faster = 1 } = {}) {
  const random = createRandom(7)
  for (const one of loads) {
    for (let i = 0; i < spans * one.share; i++) yield quick(one, random, faster)
  }
  for (let i = 0; i < spans * 0.02; i++) {
    yield * dear(i, random.lognormal(240 * faster, 0.25), (LONG_MS * i) / (spans * 0.02))
  }
  yield span({ name: 'POST /orders', at: 120_000, ms: 61_200, attributes: { 'longstack.end': 'open', 'code.stacktrace': stack } })
}

/**
 * Reads lines like the command reads a file.
 * @param {Iterable<object>} lines
 * @param {{ name?: string, compare?: Iterable<object> }} [options]
 * @returns {Promise<any>}
 */
async function modelOf (lines, { name = 'before.jsonl', compare } = {}) {
  const other = compare && [await written(compare, 'after.jsonl')]
  return createModel([await written(lines, name)], { traces: true, compare: other })
}

/** @param {Iterable<object>} lines @param {string} name @returns {Promise<string>} */
async function written (lines, name) {
  const file = path.join(fs.mkdtempSync(path.join(folder, 'spans-')), name)
  const handle = await fs.promises.open(file, 'w')
  let batch = ''
  for (const line of lines) {
    batch += `${JSON.stringify(line)}\n`
    if (batch.length < 1 << 20) continue
    await handle.write(batch)
    batch = ''
  }
  await handle.write(batch)
  await handle.close()
  return file
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-page-'))
test.after.always(() => fs.rmSync(folder, { recursive: true, force: true }))

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((file) => fs.existsSync(file))
const why = executablePath === undefined ? 'no Chromium is installed' : undefined

/** @type {Promise<import('playwright-core').Browser> | undefined} */
let browser
test.after.always(async () => { await (await browser)?.close() })

function launch () {
  const { chromium } = require('playwright-core')
  return chromium.launch({ executablePath, args: ['--no-sandbox'] })
}

/** browser contexts opened by the running test @type {import('playwright-core').BrowserContext[]} */
let contexts = []

/**
 * Declares a test that opens pages, if there is a browser. Tests run one at a time: loading twenty pages at
 * once exceeded playwright's timeout of half a minute.
 * @param {string} title
 * @param {(t: import('ava').ExecutionContext) => Promise<void>} run
 */
function able (title, run) {
  if (why !== undefined) return
  test.serial(title, async (t) => {
    t.teardown(async () => {
      await Promise.all(contexts.map((context) => context.close()))
      contexts = []
    })
    await run(t)
  })
}
if (why !== undefined) {
  test('without a browser, the page is not tested', (t) => {
    t.log(why)
    t.falsy(process.env.CI || process.env.NODES === 'all', why)
  })
}

const LOAD_MS = 120_000 // long enough for a busy machine
let pages = 0

/** @param {string} html @returns {string} */
function saved (html) {
  const file = path.join(folder, `${pages++}.html`)
  fs.writeFileSync(file, html)
  return pathToFileURL(file).href
}

/**
 * Opens a model's page in the browser, and records its requests, errors and blocked accesses.
 * @param {any} model
 * @param {import('playwright-core').BrowserContextOptions & { title?: string, init?: string }} [options]
 */
async function open (model, { title, ...options } = {}) {
  const html = createPage(model, { title })
  return { html, ...await openFile(saved(html), options) }
}

/**
 * Opens a page in the browser, and records its requests and errors.
 * @param {string} url
 * @param {import('playwright-core').BrowserContextOptions & { init?: string }} [options]
 */
async function openFile (url, { init, ...options } = {}) {
  browser ??= launch()
  const context = await (await browser).newContext({ viewport: { width: 1280, height: 900 }, ...options })
  contexts.push(context)
  context.setDefaultTimeout(LOAD_MS)
  /** @type {{ requests: string[], errors: string[] }} */
  const seen = { requests: [], errors: [] }
  context.on('request', (request) => seen.requests.push(request.url()))
  const page = await context.newPage()
  page.on('console', (message) => seen.errors.push(message.text()))
  page.on('pageerror', (error) => seen.errors.push(String(error)))
  if (init !== undefined) await page.addInitScript({ content: init })
  await page.goto(url, { waitUntil: 'load' })
  return { page, context, url, ...seen }
}

module.exports = { able, dear, folder, load, modelOf, open, openFile, span, stack }
