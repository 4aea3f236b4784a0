'use strict'

// Prints the server's answers to good and bad requests, and the listeners called.

const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { deliver } = require('./deliver')

const CHANGED = new Date(Date.UTC(2010, 2, 31, 12)) // date of all files, so that their tags are always equal

/** Creates a site with files of every kind. @param {string} directory */
function makeSite (directory) {
  const root = path.join(directory, 'site')
  const put = (name, content) => {
    fs.writeFileSync(path.join(directory, name), content)
    fs.utimesSync(path.join(directory, name), CHANGED, CHANGED)
  }
  for (const name of ['site/docs', 'site/empty', 'site-two']) {
    fs.mkdirSync(path.join(directory, name), { recursive: true })
  }
  put('site/index.html', '<h1>Files</h1>\n')
  put('site/docs/index.html', '<h1>Docs</h1>\n')
  put('site/letters.txt', 'abcdefghijklmnopqrstuvwxyz')
  put('site/two words ü.txt', 'found\n')
  put('site/%2e%2e', 'a name that looks like an escape\n')
  put('site/nothing.css', '')
  put('site/.env', 'PASSWORD=secret\n')
  put('site/large.bin', Buffer.from(Uint8Array.from({ length: 200_001 }, (_, i) => i % 251)))
  put('secret.txt', 'secret\n')
  put('site-two/secret.txt', 'secret\n')
  fs.symlinkSync('letters.txt', path.join(root, 'link.txt'))
  fs.symlinkSync('../secret.txt', path.join(root, 'way-out.txt'))
  fs.symlinkSync('../site-two', path.join(root, 'next-door'))
  fs.symlinkSync('round', path.join(root, 'round'))
  return root
}

const TAG = `"1a-${(BigInt(CHANGED.getTime()) * 1_000_000n).toString(16)}"`

/** The requests: request line and further headers. */
const requests = [
  ['GET /'],
  ['GET /docs/'],
  ['GET /docs'],
  ['GET /empty/'],
  ['GET /letters.txt'],
  ['HEAD /letters.txt'],
  ['GET /letters.txt/'],
  ['GET /letters.txt?a=/../b'],
  ['GET http://any.host/letters.txt'],
  ['GET /two%20words%20%C3%BC.txt'],
  ['GET /%252e%252e'],
  ['GET /nothing.css'],
  ['GET /none.txt'],
  ['GET /large.bin'],
  ['GET /link.txt'],
  ['POST /letters.txt'],
  ['DELETE /none.txt'],
  ['OPTIONS *'],
  ['GET /../secret.txt'],
  ['GET /%2e%2e/secret.txt'],
  ['GET /..%2fsecret.txt'],
  ['GET /docs/%2E%2E/%2e%2e/secret.txt'],
  ['GET /..%5csecret.txt'],
  ['GET /..\\secret.txt'],
  ['GET /%c0%ae%c0%ae/secret.txt'],
  ['GET /letters.txt%00.html'],
  ['GET /%'],
  ['GET //etc/passwd'],
  ['GET /way-out.txt'],
  ['GET /next-door/secret.txt'],
  ['GET /round'],
  ['GET /.env'],
  ['GET /letters.txt', 'Range: bytes=2-5'],
  ['GET /letters.txt', 'Range: bytes=24-'],
  ['GET /letters.txt', 'Range: bytes=-3'],
  ['GET /letters.txt', 'Range: bytes=-100'],
  ['GET /letters.txt', 'Range: bytes=20-1000'],
  ['GET /letters.txt', 'Range: bytes=26-'],
  ['GET /letters.txt', 'Range: bytes=-0'],
  ['GET /letters.txt', 'Range: bytes=5-2'],
  ['GET /letters.txt', 'Range: bytes=a-b'],
  ['GET /letters.txt', 'Range: bytes=-'],
  ['GET /letters.txt', 'Range: lines=1-2'],
  ['GET /letters.txt', 'Range: bytes=0-1,4-5'],
  ['GET /nothing.css', 'Range: bytes=0-'],
  ['HEAD /letters.txt', 'Range: bytes=2-5'],
  ['GET /large.bin', 'Range: bytes=65530-65545'],
  ['GET /letters.txt', `If-None-Match: "other", W/${TAG}`],
  ['GET /letters.txt', 'If-None-Match: *'],
  ['GET /letters.txt', 'If-None-Match: "other"', `If-Modified-Since: ${CHANGED.toUTCString()}`],
  ['GET /letters.txt', `If-Modified-Since: ${CHANGED.toUTCString()}`],
  ['GET /letters.txt', 'If-Modified-Since: Tue, 30 Mar 2010 12:00:00 GMT'],
  ['GET /letters.txt', 'If-Modified-Since: whenever'],
  ['GET /letters.txt', 'Range: bytes=2-5', `If-Range: ${TAG}`],
  ['GET /letters.txt', 'Range: bytes=2-5', 'If-Range: "other"'],
  ['GET /letters.txt', 'Range: bytes=2-5', `If-Range: W/${TAG}`],
  ['GET /letters.txt', 'Range: bytes=2-5', `If-Range: ${CHANGED.toUTCString()}`],
  ['GET /letters.txt', 'Range: bytes=2-5', `If-None-Match: ${TAG}`],
  ['GET /letters.txt?cancel']
]

/**
 * Returns everything received until the connection is closed.
 * @param {number} port @param {string[]} lines
 */
async function sendRequest (port, [line, ...headers]) {
  const socket = net.connect(port, '127.0.0.1')
  const chunks = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.write(`${line} HTTP/1.1\r\n${['Host: files', 'Connection: close', ...headers].join('\r\n')}\r\n\r\n`)
  await once(socket, 'close')
  return Buffer.concat(chunks)
}

/** Prints the server's output byte by byte, and the listeners called. */
async function answers () {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'serving-files-'))
  const root = makeSite(directory)
  let calls = []
  const server = http.createServer((request, response) => {
    response.sendDate = false
    const note = (name, ...args) => calls.push([name, ...args].join(' '))
    deliver(root, request, response)
      .before((file) => {
        note('before', path.relative(root, file))
        return request.url.endsWith('?cancel') ? false : undefined
      })
      .after((status, problem) => note('after', status, problem?.message ?? ''))
      .error((status, message) => {
        note('error', status, message)
        response.statusCode = status
        response.end(`${message}\n`)
      })
      .otherwise(() => {
        note('otherwise')
        response.statusCode = 404
        response.end('no such file\n')
      })
    note('delivered') // printed first: listeners attached by then miss nothing
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  try {
    for (const request of requests) {
      calls = []
      const bytes = await sendRequest(server.address().port, request)
      const called = calls.map((call) => call.trim()).join(', ')
      process.stdout.write(`> ${request.join(' | ')}\n`)
      process.stdout.write(bytes)
      process.stdout.write(`\n< ${called}\n\n`)
    }
  } finally {
    server.close()
    fs.rmSync(directory, { recursive: true })
  }
}

module.exports = { answers }
