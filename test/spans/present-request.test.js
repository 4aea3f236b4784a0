'use strict'

// trace.request: the request of the running code, as a log needs it.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { program, root } = require('../helpers/run')
const { recordsOf } = require('../helpers/records')

const service = `
  const http = require('node:http')
  const net = require('node:net')
  const trace = require(${JSON.stringify(root)})
  const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const told = []
  const tell = (where) => told.push({ where, request: trace.request() })
  async function ask (server, path) {
    const response = await fetch('http://127.0.0.1:' + server.address().port + path)
    return await response.text()
  }
  const listening = (server) => new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)))
`

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {Record<string, string>} [env]
 */
async function run (t, source, env) {
  const { stdout, stderr, code } = await program(`${service}${source}`, { env })
  t.is(stderr, '')
  t.is(code, 0)
  return stdout.trim().split('\n').map((line) => JSON.parse(line))
}

for (const mode of ['full', 'js']) {
  test(`concurrent flows have their own request, through timers and awaits: ${mode}`, async (t) => {
    const [told] = await run(t, `
      async function main () {
        tell('outside')
        const server = await listening(http.createServer(async function handle ({ url }, response) {
          tell(url)
          await later(url === '/a?x=1' ? 8 : 2)
          tell(url)
          setTimeout(function after () { tell(url) }, 3)
          response.end()
        }))
        await Promise.all(['/a?x=1', '/b', '/c'].map((path) => ask(server, path)))
        await later(20)
        tell('outside')
        console.log(JSON.stringify(told))
        process.exit()
      }
      main()`, mode === 'js' ? { LONGSTACK_CAPTURE: 'js' } : undefined)
    t.is(told.length, 11)
    for (const { where, request } of told) {
      if (where === 'outside') t.is(request, undefined)
      else t.deepEqual(request, { name: `GET ${where.replace('?x=1', '')}` }, where)
    }
  })
}

const trackers = fs.readFileSync(path.join(root, 'docs', 'trackers.md'), 'utf8')
const documented = /^function requestFields \(\) \{.*?^\}$/ms.exec(trackers)?.[0]

test('with spans it has the ids of the request\'s span, and pino writes them as docs/trackers.md says', async (t) => {
  const spans = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-request-')), 'spans.jsonl')
  t.teardown(() => fs.rmSync(path.dirname(spans), { recursive: true, force: true }))
  const lines = await run(t, `
    ${documented}
    const log = require(${JSON.stringify(require.resolve('pino'))})({ name: 'shop', timestamp: false, mixin: requestFields })
    async function main () {
      const server = await listening(http.createServer(async function handle ({ url }, response) {
        await trace.span('inner', () => later(2))
        log.info(url)
        response.end()
      }))
      log.info('outside')
      await Promise.all([ask(server, '/a'), ask(server, '/b')])
      server.closeAllConnections()
      server.close()
    }
    main()`, { LONGSTACK_SPANS: spans })
  const records = recordsOf(fs.readFileSync(spans, 'utf8'))
  const ids = new Map(records.filter(({ kind }) => kind === 'SERVER')
    .map(({ name, traceId, spanId }) => [name, { trace_id: traceId, span_id: spanId }]))
  t.deepEqual(lines.map(({ msg }) => msg).sort(), ['/a', '/b', 'outside'])
  for (const { level, pid, hostname, name, msg, ...request } of lines) {
    t.is(name, 'shop')
    t.deepEqual(request, msg === 'outside' ? {} : { request: `GET ${msg}`, ...ids.get(`GET ${msg}`) })
  }
})

test('data on a pooled connection belongs to the request that sent the query; with two, to none', async (t) => {
  const [told] = await run(t, `
    async function main () {
      const database = await listening(net.createServer((socket) => socket.on('data', (data) => setTimeout(() => socket.write(data), 30))))
      let connection
      const waiting = []
      function query (text) {
        if (connection === undefined) {
          connection = net.connect(database.address().port, '127.0.0.1')
          connection.setEncoding('utf8').on('data', function answered (text) {
            tell('data')
            for (const char of text) if (char === '/') waiting.shift()()
          })
        }
        return new Promise((resolve) => { waiting.push(resolve); connection.write(text) })
      }
      const server = await listening(http.createServer(async function handle ({ url }, response) {
        await query(url)
        tell(url)
        response.end()
      }))
      for (const url of ['/first', '/second', '/third']) await ask(server, url)
      const late = later(5).then(() => ask(server, '/b'))
      await Promise.all([ask(server, '/a'), late])
      console.log(JSON.stringify(told))
      process.exit()
    }
    main()`)
  const inTurn = ['/first', '/second', '/third'].flatMap((where) => {
    const request = { name: `GET ${where}` }
    return [{ where: 'data', request }, { where, request }]
  })
  t.deepEqual(told.slice(0, 6), inTurn)
  const together = told.slice(6)
  t.true(together.some(({ where }) => where === 'data'))
  for (const { where, request } of together) t.is(request?.name, where === 'data' ? undefined : `GET ${where}`)
})

test('without tracing there is no request', async (t) => {
  const { stdout } = await program(`console.log(require(${JSON.stringify(root)}).request())`, { preload: false })
  t.is(stdout, 'undefined\n')
})
