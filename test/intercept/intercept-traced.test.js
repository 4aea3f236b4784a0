'use strict'

// trace.intercept with tracing on: work started by transforms is traced, hops and reports name the
// transforms, and disable() only ends tracing.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { program, root } = require('../helpers/run')

const key = path.join(root, 'test', 'fixtures', 'handles', 'key.pem')
const cert = path.join(root, 'test', 'fixtures', 'handles', 'cert.pem')

/** @param {string} made a server @param {string} dial a client's socket */
const source = (made, dial) => `
const trace = require(${JSON.stringify(root)})
const fs = require('fs'), http = require('http'), https = require('https'), net = require('net'), tls = require('tls')
const told = {}
const server = ${made}
server.on('request', function handle (req, res) {
  if (req.url === '/handler') { told.handler = new Error('x').stack; told.why = String(trace.why(req.socket)); told.through = trace.why(req).through }
  if (req.url === '/removed') { told.removed = new Error('x').stack; told.none = trace.why(req).through }
  res.end(req.headers.added ?? 'nothing')
})
server.on('clientError', (error) => { told.error = error.stack })
function set () {
  trace.intercept(server, function last (chunk) { if (chunk.includes('/fail')) throw new Error('boom') })
  return trace.intercept(server, function adds (chunk) {
    if (chunk.includes('/handler')) setTimeout(function started () { told.started = new Error('x').stack }, 1)
    return Buffer.from(chunk.toString('latin1').replace('\\r\\n', '\\r\\nadded: yes\\r\\n'), 'latin1')
  })
}
const ask = (url) => new Promise((resolve) => {
  const socket = ${dial}
  let got = ''
  socket.on('error', () => {}).on('data', (data) => { got += data }).on('close', () => resolve(got.split('\\r\\n').pop()))
  socket.write('GET ' + url + ' HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n')
})
server.listen(0, '127.0.0.1', async () => {
  const remove = set()
  trace.on('warning', () => {})
  told.got = [await ask('/handler'), await ask('/fail')]
  await new Promise((resolve) => setTimeout(resolve, 20))
  remove()
  told.got.push(await ask('/removed'))
  const again = set()
  trace.disable()
  told.got.push(await ask('/off'))
  again()
  server.close()
  console.log(JSON.stringify(told))
})`

const ways = {
  http: source('http.createServer()', "net.connect(server.address().port, '127.0.0.1')"),
  https: source(
    `https.createServer({ key: fs.readFileSync(${JSON.stringify(key)}), cert: fs.readFileSync(${JSON.stringify(cert)}) })`,
    "tls.connect({ port: server.address().port, host: '127.0.0.1', rejectUnauthorized: false })"
  )
}

for (const [name, text] of Object.entries(ways)) {
  for (const env of [{}, { LONGSTACK_CAPTURE: 'js' }, { LONGSTACK_SPANS: path.join(os.tmpdir(), `longstack-${process.pid}-${name}.jsonl`) }]) {
    test.serial(`${name}: chains and reports name transforms, ${JSON.stringify(Object.keys(env))}`, async (t) => {
      const { stdout, stderr, code } = await program(text, { env })
      if ('LONGSTACK_SPANS' in env) fs.rmSync(/** @type {string} */ (env.LONGSTACK_SPANS), { force: true })
      t.is(stderr, '')
      t.is(code, 0)
      const told = JSON.parse(stdout)
      t.deepEqual(told.got, ['yes', '', 'nothing', 'yes'])
      t.regex(told.handler, /── GET \/handler, through last, adds · [^\n]* ──$/)
      t.regex(told.why, /its bytes go through last, set at set \(.*:\d+:\d+\)\n {2}then through adds, set at set \(/)
      t.deepEqual(told.through.map((/** @type {any} */ one) => one.name), ['last', 'adds'])
      t.regex(told.started, /── setTimeout\(1\) · [^]*at adds \([^]*connection accepted, through last, adds[^]*── server\.listen\(/)
      t.regex(told.error, /The transform "last" of trace\.intercept threw an error: boom\.[^]*── .*connection accepted, through last, adds · [^]*── server\.listen\(/)
      t.regex(told.removed, /── GET \/removed, through last/)
      t.deepEqual(told.none.map((/** @type {any} */ one) => one.name), ['last'])
      for (const hops of [told.handler, told.started]) t.false(hops.includes('intercept/'), 'no frame of longstack')
    })
  }
}
