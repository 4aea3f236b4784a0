'use strict'

// Raw TCP against net against http: the same constant answer, served on Node's bare TCP handle, on `net` and on `http`.
// What each layer costs in CPU and in async resources, and what tracing adds to each. Then the same with callbacks closed
// over (made anew for each connection and request) against callbacks hoisted (declared once, their state on the handle).
// After Trevor Norris, 2013: his programs for this are known from their description only; "NodeDay 2014" (slides, 2014)
// has the two that come nearest.
//
//     node examples/02-tcp-net-http.js              the story in a quarter of a minute
//     node examples/02-tcp-net-http.js --json       the claims and tables, measured once (--quick: roughly)
//     node examples/02-tcp-net-http.js --answers    what goes over the wire, traced only if this process is
//
// This file is all of it: the story (no arguments), and the children `serve LAYER CALLBACKS`, `count LAYER` and `why`.

const { fork } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')
const { obey, start, load, end, median, digits, table, register, cleanEnvironment } = require('./common/measure')

const LAYERS = ['raw', 'net', 'http']
const CALLBACKS = ['hoisted', 'closures']
const SERVER = 1 // what a TCP handle is to be, in Node's own constants
const BACKLOG = 511

const HEAD = { 'Content-Type': 'text/plain', 'Content-Length': 13 }
const BODY = 'Hello, world\n'
// What http makes of the two, but for the date.
const ANSWER = `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n${BODY}`
const ASKED = 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'

// `warm` is requests, `limit` ms of one round. Spans are compiled late: after some 10,000 requests.
const FULL = { connections: 32, warm: 30_000, limit: 300, rounds: 6 }
const STORY = { connections: 32, warm: 12_000, limit: 100, rounds: 4 }
const QUICK = { connections: 8, warm: 200, limit: 20, rounds: 2 }
const COUNTED = { connections: 40, requests: 2_000 }

/** A request ends with an empty line: how much of it has been seen after one byte more? @param {number} seen @param {number} byte */
function emptyLine (seen, byte) {
  if (byte === (seen % 2 === 0 ? 13 : 10)) return seen + 1
  return byte === 13 ? 1 : 0
}

let waiting = 0 // answers of net and http that are not written yet

/**
 * Node's TCP handle and its write request. process.binding() has both, warns under --pending-deprecation and is refused
 * under --permission; a server that listens and a socket that writes have them too.
 * @type {{ TCP: any, WriteWrap: any }}
 */
const node = { TCP: undefined, WriteWrap: undefined }

async function findHandles () {
  const server = net.createServer((socket) => {
    const handle = socket._handle
    node.TCP = handle.constructor
    handle.writeLatin1String = function (request, text) {
      node.WriteWrap = request?.constructor // Node 26 makes the request itself, and only for a write that has to wait
      delete handle.writeLatin1String
      return handle.writeLatin1String(request, text)
    }
    socket.resume().end('.', 'latin1')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  await once(net.connect(server.address().port, '127.0.0.1').resume(), 'close')
  await once(server.close(), 'close')
}

/** Opens a server without `net`. */
function openRaw (accept) {
  const server = new node.TCP(SERVER)
  const at = {}
  const wrong = server.bind('127.0.0.1', 0) || server.listen(BACKLOG) || server.getsockname(at)
  if (wrong !== 0) throw new Error(`a TCP handle does not listen: ${wrong}`)
  server.onconnection = accept
  return { port: at.port, server, close: () => server.close() }
}

/** Writes the answer to a handle; a write that has to wait calls `written` when it is done. */
function writeRaw (client, written) {
  const request = node.WriteWrap === undefined ? null : new node.WriteWrap()
  if (request !== null) request.oncomplete = written
  const given = client.writeLatin1String(request, ANSWER)
  if (request !== null || typeof given === 'number') return
  given.oncomplete = written
  if (given.writeStatus !== null) given.oncomplete(given.writeStatus, client) // it was done before this line
}

/** What has come, of a buffer that Node 26 does not cut where it is nearly full. @param {ArrayBuffer} bytes @param {number} length */
function arrived (bytes, length) {
  return new Uint8Array(bytes, 0, length)
}

// Hoisted: every function stands here once, what it needs to know is on the handle, the socket or the response.

function acceptRaw (status, client) {
  if (status !== 0) return
  client.seen = 0
  client.taken = 0
  client.ended = false
  client.onread = readRaw
  client.readStart()
}

function readRaw (bytes) {
  if (bytes === undefined) {
    this.ended = true
    return writtenRaw(0, this)
  }
  let { seen } = this
  const { bytesRead } = this
  for (const byte of arrived(bytes, bytesRead - this.taken)) {
    seen = emptyLine(seen, byte)
    if (seen === 4) {
      seen = 0
      writeRaw(this, writtenRaw)
    }
  }
  this.seen = seen
  this.taken = bytesRead
}

/** Closes a connection whose client has said all and been told all. */
function writtenRaw (status, client) {
  if (client.ended && client.writeQueueSize === 0) client.close()
}

function acceptNet (socket) {
  socket.seen = 0
  socket.on('data', readNet)
  socket.on('error', ignore)
}

function readNet (chunk) {
  let { seen } = this
  for (const byte of chunk) {
    seen = emptyLine(seen, byte)
    if (seen === 4) {
      seen = 0
      waiting++
      this.write(ANSWER, 'latin1', writtenNet)
    }
  }
  this.seen = seen
}

function writtenNet () {
  waiting--
}

function ignore () {} // a client that goes away destroys its socket, and that is all

function answerHttp (request, response) {
  waiting++
  response.sendDate = false
  response.writeHead(200, HEAD)
  response.on('finish', writtenHttp)
  response.end(BODY)
}

function writtenHttp () {
  waiting--
  if (!this.req.complete) this.req.resume()
}

const hoisted = {
  raw: () => openRaw(acceptRaw),
  net: () => open(net.createServer(acceptNet)),
  http: () => open(http.createServer(answerHttp))
}

// Closed over: the same, each function made where it is needed, for one connection or one request, around its variables.

const closures = {
  raw: () => openRaw(function (status, client) {
    if (status !== 0) return
    let seen = 0
    let taken = 0
    let ended = false
    const close = function () {
      if (ended && client.writeQueueSize === 0) client.close()
    }
    client.onread = function (bytes) {
      if (bytes === undefined) {
        ended = true
        return close()
      }
      const { bytesRead } = client
      for (const byte of arrived(bytes, bytesRead - taken)) {
        seen = emptyLine(seen, byte)
        if (seen === 4) {
          seen = 0
          writeRaw(client, function () { close() })
        }
      }
      taken = bytesRead
    }
    client.readStart()
  }),

  net: () => open(net.createServer(function (socket) {
    let seen = 0
    socket.on('data', function (chunk) {
      for (const byte of chunk) {
        seen = emptyLine(seen, byte)
        if (seen === 4) {
          seen = 0
          waiting++
          socket.write(ANSWER, 'latin1', function (error) {
            waiting--
            if (error) socket.destroy()
          })
        }
      }
    })
    socket.on('error', function () {})
  })),

  http: () => open(http.createServer(function (request, response) {
    waiting++
    response.sendDate = false
    response.writeHead(200, HEAD)
    response.on('finish', function () {
      waiting--
      if (!request.complete) request.resume()
    })
    response.end(BODY)
  }))
}

const makers = { hoisted, closures }

/** @param {net.Server} server */
async function open (server) {
  server.keepAliveTimeout = 5_000 // as the answer says
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { port: server.address().port, server, close: () => once(server.close(), 'close') }
}

/** @param {string} layer @param {string} callbacks */
async function serve (layer, callbacks) {
  if (layer === 'raw') await findHandles()
  return makers[callbacks][layer]()
}

// ── What goes over the wire ──

/**
 * Sends packets, and gives back all that comes until every request is answered and both sides have said so.
 * @param {number} port
 * @param {string[]} packets
 */
async function talk (port, packets) {
  const length = ANSWER.length * packets.join('').split('\r\n\r\n').length - ANSWER.length
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
  socket.setTimeout(20_000, () => socket.destroy(new Error('no answer')))
  await once(socket, 'connect')
  let got = ''
  socket.setEncoding('latin1').on('data', (text) => {
    got += text
    if (got.length >= length) socket.end()
  })
  const ended = once(socket, 'end')
  for (const packet of packets) {
    socket.write(packet)
    await new Promise(setImmediate)
  }
  await ended
  return got
}

/** One request, three one after another, three at once, one in single bytes. */
const conversations = [[ASKED], [ASKED, ASKED, ASKED], [ASKED + ASKED + ASKED], [...ASKED]]

async function answers () {
  for (const layer of LAYERS) {
    for (const callbacks of CALLBACKS) {
      const { port, close } = await serve(layer, callbacks)
      for (const packets of conversations) process.stdout.write(await talk(port, packets), 'latin1')
      await close()
      if (waiting !== 0) throw new Error(`${waiting} answers were never written`)
    }
  }
}

// ── What it costs ──

/** Everything that is measured: three layers, two styles, bare and traced; http with spans as well. @param {string} folder */
function subjects (folder) {
  const all = LAYERS.flatMap((layer) => CALLBACKS.flatMap((callbacks) => [false, true].map((traced) => ({ layer, callbacks, traced, spans: false }))))
  all.push({ layer: 'http', callbacks: 'hoisted', traced: true, spans: true })
  return all.map((one) => ({ ...one, env: one.spans ? { LONGSTACK_SPANS: path.join(folder, 'spans.jsonl') } : {} }))
}

/**
 * All servers live at the same time, and are loaded in turn, there and back, so that what the machine does meanwhile falls on all.
 * @param {{ connections: number, warm: number, limit: number, rounds: number }} how
 */
async function measure ({ connections, warm, limit, rounds }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tcp-net-http-'))
  const all = subjects(folder).map((subject) => ({ ...subject, child: undefined, rates: [], prices: [] }))
  try {
    for (const one of all) {
      one.child = await start(__filename, ['serve', one.layer, one.callbacks], one)
      await load({ port: one.child.port, connections, requests: warm })
    }
    for (let round = 0; round < rounds; round++) {
      for (const one of round % 2 === 0 ? all : all.toReversed()) {
        const before = await one.child.cpu()
        const { units, rate } = await load({ port: one.child.port, connections, limit })
        one.prices.push((await one.child.cpu() - before) / units)
        one.rates.push(rate)
      }
    }
    return all.map(({ layer, callbacks, traced, spans, rates, prices }) => ({ layer, callbacks, traced, spans, prices, rate: median(rates), cpu: median(prices) }))
  } finally {
    for (const { child } of all) await child?.end()
    await end()
    fs.rmSync(folder, { recursive: true })
  }
}

/** The figures of one subject. */
function pick (figures, layer, traced, callbacks = 'hoisted', spans = false) {
  return figures.find((one) => one.layer === layer && one.traced === traced && one.callbacks === callbacks && one.spans === spans)
}

/** Async resources that a layer makes, by type: for a connection, and for a request on one. */
async function count (layer, { connections, requests }) {
  const child = fork(__filename, ['count', layer], { execArgv: ['-r', register], env: cleanEnvironment(), stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const ask = async () => {
    await delay(100) // connections close
    child.send('count')
    return (await once(child, 'message'))[0].seen
  }
  try {
    const [{ port }] = await once(child, 'message')
    const sums = [await ask(), await ask()]
    for (const number of [connections, requests + connections]) {
      await load({ port, connections, requests: number })
      sums.push(await ask())
    }
    return perUnit(sums, connections, requests)
  } finally {
    child.kill()
    await end()
  }
}

/** Two loads that differ in requests only; the question itself, asked of an idle process, is taken off. */
function perUnit (sums, connections, requests) {
  const types = Object.keys(sums.at(-1))
  return types.map((type) => {
    const at = sums.map((sum) => sum[type] ?? 0)
    const [question, few, many] = [at[1] - at[0], at[2] - at[1], at[3] - at[2]]
    const request = (many - few) / requests
    return { type, connection: (few - question) / connections - request, request }
  }).filter(({ connection, request }) => connection > 0.05 || request > 0.05)
}

/** Counts in this process, and answers every message with the sums. */
async function counter (layer, callbacks = 'hoisted') {
  const trace = require('longstack')
  const seen = {}
  trace.hook({ init ({ type }) { seen[type] = (seen[type] ?? 0) + 1 } })
  const { port } = await serve(layer, callbacks)
  process.on('message', () => process.send({ seen }))
  process.send({ port })
}

async function countAll (how) {
  const counts = {}
  for (const layer of LAYERS) counts[layer] = await count(layer, how)
  return counts
}

/** @param {Array<{ connection: number, request: number }>} resources @param {'connection' | 'request'} of */
const sum = (resources, of) => resources.reduce((all, one) => all + one[of], 0)

const times = (ratio) => `${ratio.toFixed(2)} ×`
const number = (value) => Math.abs(value) < 0.05 ? '0' : value.toFixed(1).replace(/\.0$/, '')
const named = (traced, spans) => !traced ? 'bare' : spans ? 'traced, with spans' : 'traced'

/** What each layer costs, bare and traced. */
function layersTable (figures, counts) {
  const rows = figures.filter(({ callbacks }) => callbacks === 'hoisted').map(({ layer, traced, spans, rate, cpu }) => [
    `${layer}, ${named(traced, spans)}`,
    digits(rate),
    `${Math.min(100, rate * cpu / 1e4).toFixed(0)} %`,
    digits(cpu),
    times(cpu / pick(figures, layer, false).cpu),
    number(sum(counts[layer], 'request'))
  ])
  return { title: 'One request on each layer', heading: ['layer', 'requests/s', 'of a processor', 'CPU µs/request', 'against bare', 'resources/request'], rows }
}

function resourcesTable (counts) {
  const rows = LAYERS.flatMap((layer) => counts[layer].map(({ type, connection, request }) => [`${layer}, ${type}`, number(connection), number(request)]))
  return { title: 'Async resources that each layer makes, by type', heading: ['layer and type', 'a connection', 'a request'], rows }
}

function callbacksTable (figures) {
  const rows = LAYERS.flatMap((layer) => [false, true].map((traced) => {
    const [a, b] = CALLBACKS.map((callbacks) => pick(figures, layer, traced, callbacks).cpu)
    return [`${layer}, ${named(traced)}`, digits(a), digits(b), times(b / a)]
  }))
  return { title: 'Callbacks closed over against hoisted', heading: ['layer', 'hoisted, CPU µs/request', 'closures, CPU µs/request', 'closures ÷ hoisted'], rows }
}

// ── The claims ──

const KNOWN = 'raw TCP against net against http (Trevor Norris, 2013; text not found, known from its description)'
const NODEDAY = 'NodeDay 2014 (Trevor Norris, slides, 2014)'
const UNIT = 'CPU µs a request'

const CHEAP = 'A closure is one small object around code that is compiled once for all of them: some ten nanoseconds beside a request that costs hundreds of times as much.'
const TURNS = 'A server that waits for its client finds fewer requests ready at each turn of the loop (2.6 events on the handle, 4.1 on net, when they were ' +
  'counted on Node 24), so that the price of a turn falls on fewer.'
const stylesWhy = {
  'as said': CHEAP + ' Made for every request they still are some garbage more, and on a server that does nothing else that can be seen.',
  'no difference': CHEAP,
  'other way round': 'What the hoisted functions need is a property added to an object of Node\'s, which is read and written more slowly than a closure\'s variable.'
}

function claimsOf (figures) {
  const both = (a, b) => ({ off: sides(a, b, false), on: sides(a, b, true) })
  const sides = ([layerA, callbacksA], [layerB, callbacksB], traced) => ({
    a: pick(figures, layerA, traced, callbacksA).cpu,
    b: pick(figures, layerB, traced, callbacksB).cpu
  })
  return [
    {
      id: 'net-over-raw',
      article: KNOWN,
      said: 'net costs more than the TCP handle under it; no figure is known.',
      saidRatio: null,
      a: 'raw',
      b: 'net',
      unit: UNIT,
      means: 'what streams, events and the bookkeeping of sockets cost over the bare handle',
      why: {
        'no difference': 'About half of the CPU time of both, or more, is the kernel\'s, and that part is the same; what net adds in JavaScript is some microsecond. ' + TURNS,
        'other way round': `What net adds in JavaScript is some microsecond, less than a turn of the loop costs. ${TURNS}`,
        'as said': 'About half of the CPU time of both, or more, is the kernel\'s, and that part is the same. ' +
          'Over it, net pushes every chunk through a stream and an event, and every write through a stream, ' +
          'a deferred callback and the timers of the socket.'
      },
      ...both(['raw', 'hoisted'], ['net', 'hoisted'])
    },
    {
      id: 'http-over-net',
      article: KNOWN,
      said: 'http costs more than net; no figure is known.',
      saidRatio: null,
      a: 'net',
      b: 'http',
      unit: UNIT,
      means: 'what HTTP costs over a net server that only looks for the end of a request',
      why: {
        'as said': 'For each request http parses a head, makes a request and a response, both of them streams, builds a head and defers ' +
          'what comes after the answer; net with a constant answer does none of that.'
      },
      ...both(['net', 'hoisted'], ['http', 'hoisted'])
    },
    ...LAYERS.map((layer) => ({
      id: `closures-${layer}`,
      article: NODEDAY,
      said: layer === 'http'
        ? 'one real request handler went from 290 ms to 114 ms by hoisting its functions and keeping the request\'s state in one object.'
        : 'functions made for each connection and request cost more than hoisted ones; for a handle and for net no figure is known.',
      saidRatio: layer === 'http' ? 2.5 : null,
      a: 'hoisted',
      b: 'closures',
      unit: UNIT,
      means: `what functions made anew cost a server on ${layer === 'raw' ? 'the TCP handle' : layer}`,
      why: stylesWhy,
      ...both([layer, 'hoisted'], [layer, 'closures'])
    }))
  ]
}

async function json (quick) {
  const figures = await measure(quick ? QUICK : FULL)
  const counts = await countAll(COUNTED)
  console.log(JSON.stringify({ claims: claimsOf(figures), tables: [layersTable(figures, counts), resourcesTable(counts), callbacksTable(figures)] }))
}

// ── What longstack knows of each ──

/** Opens each server, traced, and tells why its connection exists; on http, while it answers. */
async function why () {
  const trace = require('longstack')
  for (const layer of LAYERS) {
    const { port, server, close } = await serve(layer, 'hoisted')
    let told = ''
    if (layer === 'http') server.prependListener('request', (request) => { told = `trace.why(request) says of the connection:\n${trace.why(request)}` })
    const socket = net.connect(port, '127.0.0.1')
    socket.write(ASKED)
    await once(socket, 'data')
    const accepted = trace.handles(['TCP']).find(({ side, local }) => side === 'server' && local === `127.0.0.1:${port}`)
    console.log(`${layer}, ${told || `trace.handles(['TCP']) has:\n${accepted}`}\n`)
    socket.end().resume()
    await once(socket, 'close')
    await close()
  }
}

/** @returns {Promise<string>} what the child `why` prints */
async function reports () {
  const child = fork(__filename, ['why'], { execArgv: ['-r', register], env: cleanEnvironment(), stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  let text = ''
  for await (const chunk of child.stdout.setEncoding('utf8')) text += chunk
  return text.trimEnd()
}

// ── The story ──

function costs (figures) {
  const cpu = (layer, traced, spans) => pick(figures, layer, traced, 'hoisted', spans).cpu
  const more = LAYERS.map((layer) => `${digits(cpu(layer, true) - cpu(layer, false))} µs on ${layer}`)
  return `Bare: net ${times(cpu('net', false) / cpu('raw', false))} the CPU of the handle, http ${times(cpu('http', false) / cpu('net', false))} that of net. ` +
    `Traced less bare: ${more.join(', ')}. With spans less traced: ${digits(cpu('http', true, true) - cpu('http', true))} µs.\n` +
    'In so short a run 15 % of a figure is noise, on a busy machine up to half. The kernel\'s part is much the same on all three; what differs is\n' +
    'JavaScript: streams and events on net; on http also a request and a response, whose heads (first line and headers) are parsed and built.'
}

function styles (figures) {
  const ratios = (layer) => pick(figures, layer, false, 'closures').prices.map((price, round) => price / pick(figures, layer, false).prices[round])
  const range = (layer) => `${Math.min(...ratios(layer)).toFixed(2)} to ${times(Math.max(...ratios(layer)))} on ${layer}`
  return `Hoisted functions are made once, closures anew for each connection and request.
Bare, closures ÷ hoisted is, by round, ${LAYERS.map(range).join(', ')}.
Where the rounds lie on both sides of 1, the difference is noise; elsewhere ${STORY.rounds} rounds still prove little: --json measures longer.`
}

async function story () {
  const show = ({ title, heading, rows }) => console.log(`\n${title}:\n\n${table(heading, rows)}\n`)
  console.log(`${ANSWER.length} bytes, always the same, are the answer of three servers: on Node's bare TCP handle (raw), on net and on http.`)
  console.log(`Each is a process of its own under ${STORY.connections} connections, bare and traced.`)
  const counts = await countAll(COUNTED)
  const figures = await measure(STORY)
  show(layersTable(figures, counts))
  console.log(costs(figures))
  console.log(`Where less than 100 % of a processor was used, the server was not the limit: compare CPU, not requests a second.
A server that waits for its client also pays for more turns of the loop, which makes the fast ones look a little dearer.`)
  show(resourcesTable(counts))
  console.log('The bare handle makes nothing for a request that the kernel takes at once: tracing keeps nothing there. What it does on raw, it does for')
  console.log('each read: it notes the time, for the answer to how long a connection has been idle.')
  show(callbacksTable(figures))
  console.log(styles(figures))
  console.log(`\nWhat longstack tells of a connection on each layer:\n\n${await reports()}\n`)
  console.log('The bare handle has as much of a story as the others: who listens, since when, bytes, how to close it. Only http knows requests.')
}

async function main ([first, ...rest]) {
  if (first === 'serve') return obey({ port: (await serve(...rest)).port })
  if (first === 'count') return counter(...rest)
  if (first === 'why') return why()
  if (first === '--answers') return answers()
  return first === '--json' ? json(rest.includes('--quick')) : story()
}

main(process.argv.slice(2))
