'use strict'

// A logger: levels, several outputs, files reopened for rotation. A small HTTP server logs with it its spans, and its errors
// with their chains, while its log is rotated under load, and while one of its outputs fails. After the loggers of
// the early years, as in "Simple Logging in tweeter.js" (Jim Schubert, 2012), which gives each level a stream; that article
// has no figures, so what is measured here are the questions that it leaves open: what a line costs, and what a chain.
//
//     node examples/06-logger.js              the story in ten seconds
//     node examples/06-logger.js --json       the claims, measured once (--quick: roughly)
//     node examples/06-logger.js --answers    what is logged and what goes over the wire, traced only if this process is
//
// This file is all of it: the logger, the server (`serve FOLDER BACKEND`), what is measured (`write WAY FOLDER`), the story.

const { fork } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')
const trace = require('longstack')
const { obey, start, load, end, digits, table, register, cleanEnvironment } = require('./common/measure')

// ── The logger ──

const LEVELS = ['debug', 'info', 'warn', 'error']
const LOOK_MS = 1_000 // a file that was renamed is noticed after that without a signal as well; what is gathered is written
const MOST = 1 << 20 // characters that a stream may have to wait for its reader

/** What is not told in full cannot forge a line: a text stays on its line, and further lines of a stack are indented. */
const oneLine = (text) => text.replace(/\p{Cc}/gu, (char) => JSON.stringify(char).slice(1, -1).replace('"', '\\"'))
const indented = (text) => text.split('\n').map((line) => `    ${oneLine(line)}\n`).join('')

/** Lines as people read them. @param {{ time: Date, level: string, text: string, error?: Error }} entry */
function plain ({ time, level, text, error }) {
  return `${time.toISOString()} ${level.padEnd(5)} ${oneLine(text)}\n${error === undefined ? '' : indented(trace.stack(error))}`
}

/** Lines as programs read them. @type {typeof plain} */
function json ({ error, ...entry }) {
  return `${JSON.stringify({ ...entry, ...(error && { error: String(error), chain: trace.chain(error).map(hopLine) }) })}\n`
}

/** A hop in short: what was called, and where. */
function hopLine ({ label, frames: [frame] }) {
  return frame === undefined ? label : `${label} at ${path.basename(frame.fileName ?? '')}:${frame.lineNumber}`
}

/** An output: says once what fails, and counts what is lost until it is opened anew. */
class Output {
  constructor (name, { level = 'info', format = plain } = {}) {
    Object.assign(this, { name, format, from: LEVELS.indexOf(level), failure: undefined, lost: 0, onFailure: () => {} })
  }

  write (line) {
    if (this.failure === undefined) this.take(line)
    else this.lost++
  }

  fail (error, lines) {
    this.lost += lines
    if (this.failure !== undefined) return
    this.failure = error
    this.onFailure()
  }

  flush () {}
  reopen () {}
}

/**
 * A file. Lines are written at once, or gathered up to so many characters; what is gathered goes out at exit. A disk that
 * becomes full tears the line that it takes half of.
 */
class FileOutput extends Output {
  constructor (file, { gather = 0, look = LOOK_MS, ...options } = {}) {
    super(file, options)
    Object.assign(this, { gather, look, waiting: [], size: 0, looked: Date.now(), fd: undefined })
    this.reopen()
  }

  take (line) {
    this.waiting.push(line)
    this.size += line.length
    if (this.size > this.gather) this.flush()
  }

  flush () {
    const lines = this.waiting
    if (lines.length === 0 || this.failure !== undefined) return
    this.waiting = []
    this.size = 0
    if (Date.now() - this.looked > this.look && this.renamed()) this.open()
    try {
      const bytes = Buffer.from(lines.join(''))
      for (let written = 0; written < bytes.length;) written += fs.writeSync(this.fd, bytes, written)
    } catch (error) {
      this.fail(error, lines.length)
    }
  }

  renamed () {
    this.looked = Date.now()
    try {
      const [now, then] = [fs.statSync(this.name), fs.fstatSync(this.fd)]
      return now.ino !== then.ino || now.dev !== then.dev
    } catch {
      return true
    }
  }

  /** The old file stays in use where the new one cannot be opened. */
  open () {
    try {
      const fd = fs.openSync(this.name, 'a', 0o600)
      if (this.fd !== undefined) fs.closeSync(this.fd)
      this.fd = fd
      return true
    } catch (error) {
      if (this.fd === undefined) this.fail(error, 0)
      return false
    }
  }

  reopen () {
    this.flush()
    if (this.open()) this.failure = undefined
  }
}

/** Any stream. Its reader may be slow, or gone. */
class StreamOutput extends Output {
  constructor (name, stream, options) {
    super(name, options)
    this.stream = stream.on('error', (error) => this.fail(error, 1))
  }

  take (line) {
    if (this.stream.writableLength > MOST) this.lost++
    else this.stream.write(line)
  }
}

/** @param {Output[]} outputs @param {() => Date} [clock] */
function createLogger (outputs, clock = () => new Date()) {
  const failed = (output) => output.failure !== undefined
  let news = [] // failures to be told; not while a line is on its way to other outputs
  let busy = false

  function log (level, text, error) {
    const entry = { time: clock(), level, text, error }
    const lines = new Map() // a format is asked once
    busy = true
    for (const output of outputs) {
      if (LEVELS.indexOf(level) < output.from) continue
      if (!lines.has(output.format)) lines.set(output.format, output.format(entry))
      output.write(lines.get(output.format))
    }
    busy = false
    tell()
  }

  function tell () {
    const told = news
    news = []
    for (const { name, failure } of told) {
      const text = `log output ${name} failed with ${failure.code}: its lines are lost until it is reopened`
      if (outputs.every(failed)) process.stderr.write(`${text}\n`)
      else log('warn', text)
    }
  }

  for (const output of outputs) {
    output.onFailure = () => {
      news.push(output)
      if (!busy) tell()
    }
  }

  const logger = {
    flush: () => outputs.forEach((output) => output.flush()),
    reopen () {
      const broken = outputs.filter(failed)
      for (const output of outputs) output.reopen()
      for (const output of broken.filter((one) => !failed(one))) {
        const { name, lost } = output
        output.lost = 0
        log('warn', `log output ${name} is tried again: ${lost} lines were lost`)
      }
    }
  }
  for (const level of LEVELS) logger[level] = (text, error) => log(level, text, error)
  // Made here and not when something waits: then it would be part of a request, which seemed to wait for it.
  setInterval(logger.flush, LOOK_MS).unref()
  for (const output of outputs) if (failed(output)) output.onFailure()
  process.on('exit', logger.flush)
  return logger
}

// ── A server that uses it ──

const ms = (value) => `${value.toFixed(1)} ms`

/** A span on one line; its times are decimal strings of nanoseconds. */
function spanLine ({ name, kind, status, startTimeUnixNano, endTimeUnixNano, attributes }) {
  const of = (part) => ms(attributes[`longstack.${part}_ms`])
  const outcome = attributes['http.response.status_code'] ?? attributes['longstack.end'] ?? (status.code === 'ERROR' ? 'failed' : 'done')
  const waits = Object.keys(attributes['longstack.wait_ms']).join(', ')
  return `${kind} ${name} ${outcome} in ${ms(Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6)}: ` +
    `run ${of('run')}, waited ${of('waited')}${waits && ` for ${waits}`}, delayed ${of('delayed')}`
}

/** @param {ReturnType<typeof createLogger>} logger @param {number} backend a port where nobody listens */
function createServer (logger, backend) {
  let count = 0
  return http.createServer(async function answer (request, response) {
    response.sendDate = false
    if (request.url === '/user') {
      try {
        response.end(await fs.promises.readFile('/nowhere/user.json'))
      } catch (error) {
        logger.error('no user', error)
        response.writeHead(500).end('no user\n')
      }
    } else if (request.url === '/order') {
      response.writeHead(202).end('it will be sent\n')
      setTimeout(function sendMail () { net.connect(backend, '127.0.0.1') }, 5) // nobody listens to its errors
    } else {
      logger.info(`request ${++count}: ${decodeURIComponent(request.url)}`)
      await delay(2)
      response.end('hello\n')
    }
  })
}

/** The child of the story: logs into a folder. */
function serve (folder, backend) {
  const logger = createLogger([
    new FileOutput(path.join(folder, 'all.log'), { gather: 4096 }),
    new FileOutput(path.join(folder, 'errors.jsonl'), { level: 'error', format: json }),
    new FileOutput('/dev/full', { level: 'info' }), // a disk that is always full
    new StreamOutput('stdout', process.stdout, { level: 'warn' })
  ])
  const server = createServer(logger, Number(backend))
  trace.on('span', (record) => logger.info(spanLine(record)))
  trace.onError((error) => {
    logger.error('escaped', error)
    return true // handled: the server goes on
  })
  process.on('SIGUSR2', logger.reopen)
  process.once('SIGTERM', () => {
    server.close()
    server.closeAllConnections()
    process.disconnect()
  })
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
}

// ── The story ──

const ROTATIONS = 6
const temporary = () => fs.mkdtempSync(path.join(os.tmpdir(), 'logger-'))

/** A port where nobody listens. */
async function closedPort () {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function until (done) {
  while (!done()) await delay(10)
}

async function get (port, url) {
  const [response] = await once(http.get({ port, host: '127.0.0.1', path: url, agent: false }), 'response')
  response.resume()
  await once(response, 'end')
}

/** Renames the log again and again, half of the time without a word to the server. */
async function rotate (child, file) {
  for (let i = 1; i <= ROTATIONS; i++) {
    await delay(i % 2 === 0 ? 100 : 300)
    fs.renameSync(file, `${file}.${i}`)
    if (i % 2 === 0) child.kill('SIGUSR2')
    await until(() => fs.existsSync(file))
  }
}

/** All lines of a log and its rotated parts, oldest first. */
function linesOf (file) {
  const parts = [...Array.from({ length: ROTATIONS }, (_, i) => `${file}.${i + 1}`), file]
  return parts.filter((part) => fs.existsSync(part)).map((part) => fs.readFileSync(part, 'utf8')).join('').split('\n').slice(0, -1)
}

/** How many lines there are of those that were logged, and how many are not whole. */
function audit (lines) {
  const whole = /^\d{4}-\d\d-\d\dT[\d:.]{12}Z (debug|info |warn |error) \S|^ {4}/
  const numbers = lines.map((line) => Number(/ info {2}request (\d+): \/$/.exec(line)?.[1])).filter((number) => number > 0)
  return {
    requests: new Set(numbers).size,
    twice: numbers.length - new Set(numbers).size,
    spans: lines.filter((line) => / info {2}SERVER GET \/ 200 in /.test(line)).length,
    torn: lines.filter((line) => !whole.test(line)).length
  }
}

async function story (folder) {
  const file = path.join(folder, 'all.log')
  const child = fork(__filename, ['serve', folder, String(await closedPort())],
    { execArgv: ['-r', register], env: cleanEnvironment(), stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  let console_ = ''
  child.stdout.setEncoding('utf8').on('data', (text) => { console_ += text })
  const [port] = await once(child, 'message')
  for (const url of ['/', '/user', '/order']) await get(port, url)
  await until(() => linesOf(path.join(folder, 'errors.jsonl')).length === 2)
  child.kill('SIGUSR2') // writes what is gathered, too
  await until(() => / escaped\n/.test(console_) && console_.split('/dev/full failed').length === 3)
  console.log('A traced server logs to a file, errors to another as JSON, all to /dev/full, warnings and errors to stdout. Its file after three requests:\n')
  console.log(linesOf(file).join('\n'))
  console.log(`\nEach span is a line: where the time went. /user was told by the code that caught the error: "settled here" is the read that rejected its promise,
"settled" are the hops that led there. The connection of /order failed when the request was long answered, and nobody listened: the chain still leads
to it. The span of "connect" counts from net.connect() until the callback that hears of the failure is over; "earlier" counts from the request to the system,
a tick later, until that callback makes the error. errors.jsonl has the same as data:\n`)
  console.log(fs.readFileSync(path.join(folder, 'errors.jsonl'), 'utf8'))
  console.log('stdout, too, tells of /dev/full once, and once more after SIGUSR2, when it was tried again. No other output misses a line:\n')
  console.log(console_.split('\n').filter((line) => line.includes('/dev/full')).join('\n'))

  console.log(`\nNow under load, while all.log is renamed ${ROTATIONS} times, every second time with SIGUSR2:\n`)
  const progress = { done: false }
  const working = rotate(child, file).then(() => { progress.done = true })
  let asked = 1
  while (!progress.done) asked += (await load({ port, connections: 16, requests: 400 })).units
  await working
  child.kill('SIGTERM')
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`the server ended with ${code}`)
  const { requests, twice, spans, torn } = audit(linesOf(file))
  console.log(`${asked} requests: ${requests} lines and ${spans} spans in ${ROTATIONS + 1} files, ${asked - requests} lost, ${twice} twice, ${torn} torn.`)
  console.log('A file that was renamed is still written to, until the next one is open; what was gathered is written at exit.')
  await hooks(path.join(folder, 'hooks.log'))

  console.log('\nWhat a line costs, in µs of CPU:\n')
  const figures = await measureAll(STORY, folder)
  console.log(table(['', 'bare', 'traced'], Object.keys(ways).map((way) => [ways[way].name, digits(figures.off[way]), digits(figures.on[way])])))
  const [bare, traced] = [figures.off, figures.on].map(({ once, gathered, stream }) => `${digits(once / gathered)} × a gathered one and ${digits(once / stream)} × one through a stream`)
  console.log(`\nA line at once costs ${bare}; traced, ${traced}.\nIn so short a run a factor may come out at half or twice of what it is: --json measures longer.
Over its message an error's stack costs ${digits(figures.off.chain - figures.off.message)} µs bare, ${digits(figures.on.chain - figures.on.message)} µs with its chain.`)
}

/** Logging from inside hooks: what the logger does makes no events of its own. */
async function hooks (file) {
  const stream = fs.createWriteStream(file) // makes requests of fs, and ticks
  await once(stream, 'ready')
  const logger = createLogger([
    new StreamOutput('a stream', stream, { level: 'debug' }),
    new FileOutput('/dev/null', { level: 'debug' })
  ])
  trace.enable(['TCP', 'FS', 'TICK', 'STREAM'])
  const quiet = await events(() => {})
  const logged = await events((context) => logger.debug(`init ${context.type} ${context.asyncId}`))
  trace.disable()
  console.log('\nThe same conversation over TCP twice, with a hook that counts events, and with one that logs each of them through a stream:')
  console.log(`${quiet} events, and ${logged}: what a hook does makes none of its own.`)
}

/** How many resources does a conversation make? @param {(context: any) => void} init */
async function events (init) {
  let count = 0
  const remove = trace.hook({ init: (context) => { count++; init(context) } })
  const server = net.createServer((socket) => socket.end('hello')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  await once(net.connect(server.address().port, '127.0.0.1').resume(), 'close')
  await new Promise((resolve) => server.close(resolve))
  remove()
  return count
}

// ── What it answers ──

/** @param {number} port @param {string} url @returns {Promise<string>} the bytes of the answer */
async function raw (port, url) {
  const socket = net.connect(port, '127.0.0.1')
  socket.setEncoding('latin1').write(`GET ${url} HTTP/1.1\r\nHost: logger\r\nConnection: close\r\n\r\n`)
  let bytes = ''
  for await (const chunk of socket) bytes += chunk
  return bytes
}

async function answers (folder) {
  const clock = () => new Date(0)
  const brief = ({ time, level, text, error }) => plain({ time, level, text: error === undefined ? text : `${text}: ${error.message}` })
  const files = ['all', 'warnings', 'gathered'].map((name) => path.join(folder, name))
  const logger = createLogger([
    new FileOutput(files[0], { level: 'debug', format: brief, look: Infinity }), // only reopen() decides: the answers are those of any machine
    new FileOutput(files[1], { level: 'warn', format: brief }),
    new FileOutput(files[2], { format: brief, gather: 1e6 }),
    new FileOutput('/dev/full', { format: brief }),
    new StreamOutput('stdout', process.stdout, { format: brief, level: 'error' })
  ], clock)
  for (const level of LEVELS) logger[level](`a ${level}\nof "two" lines \u001b[31m`)
  const server = createServer(logger, 1).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  for (const url of ['/', '/user', '/%0aforged']) process.stdout.write(await raw(port, url), 'latin1')
  server.close()
  fs.renameSync(files[0], `${files[0]}.1`)
  logger.info('still in the old file')
  logger.reopen()
  logger.info('in the new file')
  logger.flush()
  for (const file of [`${files[0]}.1`, ...files]) console.log(`${path.basename(file)}:\n${fs.readFileSync(file, 'utf8')}`)
}

// ── What it costs ──

const FULL = { lines: 20_000, warm: 60_000, rounds: 2 }
const STORY = { lines: 4_000, warm: 12_000, rounds: 1 }
const QUICK = { lines: 1_000, warm: 1_000, rounds: 1 }
const ERRORS = 1 / 5 // of them, where they are errors
const AT_ONCE = 10 // lines in one run of the loop

const to = (file, options) => createLogger([new FileOutput(file, options)])

/** @type {Record<string, { name: string, part?: number, make: (file: string) => any, log: (logger: any, i: number) => void }>} */
const ways = {
  gathered: { name: 'into a file, 4 KiB gathered', make: (file) => to(file, { gather: 4096 }), log: (logger, i) => logger.info(`request ${i}: /`) },
  once: { name: 'into a file, at once', make: (file) => to(file), log: (logger, i) => logger.info(`request ${i}: /`) },
  stream: {
    name: 'into an fs.WriteStream',
    make: (file) => createLogger([new StreamOutput(file, fs.createWriteStream(file))]),
    log: (logger, i) => logger.info(`request ${i}: /`)
  },
  message: { name: 'an error, its message alone', part: ERRORS, make: (file) => to(file, { gather: 4096 }), log: (logger, i) => logger.error(fail(i, 5).message) },
  chain: { name: 'an error with its stack', part: ERRORS, make: (file) => to(file, { gather: 4096 }), log: (logger, i) => logger.error('failed', fail(i, 5)) }
}

/** An error some frames deep. */
const fail = (i, depth) => depth === 0 ? new Error(`failed ${i}`) : fail(i, depth - 1)

/** The measured child: some lines in each run of the loop, then whatever else wants to run. */
function write (way, folder) {
  const { make, log } = ways[way]
  const logger = make(path.join(folder, `${way}-${process.pid}.log`))
  /** @param {number} from @param {number} units @param {() => void} done */
  function some (from, units, done) {
    const until = Math.min(from + AT_ONCE, units)
    for (let i = from; i < until; i++) log(logger, i)
    if (until < units) return setImmediate(some, until, units, done)
    logger.flush()
    done()
  }
  obey({ run: (units) => new Promise((resolve) => some(0, units, resolve)) })
}

/** CPU µs a line, by way, tracing off and on; all children in turn, there and back. */
async function measureAll ({ lines, warm, rounds }, folder) {
  const all = Object.keys(ways).flatMap((way) => [['off', false], ['on', true]].map(([state, traced]) => ({ way, state, traced })))
  const figures = { off: {}, on: {} }
  try {
    for (const one of all) {
      one.child = await start(__filename, ['write', one.way, folder], one)
      await one.child.run(warm * (ways[one.way].part ?? 1))
    }
    for (let round = 0; round < 2 * rounds; round++) {
      for (const { way, state, child } of round % 2 === 0 ? all : [...all].reverse()) {
        figures[state][way] = (figures[state][way] ?? 0) + await child.run(lines * (ways[way].part ?? 1)) / (2 * rounds)
      }
    }
    return figures
  } finally {
    for (const { child } of all) await child?.end()
  }
}

const ARTICLE = 'Simple Logging in tweeter.js (Jim Schubert, 2012)'

const claims = [
  {
    id: 'log-at-once-over-stream',
    article: ARTICLE,
    said: 'Log through a stream for each level. No figure; that a synchronous write for each line is dearer than a stream was common advice.',
    a: 'stream',
    b: 'once',
    means: 'CPU of a line that is written at once over one that goes through an fs.WriteStream',
    why: {
      'as said': 'A stream joins the lines of one run of the loop into one writev(), made by a thread of the pool; at once, each is a system call of its own.',
      'no difference': 'What the stream saves in system calls it spends on its buffers, requests and a thread of the pool.',
      'other way round': 'A write to a file is a copy into the page cache: making a request, handing it to a thread and hearing of its end costs more than the system call.'
    }
  },
  {
    id: 'log-at-once-over-gathered',
    article: ARTICLE,
    said: 'No figure: the question is whether to gather lines in the program, and lose them if it is killed, pays.',
    a: 'gathered',
    b: 'once',
    means: 'CPU of a line that is written at once over one of 4 KiB that are gathered',
    why: {
      'as said': 'A system call for each line against one for some eighty lines. Neither makes an asynchronous event of its own: what tracing sees is the ' +
      'immediate after every ten lines, which both pay for.'
    }
  },
  {
    id: 'log-chain-over-message',
    article: ARTICLE,
    said: 'No figure: errors are logged by their message; the question is what their stack, and traced their chain, costs.',
    a: 'message',
    b: 'chain',
    means: 'CPU of an error that is logged with its stack (traced: its chain) over one logged by its message',
    why: {
      'as said': 'An error whose stack nobody reads is never formatted; `.stack` makes text of every frame. Traced, it has to be found out whose error it is, and the hops are text as well.'
    }
  }
]

async function measured (quick, folder) {
  const { off, on } = await measureAll(quick ? QUICK : FULL, folder)
  return {
    claims: claims.map((claim) => ({
      ...claim,
      saidRatio: null,
      a: ways[claim.a].name,
      b: ways[claim.b].name,
      unit: 'CPU µs a line',
      off: { a: off[claim.a], b: off[claim.b] },
      on: { a: on[claim.a], b: on[claim.b] }
    }))
  }
}

/** Does something with a folder of its own. @param {(folder: string) => Promise<unknown>} work */
async function inFolder (work) {
  const folder = temporary()
  try {
    await work(folder)
  } finally {
    await end()
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

const [task, ...rest] = process.argv.slice(2)
if (task === 'serve') serve(...rest)
else if (task === 'write') write(...rest)
else if (task === '--answers') inFolder(answers)
else if (task === '--json') inFolder(async (folder) => console.log(JSON.stringify(await measured(rest.includes('--quick'), folder), null, 2)))
else inFolder(story)
