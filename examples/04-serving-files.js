'use strict'

// Serving files: how they are cut into chunks, strings against Buffers, and more connections. A static server whose answers
// are `deliver(root, request, response).before().after().error().otherwise()` (common/deliver.js) sends a file of
// 500 KiB in many ways, under load; longstack's spans tell where the time of a request went:
//
//     node examples/04-serving-files.js              the story
//     node examples/04-serving-files.js --answers    what the server sends to good and bad requests, and nothing else
//     node examples/04-serving-files.js --json       the articles' claims, measured; --quick: roughly
//
// The articles: "Node.js Can Really Scale", "Node File Read Performance" and "Node JS and Binary Data" (Andrew Cholakian, 2010), on
// node-paperboy (Felix Geisendörfer, 2010); on strings also "You Did What?!? Understanding Node Optimizations" (Trevor Norris, 2013).

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const stream = require('node:stream')
const { once } = require('node:events')
const { setTimeout: delay } = require('node:timers/promises')
const trace = require('longstack')
const { deliver, fresh, reused, piped } = require('./common/deliver')
const { obey, start, load, end, paired, digits, table } = require('./common/measure')

const KIB = 1024
const SIZE = 500 * KIB
const WHOLE = SIZE
const FILE = 'file.txt'
const BIG = 'big.bin'
const BIG_SIZE = 24 << 20 // more than the system takes for a client that does not read
const CONNECTIONS = 8
const CHANGED = new Date(Date.UTC(2010, 2, 31, 12)) // the files of the site, so that their tags are always the same

const REPORT = path.join(path.dirname(require.resolve('longstack/package.json')), 'lib', 'cli', 'main.js')

/**
 * As strings, which deliver() has no reason to do: read, decoded, and encoded again.
 * @param {BufferEncoding} encoding
 * @param {number} chunk bytes
 * @param {boolean} [boxed] put into a Buffer first
 */
function asStrings (encoding, chunk, boxed = false) {
  return async ({ handle, from, length, response, way }) => {
    const buffer = Buffer.allocUnsafeSlow(Math.min(chunk, length))
    for (let sent = 0; sent < length && !way.gone;) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(chunk, length - sent), from + sent)
      if (bytesRead === 0) throw new Error('the file became shorter while it was sent')
      sent += bytesRead
      const text = buffer.toString(encoding, 0, bytesRead)
      if (!(boxed ? response.write(Buffer.from(text, encoding)) : response.write(text, encoding))) await way.room()
    }
  }
}

/** `stream.pipeline`, which ends the response, and destroys it where the file fails. @param {number} chunk */
function pipelined (chunk) {
  return ({ handle, from, length, response }) => new Promise((resolve, reject) => {
    const file = handle.createReadStream({ highWaterMark: chunk, start: from, end: from + length - 1 })
    stream.pipeline(file, response, (error) => error === null || error === undefined || error.code === 'ERR_STREAM_PREMATURE_CLOSE' ? resolve() : reject(error))
  })
}

/** How the file is sent. What is no way of deliver()'s gets the request itself. */
const ways = {
  four: { name: 'chunks of 4 KiB', send: fresh(4 * KIB) },
  sixteen: { name: 'chunks of 16 KiB', send: fresh(16 * KIB) },
  medium: { name: 'chunks of 64 KiB', send: fresh(64 * KIB) },
  large: { name: 'chunks of 256 KiB', send: fresh(256 * KIB) },
  whole: { name: 'the whole file', send: fresh(WHOLE) },
  reused: { name: '64 KiB into one 64 KiB Buffer', send: reused(64 * KIB) },
  pipe: { name: 'stream.pipe, 64 KiB', send: piped(64 * KIB) },
  pipeline: { name: 'stream.pipeline, 64 KiB', send: pipelined(64 * KIB) },
  latin1: { name: 'latin1 strings of 64 KiB', send: asStrings('latin1', 64 * KIB) },
  oneLatin1: { name: 'one latin1 string', send: asStrings('latin1', WHOLE) },
  boxed: { name: 'such strings put into Buffers', send: asStrings('latin1', 64 * KIB, true) },
  utf8: { name: 'utf8 strings of 64 KiB', send: asStrings('utf8', 64 * KIB) },
  oneUtf8: { name: 'one utf8 string', send: asStrings('utf8', WHOLE) },
  sync: { name: 'readFileSync for each', answer: (root, response) => { response.end(fs.readFileSync(path.join(root, FILE))) } },
  kept: { name: 'a Buffer that is kept', answer: (root, response) => { response.end(kept ??= fs.readFileSync(path.join(root, FILE))) } }
}

/** @type {Buffer | undefined} */
let kept

/** Sends the file in the way that the path names; what follows the name only tells the spans apart. @param {string} root */
function createServer (root) {
  return http.createServer(function answerWithFile (request, response) {
    const [, name, ...rest] = request.url.split('/')
    const { send, answer } = ways[name]
    if (answer !== undefined) return answer(root, response.setHeader('Content-Length', SIZE))
    request.url = rest[0] === 'big' ? `/${BIG}` : `/${FILE}`
    deliver(root, request, response, { send })
  })
}

/** A measured server. @param {string} root */
function serve (root) {
  const server = createServer(root)
  server.keepAliveTimeout = 120_000
  server.listen({ port: 0, host: '127.0.0.1', backlog: 2048 }, () => obey({ port: server.address().port }))
}

/** Decodes 512 KiB so many times. @param {BufferEncoding} encoding */
function decode (encoding) {
  const buffer = Buffer.alloc(512 * KIB, 'a plain text. ')
  obey({
    async run (units) {
      for (let i = 0; i < units; i++) if (buffer.toString(encoding).length !== buffer.length) throw new Error('not all of it')
    }
  })
}

/** The files that are measured. @returns {string} the folder */
function makeRoot () {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'serving-files-'))
  fs.writeFileSync(path.join(root, FILE), Buffer.alloc(SIZE, 'A line of the file that is sent.\n'))
  fs.writeFileSync(path.join(root, BIG), '')
  fs.truncateSync(path.join(root, BIG), BIG_SIZE)
  return root
}

/** Runs with a folder of files, and takes it away. @param {(root: string) => Promise<void>} act */
async function withRoot (act) {
  const root = makeRoot()
  try {
    await act(root)
  } finally {
    await end()
    fs.rmSync(root, { recursive: true })
  }
}

/** So many files a process may have open: a connection and a file for each request. */
function most () {
  const [, limit = '1024'] = /^Max open files +(\d+)/m.exec(fs.existsSync('/proc/self/limits') ? fs.readFileSync('/proc/self/limits', 'latin1') : '') ?? []
  return Math.floor((Number(limit) - 100) / 2)
}

/**
 * Loads a server, once it is warm: CPU time and latencies of a request.
 * @param {Awaited<ReturnType<typeof start>>} server
 * @param {string} name of a way
 * @param {{ limit: number, connections?: number, mark?: string }} how ms; mark: what the spans shall be called besides
 */
async function measure (server, name, { limit, connections = CONNECTIONS, mark }) {
  await load({ port: server.port, paths: [`/${name}/warm`], connections, limit: limit / 3 })
  const before = await server.cpu()
  const figures = await load({ port: server.port, paths: [mark === undefined ? `/${name}` : `/${name}/${mark}`], connections, limit })
  return { ...figures, cpu: (await server.cpu() - before) / figures.units }
}

/** What `longstack report --json` knows, by route. @param {string} file @returns {Map<string, any>} */
function report (file) {
  const { routes } = JSON.parse(execFileSync(process.execPath, [REPORT, 'report', '--json', file], { encoding: 'utf8', maxBuffer: 64 << 20 }))
  return new Map(routes.map((route) => [route.name, route]))
}

const ms = (value) => value === undefined ? '' : digits(value)

/** Where the time of a route's requests went, on average. */
function split ({ split: { run, wait, delayed } }) {
  const longest = Object.entries(wait).sort(([, a], [, b]) => b - a).slice(0, 2)
  return [ms(run), longest.map(([name, value]) => `${name} ${ms(value)}`).join(', ') || '0', ms(delayed)]
}

const HEADING = ['MB/s', 'traced', '1st Qu.', 'median', '3rd Qu.', 'run', 'wait', 'delayed']

/**
 * Every row: throughput of a bare server and of one that makes spans, quartiles of the latter's spans and where their time went.
 * @param {string} root
 * @param {Array<{ title: string, heading: string, rows: Array<{ label: string, name: string, connections: number }> }>} parts
 * @param {number} limit ms, for a row and server
 */
async function tables (root, parts, limit) {
  const file = path.join(root, 'spans.jsonl')
  const bare = await start(__filename, ['serve', root])
  const traced = await start(__filename, ['serve', root], { traced: true, env: { LONGSTACK_SPANS: file } })
  const measured = []
  try {
    for (const { name, connections } of parts.flatMap(({ rows }) => rows)) {
      const how = { limit: Math.max(limit, connections * 1.5), connections } // each connection at least once
      const off = await measure(bare, name, how)
      const on = await measure(traced, name, { ...how, mark: `of-${connections}` })
      measured.push([off.throughput / 1e6, on.throughput / 1e6])
    }
  } finally {
    await bare.end()
    await traced.end()
  }
  const routes = report(file)
  return parts.map(({ title, heading, rows }) => ({
    title,
    heading: [heading, ...HEADING],
    rows: rows.map(({ label, name, connections }) => {
      const [off, on] = measured.shift()
      const route = routes.get(`GET /${name}/of-${connections}`)
      return [label, digits(off), digits(on), ...[route.summary.q1, route.summary.median, route.summary.q3].map(ms), ...split(route)]
    })
  }))
}

/** @param {string[]} names @param {number[]} concurrency */
function partsOf (names, concurrency) {
  const possible = concurrency.filter((connections) => connections <= most())
  const left = concurrency.length > possible.length ? `; more than ${most()} need a higher ulimit -n` : ''
  return [
    {
      title: `500 KiB, ${CONNECTIONS} connections`,
      heading: 'sent as',
      rows: names.map((name) => ({ label: ways[name].name, name, connections: CONNECTIONS }))
    },
    {
      title: `500 KiB in chunks of 64 KiB, more and more connections${left}`,
      heading: 'connections',
      rows: possible.map((connections) => ({ label: String(connections), name: 'medium', connections }))
    }
  ]
}

/** A client that asks, and reads nothing yet. @param {number} port */
async function askAndWait (port, url) {
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.on('error', () => {})
  socket.pause()
  socket.write(`GET ${url} HTTP/1.1\r\nHost: files\r\nConnection: close\r\n\r\n`)
  return socket
}

/** Traced: clients that are slow or leave, and a file that is cut off. Prints what is known of it. @param {string} root */
async function trouble (root) {
  const after = (request, response) => new Promise((resolve) => {
    deliver(root, request, response).after((status, problem) => resolve({ status, problem, story: problem?.stack }))
  })
  let outcome, present
  const server = http.createServer(function answerWithFile (request, response) {
    present = response
    outcome = after(request, response)
  })
  const spans = []
  trace.on('span', (span) => spans.push(span))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address()
  const reader = async () => {
    present = undefined
    const socket = await askAndWait(port, `/${BIG}`)
    for (let full = 0; full < 10; full = present?.writableNeedDrain ? full + 1 : 0) await delay(10) // the system takes no more
    await delay(300)
    return socket
  }
  const over = async (socket) => {
    await Promise.all([once(socket, 'close'), outcome])
    await delay(20)
    return { ...await outcome, span: spans.findLast(({ kind }) => kind === 'SERVER').attributes }
  }
  const openFiles = () => trace.handles(['FS']).length

  const slow = (await reader()).resume()
  const { span } = await over(slow)
  console.log(`A client asks for ${BIG_SIZE >> 20} MiB, and reads nothing for 300 ms, then all of it. Of that request the span says: run ${ms(span['longstack.run_ms'])} ms, ` +
    `waited ${ms(span['longstack.waited_ms'])} ms (${Object.entries(span['longstack.wait_ms']).map(([name, value]) => `${name} ${ms(value)}`).join(', ')}).`)

  const leaver = await reader()
  const open = openFiles()
  leaver.destroy()
  const left = await over(leaver)
  console.log(`A client goes away in the middle: deliver() calls the listener of after() with the problem "${left.problem.message}", the span ends as "${left.span['longstack.end']}".\n` +
    `While the client was there, files open: ${open}; now: ${openFiles()}.`)

  const patient = await reader()
  fs.truncateSync(path.join(root, BIG), KIB)
  patient.resume()
  const cut = await over(patient)
  console.log('A file becomes shorter while it is sent: the client is told by a closed connection, for the head had promised more. The program is told by what the listener\n' +
    `of after() gets: the status, ${cut.status}, which had been sent by then, and a problem. This is its stack:\n\n${cut.story}\n`)
  if (/settled/.test(cut.story)) console.log('"settled here" is how these hops are known: from where the promise that failed was rejected. "settled" below it: in the same way.')
  server.close()
}

/** @param {string} script mode @param {string[]} args */
const traced = (...args) => execFileSync(process.execPath, ['-r', require.resolve('longstack/register'), __filename, ...args], { encoding: 'utf8' })

/** The number that a cell shows. @param {string} cell */
const amount = (cell) => Number.parseFloat(cell) * (cell.endsWith(' k') ? 1e3 : 1)

/** What the rows of this run say. @param {Awaited<ReturnType<typeof tables>>} parts */
function whatTheyMean ([sent, more]) {
  const row = (label) => sent.rows.find((cells) => cells[0] === label)
  const [few, whole, chunks, pieces, one] = ['four', 'whole', 'medium', 'latin1', 'oneLatin1'].map((name) => row(ways[name].name))
  const delayed = more.rows.map((cells) => amount(cells[more.heading.indexOf('delayed')]))
  const grows = delayed.every((value, i) => i === 0 || value > delayed[i - 1])
  return [
    'every chunk costs a turn through the loop, the thread pool and the socket, and tracing sees each of them. In chunks of 4 KiB the file went\n' +
      `with ${few[1]} MB/s, whole with ${whole[1]}; traced with ${few[2]} and ${whole[2]}.`,
    `Strings are decoded and encoded again: Buffers of 64 KiB went with ${chunks[1]} MB/s, latin1 strings of 64 KiB with ${pieces[1]}, one string of 500 KiB with ${one[1]}.`,
    `Bare, ${more.rows.map(([connections, bare]) => `${connections} ${connections === '1' ? 'connection' : 'connections'} had ${bare} MB/s`).join(', ')}. ${grows
      ? 'What more of\nthem add is waiting for one another: "delayed" grows from row to row.'
      : 'More of\nthem wait for one another, which is "delayed". Where that does not grow they wait in the system: a request that is not read yet has no span.'}`
  ].join('\n')
}

async function story () {
  await withRoot(async (root) => {
    console.log('A static server on one processor, bare and traced with spans. MB/s of both. Of the traced one, ms of a request: its quartiles, and on average how long\n' +
      'its own code ran (run), it waited for a subsystem (wait), the loop ran other requests (delayed). Few requests, the first ones above\n' +
      'all, are far slower than the rest: they count in an average, which may then lie above the third quartile. Each row is measured once and briefly.\n')
    const parts = await tables(root, partsOf(['four', 'medium', 'whole', 'reused', 'pipe', 'latin1', 'oneLatin1', 'boxed', 'kept'], [1, 10, 100, 1000]), 220)
    for (const { title, heading, rows } of parts) console.log(`${title}\n\n${table(heading, rows)}\n`)
    console.log(`What it means: ${whatTheyMean(parts)}\n`)
    console.log('The thread pool shares the one processor: it pushes the loop aside, so its reads are mostly part of "run". And where a request is answered at once, its\n' +
      'queue is not in the spans: it waits in the system, unread.\n')
    console.log(traced('trouble', root).trimEnd())
  })
}

/** A site with all that may be asked of one. @param {string} folder */
function makeSite (folder) {
  const root = path.join(folder, 'site')
  const put = (name, content) => {
    fs.writeFileSync(path.join(folder, name), content)
    fs.utimesSync(path.join(folder, name), CHANGED, CHANGED)
  }
  for (const name of ['site/docs', 'site/empty', 'site-two']) fs.mkdirSync(path.join(folder, name), { recursive: true })
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

/** What is asked: the first line of a request, and more headers. */
const QUESTIONS = [
  ['GET /'], ['GET /docs/'], ['GET /docs'], ['GET /empty/'], ['GET /letters.txt'], ['HEAD /letters.txt'], ['GET /letters.txt/'], ['GET /letters.txt?a=/../b'],
  ['GET http://any.host/letters.txt'], ['GET /two%20words%20%C3%BC.txt'], ['GET /%252e%252e'], ['GET /nothing.css'], ['GET /none.txt'], ['GET /large.bin'], ['GET /link.txt'],
  ['POST /letters.txt'], ['DELETE /none.txt'], ['OPTIONS *'],
  ['GET /../secret.txt'], ['GET /%2e%2e/secret.txt'], ['GET /..%2fsecret.txt'], ['GET /docs/%2E%2E/%2e%2e/secret.txt'], ['GET /..%5csecret.txt'], ['GET /..\\secret.txt'],
  ['GET /%c0%ae%c0%ae/secret.txt'], ['GET /letters.txt%00.html'], ['GET /%'], ['GET //etc/passwd'],
  ['GET /way-out.txt'], ['GET /next-door/secret.txt'], ['GET /round'], ['GET /.env'],
  ['GET /letters.txt', 'Range: bytes=2-5'], ['GET /letters.txt', 'Range: bytes=24-'], ['GET /letters.txt', 'Range: bytes=-3'], ['GET /letters.txt', 'Range: bytes=-100'],
  ['GET /letters.txt', 'Range: bytes=20-1000'], ['GET /letters.txt', 'Range: bytes=26-'], ['GET /letters.txt', 'Range: bytes=-0'], ['GET /letters.txt', 'Range: bytes=5-2'],
  ['GET /letters.txt', 'Range: bytes=a-b'], ['GET /letters.txt', 'Range: bytes=-'], ['GET /letters.txt', 'Range: lines=1-2'], ['GET /letters.txt', 'Range: bytes=0-1,4-5'],
  ['GET /nothing.css', 'Range: bytes=0-'], ['HEAD /letters.txt', 'Range: bytes=2-5'], ['GET /large.bin', 'Range: bytes=65530-65545'],
  ['GET /letters.txt', `If-None-Match: "other", W/${TAG}`], ['GET /letters.txt', 'If-None-Match: *'],
  ['GET /letters.txt', 'If-None-Match: "other"', `If-Modified-Since: ${CHANGED.toUTCString()}`],
  ['GET /letters.txt', `If-Modified-Since: ${CHANGED.toUTCString()}`], ['GET /letters.txt', 'If-Modified-Since: Tue, 30 Mar 2010 12:00:00 GMT'],
  ['GET /letters.txt', 'If-Modified-Since: whenever'],
  ['GET /letters.txt', 'Range: bytes=2-5', `If-Range: ${TAG}`], ['GET /letters.txt', 'Range: bytes=2-5', 'If-Range: "other"'], ['GET /letters.txt', 'Range: bytes=2-5', `If-Range: W/${TAG}`],
  ['GET /letters.txt', 'Range: bytes=2-5', `If-Range: ${CHANGED.toUTCString()}`], ['GET /letters.txt', 'Range: bytes=2-5', `If-None-Match: ${TAG}`],
  ['GET /letters.txt?cancel']
]

/** Everything that comes until the connection is closed. @param {number} port @param {string[]} lines */
async function ask (port, [line, ...headers]) {
  const socket = net.connect(port, '127.0.0.1')
  const chunks = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.write(`${line} HTTP/1.1\r\n${['Host: files', 'Connection: close', ...headers].join('\r\n')}\r\n\r\n`)
  await once(socket, 'close')
  return Buffer.concat(chunks)
}

/** What the server sends, byte by byte, and which callbacks were called. */
async function answers () {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'serving-files-'))
  const root = makeSite(folder)
  let called = []
  const server = http.createServer((request, response) => {
    response.sendDate = false
    const note = (name, ...rest) => called.push([name, ...rest].join(' '))
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
    note('delivered') // comes first: what is attached by now is not missed
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  try {
    for (const question of QUESTIONS) {
      called = []
      const bytes = await ask(server.address().port, question)
      process.stdout.write(Buffer.concat([Buffer.from(`> ${question.join(' | ')}\n`), bytes, Buffer.from(`\n< ${called.map((one) => one.trim()).join(', ')}\n\n`)]))
    }
  } finally {
    server.close()
    fs.rmSync(folder, { recursive: true })
  }
}

const ARTICLES = {
  scale: 'Node.js Can Really Scale (Andrew Cholakian, 2010)',
  read: 'Node File Read Performance (Andrew Cholakian, 2010)',
  binary: 'Node JS and Binary Data (Andrew Cholakian, 2010)',
  norris: 'You Did What?!? Understanding Node Optimizations (Trevor Norris, 2013)'
}

const ENCODING = 'what the encoding of strings costs, utf8 over latin1'

/** The claims about serving: two ways of sending, or two numbers of connections. */
const claims = [
  {
    id: 'chunk-size',
    article: ARTICLES.read,
    said: 'Read and sent at once, a file of some 500 KiB took 44 % more time than in 125 chunks of 4 KiB.',
    saidRatio: 1.44,
    a: 'four',
    b: 'whole',
    means: 'what the whole file at once costs over chunks of 4 KiB',
    why: {
      'other way round': 'In 2010 a file came as a string, which was copied and encoded again when it was sent: large strings were dear. Now the bytes of a Buffer are neither ' +
        'moved nor changed, and what costs is every chunk\'s turn: a read in the thread pool, a promise, a write to the socket, 125 times. Tracing sees each of those steps, ' +
        'so it makes small chunks dearer still.'
    }
  },
  {
    id: 'string-over-buffer',
    article: ARTICLES.binary,
    said: 'Put into a Buffer before it was sent, a binary string was served with 160 instead of 100 MiB/s.',
    saidRatio: 1.6,
    a: 'boxed',
    b: 'latin1',
    means: 'what sending a latin1 string costs over sending a Buffer made of it',
    why: {
      'no difference': 'The string must be made bytes once, by the program or by the socket; both copy it once.',
      'other way round': 'The socket makes bytes of the string itself; the Buffer made of it first is one more allocation for the collector.',
      'as said': 'The socket copies the string before it writes.'
    }
  },
  {
    id: 'large-strings',
    article: ARTICLES.binary,
    said: 'Strings of more than 64 KiB are slow, as Ryan Dahl\'s slides had it.',
    saidRatio: null,
    a: 'latin1',
    b: 'oneLatin1',
    means: 'what one string of 500 KiB costs over strings of 64 KiB',
    why: {
      'other way round': 'V8 does not move a large string, it lies in a space of its own; the eight reads and writes of 64 KiB cost more.',
      'no difference': 'V8 does not move a large string, it lies in a space of its own; what fewer reads and writes save, the fresh memory for string and bytes takes.',
      'as said': 'V8 does not move a large string any more, but 500 KiB do not stay in the near caches from decoding to sending, and string and bytes are fresh memory for each request, ' +
        'which the system clears: kept from giving it back (MALLOC_MMAP_THRESHOLD_), the difference was smaller, and still there.'
    }
  },
  {
    id: 'fresh-over-reused',
    article: ARTICLES.binary,
    said: '64 KiB read into a Buffer of 64 KiB serve well (the article\'s table could not be read again).',
    saidRatio: null,
    a: 'reused',
    b: 'medium',
    means: 'what a fresh Buffer for each chunk of 64 KiB costs over one that is used again',
    why: {
      'as said': 'Every fresh Buffer is memory to be asked for, touched and collected. The price of the one Buffer is that each write must be over before the next read.',
      'no difference': 'Fresh memory costs about what it saves: reading the next chunk needs not wait until the last one is written.',
      'other way round': 'With fresh Buffers the next chunk is read while the last one is written.'
    }
  },
  {
    id: 'utf8-over-latin1',
    article: ARTICLES.norris,
    said: 'Buffer#toString of 512 KiB took 104.23 µs as utf8 and 36.74 µs as binary.',
    saidRatio: 2.84,
    a: 'latin1',
    b: 'utf8',
    means: ENCODING,
    why: {
      'as said': 'To decode utf8 is to look at each byte first, even where all are ASCII.',
      'no difference': 'Plain ASCII is recognised many bytes at a time, and then copied as latin1 is.',
      'other way round': 'Plain ASCII is recognised many bytes at a time and made a string of one byte a character at once.'
    }
  },
  {
    id: 'more-connections',
    article: ARTICLES.scale,
    said: 'A thousand requests took hardly longer when the connections were more, up to 500.',
    saidRatio: null,
    saidSame: true,
    a: 10,
    b: 500,
    means: 'what a request costs over 500 connections, against 10; the article says about 1',
    why: {
      'no difference': 'So it was said. A request waits for the others, nothing else grows.',
      'as said': 'More than hardly: with 500 files and sockets at work the memory that is used does not fit into the caches any more, and garbage lives longer.',
      'other way round': 'Nothing grows but the waiting, and more events are taken with each turn of the loop.'
    }
  }
]

/** The claims, measured once. @param {boolean} quick */
async function figures (quick) {
  const limit = quick ? 30 : 450
  /** @type {any} */
  const result = { claims: [], tables: [] }
  await withRoot(async (root) => {
    const servers = { off: await start(__filename, ['serve', root]), on: await start(__filename, ['serve', root], { traced: true }) }
    try {
      for (const claim of claims) result.claims.push(await figuresOf(claim, servers, limit, quick))
    } finally {
      await servers.off.end()
      await servers.on.end()
    }
    const names = quick ? ['whole'] : Object.keys(ways)
    result.tables = (await tables(root, partsOf(names, quick ? [10] : [1, 10, 100, 1000]), limit)).map(({ title, heading, rows }) => ({
      title: `${title}: MB/s bare and traced; ms of a traced request: quartiles, and averages of where they went, which a few slow requests raise`,
      heading,
      rows
    }))
  })
  return result
}

/** @param {typeof claims[number]} claim @param {{ off: any, on: any }} servers @param {number} limit ms @param {boolean} quick */
async function figuresOf (claim, servers, limit, quick) {
  const named = (a, b, unit) => ({ ...claim, a, b, unit })
  if (claim.means === ENCODING) {
    const once = async (which, traced) => {
      const child = await start(__filename, ['decode', claim[which]], { traced })
      await child.run(quick ? 50 : 500)
      const cpu = await child.run(quick ? 200 : 5_000)
      await child.end()
      return cpu
    }
    return { ...named(claim.a, claim.b, 'CPU µs to decode 512 KiB'), ...await paired(once, quick) }
  }
  const state = (traced) => traced ? 'on' : 'off'
  if (typeof claim.a === 'number') {
    const reach = Math.min(quick ? 100 : claim.b, most())
    const once = async (which, traced) => {
      const connections = which === 'a' ? claim.a : reach
      const { rate } = await measure(servers[state(traced)], 'medium', { connections, limit: Math.max(limit, connections * (quick ? 1 : 3)) })
      return 1000 / rate
    }
    return { ...named(`${claim.a} connections`, `${reach} connections`, 'ms a request'), ...await paired(once, quick) }
  }
  const once = async (which, traced) => (await measure(servers[state(traced)], claim[which], { limit })).cpu
  return { ...named(ways[claim.a].name, ways[claim.b].name, 'CPU µs a request'), ...await paired(once, quick) }
}

const [mode, ...args] = process.argv.slice(2)
if (mode === 'serve') serve(args[0])
else if (mode === 'decode') decode(args[0])
else if (mode === 'trouble') trouble(args[0])
else if (mode === '--answers') answers()
else if (mode === '--json') figures(args.includes('--quick')).then((result) => console.log(JSON.stringify(result, undefined, 2)))
else story()
