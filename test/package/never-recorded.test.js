'use strict'

// SECURITY.md, "What is not recorded": a program that handles secrets in every place where there may be one,
// and everything that longstack reports of it.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, register } = require('../helpers/run')

const program = `
  const { spawn } = require('node:child_process')
  const fs = require('node:fs')
  const http = require('node:http')
  const trace = require(${JSON.stringify(path.join(__dirname, '../..'))})
  const texts = []
  trace.on('span', (span) => texts.push(JSON.stringify(span)))

  const server = http.createServer((request, response) => {
    texts.push(trace.stack(), JSON.stringify(trace.chain()), new Error('x').stack)
    texts.push(String(trace.why(request.socket)))
    request.resume().on('end', () => {
      response.setHeader('set-cookie', 'SECRETsetCookie')
      response.end('SECRETanswer')
    })
  }).listen(0, '127.0.0.1', async () => {
    const { port } = server.address()
    const headers = { cookie: 'SECRETcookie', 'x-key': 'SECRETheader', 'user-agent': 'SECRETagent' }
    const options = { port, host: '127.0.0.1', method: 'POST', auth: 'SECRETuser:SECRETpassword', headers }
    await new Promise((resolve) => {
      const request = http.request({ ...options, path: '/path?token=SECRETquery#SECRETfragment' },
        (response) => response.resume().on('end', resolve))
      request.end('SECRETbody')
    })
    const url = 'http://127.0.0.1:' + port + '/path?token=SECRETfetchQuery'
    await (await fetch(url, { method: 'POST', body: 'SECRETfetchBody', headers })).text()
    spawn(process.execPath, ['-v', 'SECRETargument'], { env: { A: 'SECRETvariable' }, stdio: 'ignore' })
    fs.readFile('/tmp/SECRETfile', () => {
      texts.push(trace.stack(), JSON.stringify(trace.handles().map(String)))
      server.close()
      setTimeout(() => console.log(JSON.stringify(texts)), 100)
    })
  })`

test('no secret is in chains, reports, errors or spans', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-secrets-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'spans.jsonl')
  const env = { LONGSTACK_SPANS: file }
  const { code, stdout, stderr } = await node(['-r', register, '-e', program], { env })
  t.is(code, 0, stderr)
  const spans = fs.readFileSync(file, 'utf8')
  t.is(spans.match(/"url\.path":"\/path"/g)?.length, 4, 'two requests, a span on either side')
  t.deepEqual(`${stdout}${spans}${stderr}`.match(/SECRET\w+/g), null)
})
