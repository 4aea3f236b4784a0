'use strict'

// Sinks as users meet them: LONGSTACK_SPANS and an unmodified program.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { program, root } = require('../helpers/run')
const { folder, read, records } = require('../helpers/sinks')

/** `get(path)` asks the server of the program and answers with the status. */
const server = `
  const fs = require('node:fs')
  const http = require('node:http')
  const agent = new http.Agent({ keepAlive: true, maxSockets: 8 })
  const server = http.createServer((req, res) => {
    res.statusCode = req.url.startsWith('/bad') ? 500 : 200
    setTimeout(() => res.end('ok'), req.url.startsWith('/slow') ? 900 : 1)
  })
  const get = (path) => new Promise((resolve, reject) => {
    http.get({ port: server.address().port, path, agent }, (res) => res.resume().on('end', () => resolve(res.statusCode))).on('error', reject)
  })
  const listening = new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
`

/** @param {any[]} list */
const paths = (list) => list.filter(({ kind }) => kind === 'SERVER').map(({ attributes }) => attributes['url.path']).sort()

test('rotations under the load of a server: every request is written once, in a whole line', async (t) => {
  const dir = folder(t)
  const file = path.join(dir, 'spans.jsonl')
  const { stdout, stderr, code } = await program(`${server}
    const dir = ${JSON.stringify(dir)}
    const trace = require(${JSON.stringify(root)})
    listening.then(async () => {
      let n = 0, over = false
      const client = async () => { while (!over) await get('/n/' + n++) }
      const clients = Array.from({ length: 8 }, client)
      for (let i = 0; i < 3; i++) {
        while (!fs.existsSync(dir + '/spans.jsonl')) await get('/n/' + n++)
        fs.renameSync(dir + '/spans.jsonl', dir + '/spans.' + i)
      }
      while (!fs.existsSync(dir + '/spans.jsonl')) await get('/n/' + n++)
      over = true
      await Promise.all(clients)
      agent.destroy()
      server.close()
      server.on('close', () => { const { outputs, ...rest } = trace.stats().spans; console.log(JSON.stringify({ n, outputs, ...rest })) })
    })`, { env: { LONGSTACK_SPANS: file } })
  t.is(stderr, '')
  t.is(code, 0)
  const { n, written, dropped, outputs } = JSON.parse(stdout)
  const files = fs.readdirSync(dir)
  t.is(files.length, 4)
  const all = files.flatMap((name) => read(path.join(dir, name)))
  const undefinedIn = all.filter(({ resource }) => resource['process.pid'] === undefined)
  t.deepEqual(undefinedIn, [], 'each file defines what its spans refer to')
  t.deepEqual(all.filter(({ kind, attributes }) => kind === 'SERVER' && attributes['code.stacktrace'] === undefined), [])
  const seen = paths(all)
  t.deepEqual(seen, Array.from({ length: n }, (_, i) => `/n/${i}`).sort())
  t.true(n > 10, `${n} requests beside`)
  t.is(dropped, 0)
  t.true(written >= seen.length)
  t.deepEqual(outputs.map((/** @type {any} */ { to }) => to), [file])
})

test('a file truncated by copytruncate gets all definitions again', async (t) => {
  const dir = folder(t)
  const file = path.join(dir, 'spans.jsonl')
  const { stderr } = await program(`
    const trace = require(${JSON.stringify(root)})
    const fs = require('node:fs')
    const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
    const step = (name) => trace.span(name, () => wait(1))
    ;(async () => {
      await step('before'); await wait(1100); await step('before, seen')
      fs.truncateSync(${JSON.stringify(file)})
      await wait(1100); await step('after')
    })()`, { env: { LONGSTACK_SPANS: file } })
  t.is(stderr, '')
  const after = read(file).find(({ name }) => name === 'after')
  t.regex(after.attributes['code.stacktrace'], / at step /)
  t.is(typeof after.resource['process.pid'], 'number')
})

test('outputs have thresholds, stdout among them', async (t) => {
  const dir = folder(t)
  const { stdout, stderr, code } = await program(`${server}
    listening.then(async () => {
      for (const path of ['/a', '/slow', '/bad', '/b']) await get(path)
      agent.destroy(); server.close()
    })`, { env: { LONGSTACK_SPANS: `${dir}/all.jsonl, ${dir}/slow.jsonl;slower=800, -;errors` } })
  t.is(stderr, '')
  t.is(code, 0)
  t.deepEqual(paths(read(path.join(dir, 'all.jsonl'))), ['/a', '/b', '/bad', '/slow'])
  t.deepEqual(paths(read(path.join(dir, 'slow.jsonl'))), ['/slow'])
  t.deepEqual(paths(records(stdout)), ['/bad'])
})

/** @type {Array<[name: string, end: string, code: number | null, signal?: string]>} */
const ends = [
  ['process.exit', 'process.exit(3)', 3],
  ['an exception', "throw new Error('x')", 1],
  ['SIGTERM', "process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 5000)", null, 'SIGTERM'],
  ['SIGTERM in an endless loop', "require('node:child_process').exec('sleep 0.2; kill ' + process.pid); for (;;);", null, 'SIGTERM']
]

for (const [name, end, code, signal = null] of ends) {
  test(`spans that ended are written after ${name}, and the process ends as usual`, async (t) => {
    const dir = folder(t)
    const result = await program(`${server}
      listening.then(async () => {
        await Promise.all(Array.from({ length: 50 }, (_, i) => get('/n/' + i)))
        setTimeout(() => { ${end} }, 20)
      })`, { env: { LONGSTACK_SPANS: `${dir}/spans.jsonl` } })
    t.deepEqual([result.code, result.signal], [code, signal])
    t.is(result.stdout, '')
    t.deepEqual(paths(read(path.join(dir, 'spans.jsonl'))), Array.from({ length: 50 }, (_, i) => `/n/${i}`).sort())
  })
}

test('an output that cannot be written prints one line; the program runs as usual', async (t) => {
  const dir = folder(t)
  const source = `${server}
    listening.then(async () => {
      for (let i = 0; i < 20; i++) await get('/n/' + i)
      agent.destroy(); server.close()
      console.log('done')
      process.exitCode = 4
    })`
  for (const [spans, sentence] of [
    [`${dir}/none/spans.jsonl`, /^longstack: spans cannot be written to .*none\/spans\.jsonl: its directory does not exist \(ENOENT\)\. .*\n$/],
    [dir, /^longstack: .* it is a directory \(EISDIR\)\. .*\n$/],
    ['/dev/full', /^longstack: .* the disk is full \(ENOSPC\)\. .*\n$/],
    ['spans.jsonl;smaple=1', /^longstack: .*Unknown setting "smaple" .* Did you mean "sample"\?.*\n$/],
    ['htp://collector', /^longstack: .*htp: is none of http:, https: and file:\.\n$/]
  ]) {
    if (spans === '/dev/full' && process.platform !== 'linux') continue
    const { stdout, stderr, code } = await program(source, {
      env: { LONGSTACK_SPANS: /** @type {string} */ (spans) }
    })
    t.is(stdout, 'done\n')
    t.is(code, 4)
    t.regex(stderr, /** @type {RegExp} */ (sentence))
  }
})

test('a later enable replaces the outputs, and disable closes them', async (t) => {
  const dir = folder(t)
  const { stdout, stderr, code } = await program(`
    const trace = require(${JSON.stringify(root)})
    const dir = ${JSON.stringify(dir)}
    trace.span('one', () => {})
    trace.enable({ spans: [{ to: dir + '/second.jsonl' }, dir + '/none.jsonl;errors'] })
    trace.span('two', () => {})
    trace.disable()
    trace.span('three', () => {})`, { env: { LONGSTACK_SPANS: `${dir}/first.jsonl` } })
  t.is(stderr, '')
  t.is(code, 0)
  t.is(stdout, '')
  const names = (/** @type {string} */ file) => read(path.join(dir, file)).map(({ name }) => name)
  t.deepEqual([names('first.jsonl'), names('second.jsonl'), names('none.jsonl')], [['one'], ['two'], []])
})

test('work of sinks makes no events for hooks, and is in no list of handles', async (t) => {
  const dir = folder(t)
  const { stdout, stderr } = await program(`
    const trace = require(${JSON.stringify(root)})
    const types = []
    trace.hook({ init: ({ type }) => { if (type !== 'Span') types.push(type) } }) // trace.span is the program's own doing
    const handles = () => trace.handles().map(({ what }) => what)
    trace.enable({ spans: ${JSON.stringify(`/dev/full,${dir}/a.jsonl,${dir}/none/b.jsonl`)} })
    trace.span('one', () => {})
    for (let start = Date.now(); Date.now() - start < 1100;);
    trace.span('two', () => {})
    setImmediate(() => require('node:fs').writeSync(1, JSON.stringify({ types, handles: handles() })))`)
  t.regex(stderr, /^longstack: [^\n]*ENOENT[^\n]*\nlongstack: [^\n]*ENOSPC[^\n]*\n$/)
  t.deepEqual(JSON.parse(stdout), { types: ['Immediate'], handles: [] })
})

test('SIGHUP ends a process that writes spans, and ended spans are in the file', async (t) => {
  const dir = folder(t)
  const { signal, code } = await program(`
    const trace = require(${JSON.stringify(root)})
    trace.span('first', () => {})
    setTimeout(() => { process.kill(process.pid, 'SIGHUP'); setTimeout(() => {}, 60_000) }, 20)`,
  { env: { LONGSTACK_SPANS: `${dir}/spans.jsonl` } })
  t.deepEqual([code, signal], [null, 'SIGHUP'])
  t.deepEqual(read(path.join(dir, 'spans.jsonl')).map(({ name }) => name), ['first'])
})
