'use strict'

// The option `scope`: what it selects has the stacks that it has without the option, all else those of Node.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, register, root, separator } = require('../helpers/run')
const { timeFactor } = require('../helpers/time-factor')

const engines = process.env.ENGINE === 'js' ? ['js'] : ['native', 'js']

/**
 * Runs a program under longstack.
 * @param {string} source which finds `trace` and `sleep`, and prints JSON
 * @param {Record<string, string>} env
 */
async function run (source, env) {
  const head = `const trace = require(${JSON.stringify(root)})
    const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
    process.on('exit', () => clearTimeout(guard))
    const guard = setTimeout(() => { throw new Error('too slow') }, ${60_000 * timeFactor})
    ;(async () => {\n`
  const tail = '\n})().then((result) => { console.log(JSON.stringify(result)); process.exit() })'
  const { stdout, stderr } = await node(['-r', register, '-e', head + source + tail], { env })
  return { result: JSON.parse(stdout.split('\n').at(-2) ?? ''), stderr }
}

/** Leaves out times, remarks, and frames of Node, which timing changes. @param {string} text */
const withoutAges = (text) => text.replace(/ · [\d.]+ m?s earlier/g, '').replace(/ · (?:reader: .*?|rejected here) ──/g, ' ──')
  .replace(/\n.*\(node:.*/g, '')

/** @param {string} text */
const hopsOf = (text) => text.split('\n').filter((line) => separator.test(line)).length

// Requests on one connection, some at once on others: the body comes late, and errors are made behind awaits,
// timers and listeners.
const service = `
  async function query (later) {
    await sleep(2)
    if (later) await new Promise((resolve, reject) => setTimeout(() => reject(new Error('late')), 2))
    throw new Error('at once')
  }
  async function handle (request, response) {
    let body = ''
    for await (const chunk of request) body += chunk
    const texts = [trace.request().name]
    await query(false).catch((error) => texts.push(error.stack))
    await query(true).catch((error) => texts.push(error.stack))
    setImmediate(() => {
      texts.push(trace.stack())
      response.end(JSON.stringify(texts))
    })
  }`

/** @type {Record<string, string>} a client, by protocol */
const clients = {
  http: `
    const http = require('node:http')
    const server = http.createServer(handle)
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    const agent = new http.Agent({ keepAlive: true, maxSockets: 2 })
    const ask = (path, headers) => new Promise((resolve) => {
      const { port } = server.address()
      const request = http.request({ port, host: '127.0.0.1', path, headers, agent, method: 'POST' })
      request.on('response', (response) => {
        let text = ''
        response.on('data', (chunk) => { text += chunk }).on('end', () => resolve(JSON.parse(text)))
      })
      request.write('a')
      setTimeout(() => request.end('b'), 5)
    })`,
  http2: `
    const http2 = require('node:http2')
    const server = http2.createServer(handle)
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    const session = http2.connect('http://127.0.0.1:' + server.address().port)
    const ask = (path, headers) => new Promise((resolve) => {
      const stream = session.request({ ':path': path, ':method': 'POST', ...headers })
      let text = ''
      stream.on('data', (chunk) => { text += chunk }).on('end', () => resolve(JSON.parse(text)))
      stream.write('a')
      setTimeout(() => stream.end('b'), 5)
    })`
}

const asked = `
  const traced = { 'X-Trace': '1' }
  const askNth = (i) => i % 2 ? ask('/traced', traced) : ask('/plain', {})
  const texts = []
  for (const i of [0, 1, 2, 3]) texts.push(await askNth(i))
  return [...texts, ...await Promise.all([4, 5, 6, 7, 8, 9].map(askNth))]`

for (const engine of engines) {
  for (const [protocol, client] of Object.entries(clients)) {
    test(`a header selects requests of ${protocol}, ${engine}`, async (t) => {
      const source = service + client + asked
      const env = { LONGSTACK_CAPTURE: engine }
      const [scoped, full] = await Promise.all([
        run(source, { ...env, LONGSTACK_SCOPE: 'header:x-trace' }), run(source, env)
      ])
      for (const [i, [name, ...texts]] of scoped.result.entries()) {
        t.is(name, i % 2 ? 'POST /traced' : 'POST /plain', 'requests are known outside as well')
        t.is(texts.length, 3)
        if (name === 'POST /plain') t.deepEqual(texts.map(hopsOf), [0, 0, 0], texts.join('\n'))
        else t.deepEqual(texts.map(withoutAges), full.result[i].slice(1).map(withoutAges))
      }
      t.is(scoped.stderr, '')
    })
  }

  test(`trace.scope runs a function inside, ${engine}`, async (t) => {
    const { result } = await run(`
      const net = require('node:net')
      const texts = []
      const fail = () => texts.push(new Error('x').stack)
      const server = net.createServer().listen(0)
      const returned = trace.scope(function job () {
        setTimeout(function late () { fail() }, 5)
        queueMicrotask(() => trace.scope(() => setImmediate(fail)))
        texts.server = net.createServer().listen(0)
        return 7
      })
      setTimeout(fail, 5)
      let thrown
      try { trace.scope(() => { throw new Error('thrown') }) } catch (error) { thrown = error.message }
      let wrong
      try { trace.scope('job') } catch (error) { wrong = error.code }
      const never = new Promise(() => {})
      ;(async () => { await never })()
      trace.scope(async function stuck () { await never })
      while (texts.length < 3) await sleep(5)
      fail()
      return {
        texts,
        returned,
        thrown,
        wrong,
        outside: [trace.why(server).origin, String(trace.why(server)), trace.why(server).opened.length],
        inside: [trace.why(texts.server).origin, trace.why(texts.server).opened.length],
        pending: trace.pending().map(({ at, count }) => [at?.split(' ')[0], count]),
        note: [trace.pending().noteCode, trace.pending().note]
      }`, { LONGSTACK_CAPTURE: engine, LONGSTACK_SCOPE: 'calls' })
    t.is(result.returned, 7)
    t.is(result.thrown, 'thrown')
    t.is(result.wrong, 'LONGSTACK_ERR_INVALID_HANDLER')
    const inside = result.texts.filter((/** @type {string} */ text) => hopsOf(text) > 0)
    t.is(result.texts.length, 4)
    t.is(inside.length, 2, result.texts.join('\n'))
    const late = inside.find((/** @type {string} */ text) => text.includes('late'))
    t.regex(late, /setTimeout\(5\).*\n {4}at job .*(\n.*)* ── trace\.scope · /)
    t.is(result.outside[0], 'outside')
    t.regex(result.outside[1], /opened by: unknown, it was outside of the scope/)
    t.is(result.outside[2], 0)
    t.deepEqual(result.inside, ['registered', 2])
    t.deepEqual(result.pending, [['stuck', 1]])
    t.deepEqual(result.note, ['SCOPE', 'Outside of the scope it is not known what is awaited.'])
  })
}

test('without the option trace.scope just runs its function', async (t) => {
  const { result } = await run(`
    return trace.scope(() => new Promise((resolve) => setTimeout(() => resolve(trace.stack()), 1)))`, {})
  t.notRegex(result, /trace\.scope ·/)
  t.regex(result, /setTimeout\(1\)/)
})

for (const engine of engines) {
  test(`what a file begins is inside, ${engine}`, async (t) => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-scope-'))
    try {
      fs.mkdirSync(path.join(folder, 'jobs', 'more'), { recursive: true })
      const job = 'exports.run = async (fn) => { await null; setTimeout(fn, 1) }'
      const esm = 'export const run = async (fn) => { await null; setTimeout(fn, 1) }'
      const files = { 'jobs/a.js': job, 'jobs/more/b.js': job, 'jobs/c.mjs': esm, 'other.js': job }
      for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text)
      const source = `
        const runs = await Promise.all(${JSON.stringify(Object.keys(files))}.map((name) => import(name)))
        return Promise.all(runs.map((module) => new Promise((resolve) => setTimeout(function begin () {
          const { run } = module.default ?? module
          run(() => setImmediate(() => resolve(new Error('x').stack)))
        }, 1))))`.replace('import(name)', `import(${JSON.stringify(folder + path.sep)} + name)`)
      const scopes = ['jobs/*', 'jobs/**', 'jobs/a.js'].map((glob) => `file:${path.join(folder, glob)}`)
      const inside = []
      for (const scope of scopes) {
        const { result } = await run(source, { LONGSTACK_CAPTURE: engine, LONGSTACK_SCOPE: scope })
        inside.push(result.map(hopsOf))
        t.regex(result[0], /setImmediate.*(\n.*)*── setTimeout\(1\).*(\n.*)*a\.js:1.*(\n.*)*await.*(\n.*)*at begin /)
      }
      t.deepEqual(inside, [[3, 0, 3, 0], [3, 3, 3, 0], [3, 0, 0, 0]])
    } finally {
      fs.rmSync(folder, { recursive: true, force: true })
    }
  })
}

const asking = `
  const http = require('node:http')
  const server = http.createServer((request, response) => setImmediate(() => {
    response.end(new Error(request.url).stack)
  }))
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const ask = async (path) => (await fetch('http://127.0.0.1:' + server.address().port + path)).text()`

test('a function selects requests, and is no part of the program that is traced', async (t) => {
  const { result, stderr } = await run(`
    const seen = []
    let resources = 0
    trace.hook({ init () { resources++ } })
    const scope = (request) => {
      const before = resources
      Promise.resolve().then(() => setTimeout(() => {}, 1))
      seen.push([request.url, request.headers.host !== undefined, resources - before])
      return request.url.startsWith('/pay')
    }
    trace.enable({ scope })
    ${asking}
    const texts = [await ask('/a'), await ask('/pay/1'), await ask('/b'), await ask('/pay/2')]
    return { seen, texts }`, {})
  t.deepEqual(result.seen, ['/a', '/pay/1', '/b', '/pay/2'].map((url) => [url, true, 0]))
  t.deepEqual(result.texts.map(hopsOf), [0, 2, 0, 2])
  t.is(stderr, '')
})

for (const [fault, message] of [['throw new Error("odd")', 'odd'], ['return Promise.resolve(true)', 'no promise']]) {
  test(`a function that fails is reported once: ${message}`, async (t) => {
    const { result } = await run(`
      const warnings = []
      trace.on('warning', ({ code, message }) => warnings.push([code, message]))
      trace.enable({ scope () { ${fault} } })
      ${asking}
      const texts = [await ask('/a'), await ask('/b')]
      return { warnings, texts }`, {})
    t.deepEqual(result.texts.map(hopsOf), [0, 0])
    t.is(result.warnings.length, 1)
    t.is(result.warnings[0][0], 'LONGSTACK_WARN_SCOPE')
    t.true(result.warnings[0][1].includes(message), result.warnings[0][1])
  })
}

test('spans stay whole outside: times are known, and no sites', async (t) => {
  const { result } = await run(`
    const http = require('node:http')
    const spans = []
    trace.on('span', ({ kind, attributes }) => { if (kind === 'SERVER') spans.push(attributes) })
    trace.enable({ scope: 'header:x-trace' })
    const server = http.createServer(async (request, response) => {
      await sleep(${20 * timeFactor})
      trace.span('inner', () => sleep(${20 * timeFactor})).then(() => response.end(trace.request().name))
    })
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    const ask = (headers) => new Promise((resolve) => {
      http.get({ port: server.address().port, host: '127.0.0.1', agent: false, headers }, (response) => {
        response.on('end', resolve).setEncoding('utf8').on('data', (text) => spans.push(text))
      })
    })
    for (const headers of [{}, { 'x-trace': '1' }]) await ask(headers)
    while (spans.length < 4) await sleep(5)
    return spans`, {})
  const [outside, inside] = result.filter((/** @type {unknown} */ span) => typeof span === 'object')
  t.deepEqual(result.filter((/** @type {unknown} */ span) => typeof span === 'string'), ['GET /', 'GET /'])
  for (const attributes of [outside, inside]) t.true(attributes['longstack.wait_ms'].TIMER > 0)
  t.is(outside['longstack.waits'][0].at, undefined)
  t.regex(inside['longstack.waits'][0].at, /sleep|anonymous/)
})

test('code that is terminated inside leaves the scope', async (t) => {
  const { result } = await run(`
    const vm = require('node:vm')
    const fail = () => new Promise((resolve) => setTimeout(() => resolve(new Error('x').stack), 1))
    const texts = []
    for (let i = 0; i < 3; i++) {
      try {
        vm.runInNewContext('scope(() => { for (;;); })', { scope: trace.scope }, { timeout: 20 })
      } catch (error) {
        texts.push(error.code)
      }
      texts.push(await fail())
    }
    return [...texts, await trace.scope(fail), trace.doctor().text]`, { LONGSTACK_SCOPE: 'calls' })
  t.regex(result.pop(), /^tracing +on, filter \*, scope calls$/m)
  t.deepEqual(result.map((/** @type {string} */ text) => text.startsWith('ERR_') || hopsOf(text)),
    [true, 0, true, 0, true, 0, 2])
})

test('one in three requests, and a header with a value', async (t) => {
  const { result } = await run(`
    trace.enable({ scope: 'one-in:3' })
    ${asking}
    const texts = []
    for (let i = 0; i < 7; i++) texts.push(await ask('/'))
    trace.enable({ scope: 'header:accept=*/*' })
    texts.push(await ask('/'))
    trace.enable({ scope: 'header:accept=no' })
    texts.push(await ask('/'))
    return texts`, {})
  t.deepEqual(result.map(hopsOf).map(Boolean), [true, false, false, true, false, false, true, true, false])
})

test('a scope can be set and left while the program runs', async (t) => {
  const { result } = await run(`
    const error = () => new Promise((resolve) => setTimeout(() => resolve(new Error('x').stack), 1))
    const interval = () => new Promise((resolve) => {
      const timer = setInterval(() => { clearInterval(timer); resolve(new Error('x').stack) }, 20)
    })
    const before = interval()
    const texts = [await error()]
    trace.enable({ scope: 'calls' })
    texts.push(await error(), await before, await trace.scope(error))
    trace.enable({ scope: undefined, frames: 5 })
    texts.push(await error())
    trace.disable()
    trace.enable({ scope: 'calls' })
    texts.push(await error(), await trace.scope(error))
    return texts`, {})
  const [full, outside, early, inside, fullAgain, outsideAgain, insideAgain] = result.map(hopsOf)
  t.true(full > 0 && fullAgain > 0 && inside > 0 && insideAgain > 0, result.join('\n'))
  t.is(outside, 0, result[1])
  t.is(outsideAgain, 0, result[5])
  t.true(early >= 0)
})

test('a wrong scope is told in a sentence', async (t) => {
  const { result, stderr } = await run(`
    const codes = []
    for (const scope of ['header', 'header:', 'one-in:0', 'request', 42, '']) {
      try { trace.enable({ scope }) } catch (error) { codes.push(error.code + ' ' + error.message) }
    }
    return codes`, { LONGSTACK_SCOPE: 'headers:x' })
  t.is(result.length, 6)
  for (const text of result) {
    t.regex(text, /^LONGSTACK_ERR_INVALID_OPTION Option "scope" must be "calls", "header:NAME"/)
  }
  t.regex(stderr, /^longstack: LONGSTACK_SCOPE: Option "scope" must be .* Received "headers:x"\.\n$/)
})
