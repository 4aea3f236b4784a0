'use strict'

// trace.pending: promises that are awaited and never settled, by the awaiting site, once per flow.

const test = require('ava')
const { node, program } = require('../helpers/run')

const start = `
  const trace = require(${JSON.stringify(require.resolve('../..'))})
  const { setTimeout: wait } = require('node:timers/promises')
  const hang = () => new Promise(() => {})
  /** Prints the places as [count, label, function]. */
  function print (list) {
    console.log(JSON.stringify(list.map(({ at, label, count }) => [count, label, at.split(' ')[0]])))
  }
  async function first () { await hang() }
  async function deep () { await null; await first() }
`

/**
 * Code that hangs, and the places that are reported.
 * @type {Record<string, [string, Array<[number, string, string]>]>}
 */
const flows = {
  'an await': ['await hang()', [[1, 'await', 'flow']]],
  'functions that await each other': ['await deep()', [[1, 'await', 'first']]],
  'a function that returns a promise': [
    'async function gone () { await null; return hang() } await gone()', [[1, 'gone()', 'gone']]
  ],
  'a recursion': [
    'async function again (n) { await null; return n === 0 ? first() : again(n - 1) } await again(20)', [[1, 'await', 'first']]
  ],
  'then and catch': ['await first().then(() => {}).catch(() => {})', [[1, 'await', 'first']]],
  'a then of its own': ['await hang().then(() => {}).finally(() => {})', [[1, 'promise.then', 'flow']]],
  'a then whose callback hangs': ['await Promise.resolve().then(async function cb () { await hang() })', [[1, 'await', 'cb']]],
  'Promise.all, of which one hangs': ['await Promise.all([first(), 1, wait(1)])', [[1, 'await', 'first']]],
  'Promise.all of bare promises': ['await Promise.all([hang(), hang()])', [[1, 'await', 'flow']]],
  'Promise.all of both': ['await Promise.all([hang(), first()])', [[1, 'await', 'first'], [1, 'await', 'flow']]],
  'Promise.all within Promise.allSettled': ['await Promise.allSettled([Promise.all([hang(), 1])])', [[1, 'await', 'flow']]],
  'Promise.race and Promise.any that are decided': ['await Promise.race([hang(), 1]); await Promise.any([hang(), 1])', []],
  'Promise.any that is not': ['await Promise.any([Promise.reject(new Error()), first()])', [[1, 'await', 'first']]],
  'array.map': ['await Promise.all([1, 2].map(async function one () { await hang() }))', [[2, 'await', 'one']]],
  'for await': [
    'async function * generate () { await null; yield 1; await hang() } for await (const _ of generate());',
    [[1, 'await', 'generate']]
  ],
  'a thenable': ['await { then () {} }', [[1, 'await', 'flow']]],
  'resolve with a promise': ['await new Promise((resolve) => resolve(hang()))', [[1, 'await', 'flow']]],
  'events.once': ["await require('node:events').once(new (require('node:events'))(), 'x')", [[1, 'await', 'flow']]],
  'a stream': ["for await (const _ of new (require('node:stream').Readable)({ read () {} }));", [[1, 'await', 'flow']]],
  'a loop': ['for (let i = 0; i < 9; i++) await wait(1); await hang()', [[1, 'await', 'flow']]],
  'a queue of locks': [
    'let last = hang(); async function locked (before) { await before } for (let i = 0; i < 3; i++) last = locked(last); await last',
    [[1, 'await', 'locked']]
  ],
  'import()': ["await import('data:text/javascript,await new Promise(() => {})')", [[1, 'await', '<anonymous>'], [1, 'await', 'flow']]],
  nothing: ['await wait(1); await Promise.all([1, wait(1)])', []]
}

test('a flow is listed once, at the await where it hangs', async (t) => {
  await Promise.all(Object.entries(flows).map(async ([name, [code, expected]]) => {
    const { stdout, stderr } = await program(`${start}
      async function flow () { ${code} }
      flow()
      let looks = 0
      setTimeout(function look () {
        if (trace.pending().length !== ${expected.length} && looks++ < 100) return setTimeout(look, 50)
        print(trace.pending())
        process.exit()
      }, 300)`)
    t.is(stderr, '', name)
    t.deepEqual(JSON.parse(stdout).sort(), [...expected].sort(), name)
  }))
})

const pool = `${start}
  const http = require('node:http')
  const queue = []
  class Pool {
    async connect () {
      await null
      return new Promise((resolve) => queue.push(resolve))
    }

    async query () { return await this.connect() }
  }
  const pool = new Pool()
  const server = http.createServer(async function handle (request, response) {
    await wait(1)
    await pool.query()
    response.end('done')
  })
  const get = (path) => new Promise((resolve) => http.get({ port: server.address().port, path }, (response) => response.resume().on('end', resolve)))
  async function until (condition) { while (!condition()) await wait(5) }
`

test('requests that wait for a pool are named, and no longer listed once served', async (t) => {
  const { stdout, stderr } = await program(`${pool}
    server.listen(0, async () => {
      const served = ['/report?secret=1', '/report', '/other'].map(get)
      await until(() => queue.length === 3)
      const [waits] = trace.pending()
      console.log(JSON.stringify({ ...waits, chain: waits.chain.map(({ label }) => label) }))
      console.log(JSON.stringify([trace.pending({ olderThanMs: 1e6 }).length, trace.pending({ olderThanMs: 0 }).length]))
      console.log(JSON.stringify(require('node:util').inspect(trace.pending())))
      while (queue.length > 0) queue.pop()()
      await Promise.all(served)
      print(trace.pending().filter(({ at }) => at.startsWith('connect')))
      server.close()
    })`)
  t.is(stderr, '')
  const [waits, counts, text, after] = stdout.trim().split('\n').map((line) => JSON.parse(line))
  t.is(waits.count, 3)
  t.regex(waits.at, /^connect \(.*program\.cjs:\d+:\d+\)$/)
  t.deepEqual(waits.requests, [{ request: 'GET /report', count: 2 }, { request: 'GET /other', count: 1 }])
  t.is(waits.asyncIds.length, 3)
  t.true(waits.oldestMs >= waits.newestMs && waits.newestMs >= 0)
  t.true(waits.chain.includes('GET /report'), waits.chain.join())
  t.deepEqual(counts[0], 0)
  t.true(counts[1] >= 1)
  t.regex(text, /^3 × connect\(\) at connect \(program\.cjs:\d+\), oldest [^,]+(, newest [^,]+)?, GET \/report \(2 ×\), GET \/other\n {2}── /)
  t.deepEqual(after, [])
})

test('waits are known after the rings wrap, and ended ones are not listed', async (t) => {
  const { stdout, stderr } = await program(`${start}
    const resolves = []
    async function keep () { await new Promise((resolve) => resolves.push(resolve)) }
    async function outer () { await keep() }
    for (let i = 0; i < 500; i++) outer()
    ;(async function turn () {
      for (let i = 0; i < 70_000; i++) await null
      print(trace.pending())
      for (let i = 0; i < 400; i++) resolves.pop()()
      await wait(1)
      for (let i = 0; i < 70_000; i++) await null
      print(trace.pending())
    })()`)
  t.is(stderr, '')
  const [before, after] = stdout.trim().split('\n').map((line) => JSON.parse(line))
  t.deepEqual(before, [[500, 'await', 'keep']])
  t.deepEqual(after, [[100, 'await', 'keep']])
})

for (const engine of ['auto', 'js']) {
  test(`requests are named after more promises in one iteration than there are records: ${engine}`, async (t) => {
    const fixture = require.resolve('../fixtures/handles/one-iteration')
    const { stdout } = await node([fixture], { env: { ...process.env, LONGSTACK_CAPTURE: engine } })
    const waits = JSON.parse(stdout).map((/** @type {any} */ { request, count }) => `${count} × ${request}`)
    t.deepEqual(waits.sort(), ['1 × GET /at-once', '1 × GET /before', '3 × GET /loops'])
  })
}

test('top-level await of a module, and a promise made before tracing, are listed', async (t) => {
  const { stdout, stderr } = await program(`
    import trace from ${JSON.stringify(require.resolve('../..'))}
    const early = new Promise(() => {})
    trace.enable()
    setTimeout(() => {
      console.log(JSON.stringify(trace.pending().map(({ at, count }) => [count, /:(\\d+):\\d+\\)$/.exec(at)[1]])))
      process.exit()
    }, 100)
    await early`, { type: 'mjs', preload: false })
  t.is(stderr, '')
  t.deepEqual(JSON.parse(stdout), [[1, '9']])
})

test('if it is unknown what is awaited, the entry says so', async (t) => {
  const source = `${start}
    flow()
    async function flow () { await hang() }
    setTimeout(() => {
      const list = trace.pending()
      console.log(JSON.stringify([list.length, list.noteCode, Object.keys(list), require('node:util').inspect(list)]))
    }, 50)`
  const { stdout } = await program(source, { env: { LONGSTACK: '*,-PROMISE' } })
  const [length, noteCode, keys, text] = JSON.parse(stdout)
  t.deepEqual([length, noteCode, keys], [0, 'FILTER', []])
  t.regex(text, /^The filter excludes promises/)
  const off = await program(source, { preload: false })
  t.regex(JSON.parse(off.stdout)[3], /^Tracing is off/)
})

test('wrong options are errors with a code', async (t) => {
  const { stdout } = await program(`${start}
    for (const options of [1, null, { olderThan: 1 }, { olderThanMs: '1' }, { olderThanMs: -1 }, { olderThanMs: NaN }]) {
      try { trace.pending(options) } catch (error) { console.log(error.name, error.code, error.message) }
    }`)
  const lines = stdout.trim().split('\n')
  t.is(lines.length, 6)
  t.true(lines.every((line) => line.startsWith('TypeError LONGSTACK_ERR_')))
  t.regex(lines[2], /UNKNOWN_PENDING_OPTION .*Did you mean "olderThanMs"\?/)
  t.regex(lines[3], /INVALID_PENDING .*"olderThanMs" .* must be a number of ms, at least 0\. Received "1"\./)
})

test('a longer minimum age keeps older awaits', async (t) => {
  const { stdout } = await program(`${start}
    first()
    setTimeout(() => {
      first()
      print(trace.pending({ olderThanMs: 900 }))
      print(trace.pending())
    }, 1000)`)
  const [old, all] = stdout.trim().split('\n').map((line) => JSON.parse(line))
  t.deepEqual(old, [[1, 'await', 'first']])
  t.deepEqual(all, [[2, 'await', 'first']])
})
