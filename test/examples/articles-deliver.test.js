'use strict'

// The file server of article 04: equal bytes for every way of sending, no file left open, and no part
// mistaken for the whole. articles-answers.test.js compares the answers to good and bad requests.

const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: delay } = require('node:timers/promises')
const test = require('ava')
const { deliver } = require('../../bench/articles/04-serving-files/deliver')
const { fresh, reused, piped } = require('../../bench/articles/04-serving-files/send')

const DELIVER = require.resolve('../../bench/articles/04-serving-files/deliver')
const KIB = 1024
const BIG = 32 << 20 // more than the kernel takes for a client that does not read

const ways = { fresh, reused, piped }

/** @param {import('ava').ExecutionContext} t @returns {string} an empty directory */
function makeDirectory (t) {
  const directory = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'longstack-deliver-'))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Bytes from which their place is seen. @param {number} size */
function pattern (size) {
  const data = Buffer.alloc(size)
  for (let i = 0; i < size; i++) data[i] = (i * 7 + (i >> 8)) & 255
  return data
}

/** Files of a directory that this process has open. @param {string} root */
function openBelow (root) {
  return fs.readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = fs.readlinkSync(`/proc/self/fd/${fd}`)
      return target.startsWith(root) ? [target] : []
    } catch {
      return [] // that of the listing itself
    }
  })
}

/**
 * A server of a directory, and what became of its answers.
 * @param {import('ava').ExecutionContext} t
 * @param {string} root
 * @param {{ send?: any }} [options]
 */
async function serve (t, root, options) {
  /** @type {Array<{ status: number, problem: Error | undefined }>} */
  const ended = []
  const server = http.createServer((request, response) => {
    deliver(root, request, response, options).after((status, problem) => ended.push({ status, problem }))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return { port: /** @type {net.AddressInfo} */ (server.address()).port, ended }
}

/** @param {number} port @param {string} text @returns {Promise<net.Socket>} paused */
async function write (port, text) {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.pause()
  socket.write(text)
  return socket
}

/** @param {net.Socket} socket @returns {Promise<Buffer>} all until it is closed */
async function readAll (socket) {
  const chunks = /** @type {Buffer[]} */ ([])
  socket.on('data', (chunk) => chunks.push(chunk)).resume()
  if (!socket.closed) await once(socket, 'close')
  return Buffer.concat(chunks)
}

/** @param {string} name @param {string[]} headers */
const get = (name, ...headers) => {
  return `GET /${name} HTTP/1.1\r\n${['Host: files', ...headers].join('\r\n')}\r\n\r\n`
}

/** @param {number} port @param {string} text */
async function sendRequest (port, text) {
  const answer = await readAll(await write(port, text))
  const end = answer.indexOf('\r\n\r\n')
  const head = answer.toString('latin1', 0, end)
  return { head, status: Number(head.slice(9, 12)), body: answer.subarray(end + 4) }
}

/** @param {() => boolean} holds */
async function until (holds) {
  for (let i = 0; i < 1_000 && !holds(); i++) await delay(10)
  return holds()
}

/**
 * Until the server has sent what the kernel takes, and waits.
 * @param {net.Socket} socket
 * @param {string} root
 */
async function stuck (socket, root) {
  await until(() => openBelow(root).length > 0)
  await delay(200)
}

for (const [name, way] of Object.entries(ways)) {
  test(`${name}: every size and range arrives unchanged`, async (t) => {
    const root = makeDirectory(t)
    for (const size of [0, 1, 4 * KIB - 1, 4 * KIB, 4 * KIB + 1, 300_007]) {
      const data = pattern(size)
      fs.writeFileSync(path.join(root, 'file'), data)
      for (const chunk of [4 * KIB, 64 * KIB, BIG]) {
        const { port, ended } = await serve(t, root, { send: way(chunk) })
        const { status, head, body } = await sendRequest(port, get('file', 'Connection: close'))
        t.is(status, 200)
        t.true(head.includes(`Content-Length: ${size}\r\n`))
        t.true(body.equals(data), `${size} in chunks of ${chunk}`)
        if (size > 1) {
          const part = await sendRequest(port, get('file', 'Connection: close', `Range: bytes=1-${size - 2}`))
          t.is(part.status, 206)
          t.true(part.body.equals(data.subarray(1, -1)), `a part of ${size} in chunks of ${chunk}`)
        }
        t.true(ended.every(({ problem }) => problem === undefined))
      }
    }
    t.deepEqual(openBelow(root), [])
  })

  test(`${name}: concurrent requests are answered in order`, async (t) => {
    const root = makeDirectory(t)
    const data = pattern(300_007)
    fs.writeFileSync(path.join(root, 'file'), data)
    const { port, ended } = await serve(t, root, { send: way(64 * KIB) })
    const socket = await write(port, get('file').repeat(14) + get('file', 'Connection: close'))
    const answer = await readAll(socket)
    const head = answer.subarray(0, answer.indexOf('\r\n\r\n') + 4)
    t.true(answer.subarray(head.length, head.length + data.length).equals(data))
    t.true(answer.subarray(-data.length).equals(data))
    t.is(answer.toString('latin1').match(/HTTP\/1\.1 200 OK\r\n/g)?.length, 15)
    t.is(ended.length, 15)
    t.true(ended.every(({ problem }) => problem === undefined))
    t.deepEqual(openBelow(root), [])
  })

  test(`${name}: a client that leaves, with requests waiting, leaves no file open`, async (t) => {
    const root = makeDirectory(t)
    fs.writeFileSync(path.join(root, 'big'), '')
    fs.truncateSync(path.join(root, 'big'), BIG)
    const { port, ended } = await serve(t, root, { send: way(64 * KIB) })
    const socket = await write(port, get('big').repeat(12))
    t.true(await until(() => openBelow(root).length === 12), 'all are being answered')
    socket.destroy()
    t.true(await until(() => ended.length === 12), `${ended.length} of 12 answers ended`)
    const outcomes = ended.map(({ status, problem }) => [status, problem?.message])
    t.deepEqual(outcomes, Array(12).fill([200, 'the client left']))
    t.deepEqual(openBelow(root), [])
  })

  test(`${name}: a growing file is sent up to its promised length`, async (t) => {
    const root = makeDirectory(t)
    const file = path.join(root, 'big')
    fs.writeFileSync(file, '')
    fs.truncateSync(file, BIG)
    const { port, ended } = await serve(t, root, { send: way(64 * KIB) })
    const socket = await write(port, get('big') + get('none', 'Connection: close'))
    await stuck(socket, root)
    fs.appendFileSync(file, 'more of it')
    const answer = await readAll(socket)
    const head = answer.indexOf('\r\n\r\n') + 4
    const next = answer.toString('latin1', head + BIG)
    t.regex(next, /^HTTP\/1\.1 404 Not Found\r\n/, 'the next answer begins where the promised length ends')
    t.is(ended[0].problem, undefined)
  })

  test(`${name}: a shrinking file is never delivered as if complete`, async (t) => {
    const root = makeDirectory(t)
    const file = path.join(root, 'big')
    fs.writeFileSync(file, '')
    fs.truncateSync(file, BIG)
    const { port, ended } = await serve(t, root, { send: way(64 * KIB) })
    const socket = await write(port, get('big') + get('none'))
    await stuck(socket, root)
    fs.truncateSync(file, KIB)
    const answer = await readAll(socket)
    t.true(answer.length < BIG)
    t.false(answer.includes('404 Not Found'), 'nothing follows the half')
    t.is(ended[0].problem?.message, 'the file became shorter while it was sent')
    t.deepEqual(openBelow(root), [])
  })
}

test('a read that fails midway closes the connection, and after receives the error', async (t) => {
  const root = makeDirectory(t)
  fs.writeFileSync(path.join(root, 'file'), pattern(100_000))
  const broken = new Error('the disk is gone')
  const send = async (/** @type {any} */ { response }) => {
    response.write('the beginning')
    await delay(20)
    throw broken
  }
  const { port, ended } = await serve(t, root, { send })
  const { status, body } = await sendRequest(port, get('file'))
  t.is(status, 200)
  t.is(body.toString(), 'the beginning')
  t.deepEqual(ended, [{ status: 200, problem: broken }])
  t.deepEqual(openBelow(root), [])
})

test('anything but a regular file is answered 404, and blocks nothing', async (t) => {
  const root = makeDirectory(t)
  execFileSync('mkfifo', [path.join(root, 'fifo')])
  fs.mkdirSync(path.join(root, 'odd', 'index.html'), { recursive: true })
  const socket = net.createServer().listen(path.join(root, 'socket'))
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  const { port } = await serve(t, root)
  for (const name of ['fifo', 'odd', 'socket', 'x'.repeat(300)]) {
    const { status, body } = await sendRequest(port, get(name, 'Connection: close'))
    t.deepEqual([status, body.toString()], [404, 'Not Found\n'], name)
  }
  t.deepEqual(openBelow(root), [])
})

test('before may set headers, or cancel the response', async (t) => {
  const root = makeDirectory(t)
  fs.writeFileSync(path.join(root, 'page.html'), 'hello')
  const server = http.createServer((request, response) => {
    deliver(root, request, response)
      .before(() => {
        response.setHeader('content-type', 'text/x-mine').setHeader('Cache-Control', 'no-cache')
      })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const { port } = /** @type {net.AddressInfo} */ (server.address())
  const { head, body } = await sendRequest(port, get('page.html', 'Connection: close'))
  t.regex(head, /^content-type: text\/x-mine\r$/m)
  t.regex(head, /^Cache-Control: no-cache\r$/m)
  t.is(head.match(/^content-type:/gim)?.length, 1)
  t.is(body.toString(), 'hello')
})

/**
 * Runs a server in a process of its own, which asks itself.
 * @param {string} source
 * @param {string} root
 * @param {string} [limit] of open files
 */
async function child (source, root, limit = '256') {
  const text = `
    const fs = require('node:fs'), http = require('node:http'), net = require('node:net')
    const path = require('node:path')
    const { deliver } = require(${JSON.stringify(DELIVER)})
    const root = ${JSON.stringify(root)}
    const openBelow = ${openBelow}
    ${source}`
  const command = `ulimit -n ${limit} && exec "$0" -e "$1"`
  const shell = spawn('sh', ['-c', command, process.execPath, text], { stdio: ['ignore', 'pipe', 'pipe'] })
  let [stdout, stderr] = ['', '']
  shell.stdout.on('data', (more) => { stdout += more })
  shell.stderr.on('data', (more) => { stderr += more })
  const [code] = await once(shell, 'close')
  return { code, stdout, stderr }
}

test('an error that a callback throws reaches the program, and the file is closed', async (t) => {
  const root = makeDirectory(t)
  fs.writeFileSync(path.join(root, 'file'), 'hello')
  const { stdout, stderr } = await child(`
    process.on('uncaughtException', (error) => {
      setTimeout(() => {
        console.log(error.message, openBelow(root).length)
        process.exit()
      }, 50)
    })
    http.createServer((request, response) => {
      deliver(root, request, response).before(() => { throw new Error('my mistake') })
    }).listen(0, function () {
      http.get({ port: this.address().port, path: '/file' }).on('error', () => {})
    })`, root)
  t.is(stderr, '')
  t.is(stdout, 'my mistake 0\n')
})

test('a server without free descriptors answers 503', async (t) => {
  const root = makeDirectory(t)
  fs.writeFileSync(path.join(root, 'file'), 'hello')
  const { stdout, stderr } = await child(`
    http.createServer((request, response) => deliver(root, request, response)).listen(0, function () {
      const request = 'GET /file HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n'
      const socket = net.connect(this.address().port, () => socket.write(request))
      const opened = []
      let answers = 0
      socket.setEncoding('latin1').on('data', (data) => {
        console.log(data.slice(0, 12))
        if (++answers === 3) process.exit()
        const closed = setInterval(() => {
          if (answers === 1 && openBelow(root).length > 0) return
          clearInterval(closed)
          if (answers === 1) try { for (;;) opened.push(fs.openSync(root + '/file')) } catch {}
          else opened.forEach((fd) => fs.closeSync(fd))
          socket.write(request)
        }, 5)
      })
    })`, root)
  t.is(stderr, '')
  t.is(stdout, 'HTTP/1.1 200\nHTTP/1.1 503\nHTTP/1.1 200\n')
})

const isNotRoot = process.getuid?.() !== 0
;(isNotRoot ? test : test.skip)('a file that may not be read is forbidden (skipped for root)', async (t) => {
  const root = makeDirectory(t)
  fs.writeFileSync(path.join(root, 'file'), 'hello', { mode: 0 })
  const { port } = await serve(t, root)
  t.is((await sendRequest(port, get('file', 'Connection: close'))).status, 403)
})
