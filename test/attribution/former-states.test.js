'use strict'

// Errors caused by a state name the code that set the state: ended, destroyed, sent headers, aborted.

const test = require('ava')
const { program } = require('../helpers/run')
const { skip } = require('../helpers/skip')

const common = `
  const http = require('node:http')
  const net = require('node:net')
  const { PassThrough, pipeline, Readable } = require('node:stream')
  let port
  function tell ({ stack }) {
    console.log(stack)
    setTimeout(() => process.exit(), 10)
  }
  function later (...steps) {
    const [first, ...others] = steps
    if (first !== undefined) setTimeout(() => { first(); later(...others) }, 5)
  }
  function serve (listener) {
    const server = http.createServer(listener).listen(0, () => {
      port = server.address().port
      http.get({ port, path: '/page' }, (response) => response.resume()).on('error', () => {})
    })
  }
  function answerHttp2 (listener) {
    const http2 = require('node:http2')
    const server = http2.createServer(listener).listen(0, () => {
      http2.connect('http://127.0.0.1:' + server.address().port).request({ ':path': '/page' }).resume()
    })
  }
  function attempt (fn) {
    try { fn() } catch (error) { tell(error) }
  }
`

/**
 * A program; the line of its last part, and the function below it.
 * @type {Record<string, [source: string, line: RegExp | undefined]>}
 */
const cases = {
  'a header is set after the response has ended': [`
    serve((request, response) => {
      later(function first () { response.end('x') }, function second () { attempt(() => response.setHeader('a', 'b')) })
    })
  `, /── ended by response\.end · [\d.]+ m?s earlier ──\n {4}at first /],
  'headers are sent twice': [`
    serve((request, response) => {
      later(function first () { response.writeHead(200) }, function second () { attempt(() => response.writeHead(200)) })
    })
  `, /── headers sent by response\.writeHead · [\d.]+ m?s earlier ──\n {4}at first /],
  'a header is set after the first part was written': [`
    serve((request, response) => {
      later(function first () { response.write('x') }, function second () { attempt(() => response.setHeader('a', 'b')) })
    })
  `, /── headers sent by response\.\w+ · [\d.]+ m?s earlier ──\n {4}at first /],
  'two responses fail in one step': [`
    const responses = []
    serve(function listen (request, response) {
      responses.push(response)
      later(function first () { response.end() }, function second () {
        if (responses.length === 1) return serve(listen)
        const errors = responses.map((each) => {
          try { return each.setHeader('a', 'b') } catch (error) { return error }
        })
        tell({ stack: errors.map(({ stack }) => stack).join('\\n') })
      })
    })
  `, /(?: ── ended by response\.end [^]+){2}/],
  'the response of another request was ended': [`
    let waiting
    serve((request, response) => {
      if (waiting === undefined) {
        waiting = response
        later(function first () { response.end() }, () => serveAgain())
      } else {
        later(function other () { response.end() }, function second () { attempt(() => waiting.setHeader('a', 'b')) })
      }
    })
    function serveAgain () { http.get({ port, path: '/other' }, (response) => response.resume()) }
  `, /── ended by response\.end · [\d.]+ m?s earlier ──\n {4}at first /],
  'a method of the response was replaced by another library': [`
    serve((request, response) => {
      const { writeHead } = response
      response.writeHead = function replacement () { return writeHead.apply(this, arguments) }
      later(function first () { response.writeHead(200) }, function second () { attempt(() => response.writeHead(200)) })
    })
  `, /── headers sent by response\.writeHead · [\d.]+ m?s earlier ──\n {4}at [^\n]*replacement [^\n]*\n {4}at first /],
  'a request of HTTP/2 is answered twice': [`
    answerHttp2((request, response) => {
      later(function first () { response.writeHead(200) }, function second () { attempt(() => response.setHeader('a', 'b')) })
    })
  `, /── headers sent by response\.writeHead · [\d.]+ m?s earlier ──\n {4}at first /],
  'a stream of HTTP/2 responds twice': [`
    answerHttp2((request, { stream }) => {
      later(function first () { stream.respond() }, function second () { attempt(() => stream.respond()) })
    })
  `, /── headers sent by stream\.respond · [\d.]+ m?s earlier ──\n {4}at first /],
  'only the callback of a write gets the error': [`
    const stream = new PassThrough()
    stream.resume()
    later(function first () { stream.end() }, () => {}, function second () { stream.write('x', tell) })
  `, /── ended by stream\.end · [\d.]+ m?s earlier ──\n {4}at first /],
  'a stream is ended by the one that is piped into it': [`
    const stream = new PassThrough()
    stream.resume()
    later(function first () { Readable.from(['x']).pipe(stream) }, () => {}, () => {}, function second () {
      stream.write('x', tell)
    })
  `, /── ended by stream\.pipe · [\d.]+ m?s earlier ──\n {4}at first /],
  'a stream is written to after its end': [`
    const stream = new PassThrough()
    stream.on('error', tell)
    later(function first () { stream.end() }, function second () { stream.write('x') })
  `, /── ended by stream\.end · [\d.]+ m?s earlier ──\n {4}at first /],
  'a stream of a package is written to after its end': [`
    const fs = require('node:fs')
    const directory = __dirname + '/node_modules/readable-stream/lib'
    fs.mkdirSync(directory, { recursive: true })
    fs.writeFileSync(directory + '/_stream_writable.js', \`'use strict'
      module.exports = class extends require('node:events') {
        write () { if (this._writableState?.ending) this.emit('error', Object.assign(new Error(), { code: 'ERR_STREAM_WRITE_AFTER_END' })) }
        end () { this._writableState = { ending: true } }
      }\`)
    const Packaged = require(directory + '/_stream_writable.js')
    const stream = new Packaged()
    stream.on('error', tell)
    later(function first () { stream.end() }, function second () { stream.write('x') })
  `, /── ended by stream\.end · [\d.]+ m?s earlier ──\n {4}at first /],
  'a socket is written to after its end': [`
    const server = net.createServer({ allowHalfOpen: true }, (peer) => peer.resume()).listen(0, () => {
      const socket = net.connect({ port: server.address().port, allowHalfOpen: true })
      socket.on('error', tell).on('connect', () => {
        later(function first () { socket.end() }, function second () { socket.write('x') })
      })
    })
  `, /── ended by socket\.end · [\d.]+ m?s earlier ──\n {4}at first /],
  'a request is destroyed': [`
    const server = http.createServer(() => {}).listen(0, () => {
      const request = http.get({ port: server.address().port }).on('error', tell)
      setTimeout(function first () { request.destroy() }, 50)
    })
  `, /── destroyed by request\.destroy · [\d.]+ m?s earlier ──\n {4}at (?:Timeout\.)?first /],
  'the other side closes the connection': [`
    const server = http.createServer(({ socket }) => socket.destroy()).listen(0, () => {
      http.get({ port: server.address().port }).on('error', tell)
    })
  `, undefined],
  'a response is destroyed': [`
    serve((request, response) => {
      pipeline(new Readable({ read () {} }), response, tell)
      later(function first () { response.destroy() })
    })
  `, /── destroyed by response\.destroy · [\d.]+ m?s earlier ──\n {4}at first /],
  'a fetch is aborted': [`
    const server = http.createServer((request, response) => {
      if (request.url === '/page') return ask().catch(tell)
    }).listen(0, () => fetch('http://127.0.0.1:' + server.address().port + '/page').catch(() => {}))
    async function ask () {
      const controller = new AbortController()
      setTimeout(function first () { controller.abort() }, 50)
      await fetch('http://127.0.0.1:' + server.address().port, { signal: controller.signal })
    }
  `, /── aborted by controller\.abort · [\d.]+ m?s earlier ──\n {4}at (?:Timeout\.)?first /]
}

const isUnknown = process.env.ENGINE === 'js'
const REASON = 'the JavaScript engine does not know who made these errors'

for (const [title, [source, line]] of Object.entries(cases)) {
  test(`${title}: the earlier action is named`, async (t) => {
    if (isUnknown && title.includes('of a package')) return skip(t, REASON)
    const { stdout, stderr } = await program(common + source)
    t.regex(stdout, /^\w*(?:Error|Exception)/, stderr)
    if (line === undefined) return t.notRegex(stdout, /── (?:ended|destroyed|headers sent|aborted) by/)
    t.regex(stdout, line)
  })
}

test('an aborted fetch without frames names where it was awaited', async (t) => {
  const { stdout, stderr } = await program(common + cases['a fetch is aborted'][0])
  t.regex(stdout, /at (?:async )?ask /, stderr)
})

test('an abort by another callback names the waiting code and the request\'s maker', async (t) => {
  if (isUnknown) return skip(t, REASON)
  const { stdout, stderr } = await program(`${common}
    const { once, EventEmitter } = require('node:events')
    const { setTimeout: sleep } = require('node:timers/promises')
    const controller = new AbortController()
    const { signal } = controller
    async function waitLong () { await sleep(60_000, undefined, { signal }) }
    async function waitForEvent () { await once(new EventEmitter(), 'never', { signal }) }
    function callPartner () {
      const request = http.get({ port: server.address().port, signal })
      return new Promise((resolve) => request.on('error', resolve))
    }
    function connectOut () {
      const options = { host: 'nowhere.test', port: 1, lookup () {}, autoSelectFamily: false, signal }
      const socket = net.connect(options)
      return new Promise((resolve) => socket.on('error', resolve))
    }
    const http2 = require('node:http2')
    const streams = http2.createServer().on('stream', () => {}).listen(0)
    function callByHttp2 () {
      const session = http2.connect('http://127.0.0.1:' + streams.address().port).on('error', () => {})
      const stream = session.request({}, { signal })
      return new Promise((resolve) => stream.on('error', resolve))
    }
    function callSlowly () {
      const request = http.get({ port: server.address().port }).on('error', () => {})
      setTimeout(function reap () { request.destroy(failure = new Error('slow')) }, 20)
    }
    let failure
    const server = http.createServer(() => {}).listen(0, async () => {
      setTimeout(() => callSlowly(), 1)
      setTimeout(function first () {
        if (failure === undefined) setTimeout(first, 20)
        else controller.abort()
      }, 80)
      const errors = await Promise.all([waitLong().catch((error) => error), waitForEvent().catch((error) => error),
        callPartner(), connectOut(), callByHttp2()])
      console.log(JSON.stringify([...errors, failure].map(({ stack }) => stack)))
      process.exit()
    })
  `)
  t.not(stdout, '', stderr)
  const [sleeping, waiting, calling, out, streaming, slow] = JSON.parse(stdout)
  const line = (/** @type {string} */ label, /** @type {string} */ name) => new RegExp(`── awaited by ${label} · [\\d.]+ m?s earlier ──\n {4}at ${name} `)
  t.regex(sleeping, line('timers\\.promises\\.setTimeout', 'waitLong'), stderr)
  t.regex(waiting, line('events\\.once|EventEmitter\\.once|Function\\.once|\\S*once', 'waitForEvent'))
  t.regex(calling, line('http\\.get', 'callPartner'))
  t.regex(out, line('net\\.connect\\S*', 'connectOut'))
  t.regex(streaming, line('session\\.request', 'callByHttp2'))
  for (const stack of [sleeping, waiting, calling, out, streaming]) t.regex(stack, /── aborted by controller\.abort · [\d.]+ m?s earlier ──\n {4}at (?:Timeout\.)?first /)
  t.regex(slow, /── setTimeout\(20\) · [^]+at callSlowly /)
})

test('an abort while a response is read names its request', async (t) => {
  const { stdout, stderr } = await program(`${common}
    const { Writable } = require('node:stream')
    const pipes = require('node:stream/promises').pipeline
    const sink = () => new Writable({ write (chunk, encoding, done) { done() } })
    const upstream = http.createServer((request, response) => response.write('x')).listen(0, '127.0.0.1', () => {
      const url = 'http://127.0.0.1:' + upstream.address().port
      const get = () => new Promise((resolve) => http.get(url, resolve))
      async function pipeResponse (signal, arrived) {
        const response = await get()
        response.once('data', arrived)
        await pipes(response, new PassThrough(), sink(), { signal })
      }
      async function readBody (signal, arrived) {
        const response = await fetch(url, { signal })
        arrived()
        await response.text()
      }

      // As packages do: a stream around the request
      class Call extends Readable {
        constructor (signal, arrived) {
          super({ read () {} })
          this._request = http.get(url, (response) => response.on('data', arrived))
          signal.addEventListener('abort', () => this.destroy(new Error('given up')))
        }

        _destroy (error, done) {
          this._request.on('error', () => {}).destroy()
          done(error)
        }
      }
      async function readCall (signal, arrived) { for await (const chunk of new Call(signal, arrived)) chunk.at() }

      serve(async function handle (request, response) {
        const stacks = []
        for (const call of [pipeResponse, readBody, readCall]) {
          const controller = new AbortController()
          let isThere = false
          setTimeout(function giveUp () { isThere ? controller.abort() : setTimeout(giveUp, 5) }, 5)
          await call(controller.signal, () => { isThere = true }).catch((error) => stacks.push(error.stack))
        }
        console.log(JSON.stringify(stacks))
        process.exit()
      })
    })
  `)
  t.not(stdout, '', stderr)
  const [piped, body, called] = JSON.parse(stdout)
  const hop = (/** @type {string} */ label, /** @type {string} */ name) => {
    return new RegExp(`── awaited by ${label} · [^─]*──\\n[^─]*at (?:async )?${name} `)
  }
  t.regex(piped, /at pipeResponse /)
  t.regex(body, hop('fetch', 'readBody'))
  t.regex(called, hop('http\\.get', 'readCall'))
  for (const stack of [piped, body]) t.regex(stack, /── (?:aborted|destroyed) by controller\.abort · [^─]*──\n[^─]*at (?:Timeout\.)?giveUp /)
  t.regex(called, /given up\n[^]*── setTimeout\(5\) /)
})

/**
 * Calls that an abort fails: the stack of the error is read before anybody gets it.
 * @type {Record<string, string>}
 */
const abortable = {
  'pipeline of a file': 'there(pipes(fs.createReadStream("/dev/zero"), sink(), { signal }))',
  'pipeline of other streams': 'there(pipes(new Readable({ read () {} }), new PassThrough(), sink(), { signal }))',
  'pipeline of a response': 'there(pipes(await get(), new PassThrough(), sink(), { signal }))',
  'pipeline of the body of undici': 'there(pipes((await undici.request(url)).body, sink(), { signal }))',
  'pipeline of the body of a fetch': 'there(pipes(Readable.fromWeb((await fetch(url)).body), sink(), { signal }))',
  'the body of undici': 'there(await undici.request(url, { signal })).body.text()',
  'the body of node-fetch': 'there(await nodeFetch(url, { signal })).text()'
}

/** @param {string} calls defines callA, perhaps callB, which get a signal @param {string} [reason] */
const aborting = (calls, reason = '') => `${common}
  const fs = require('node:fs')
  const { Writable } = require('node:stream')
  const pipes = require('node:stream/promises').pipeline
  const undici = require(${JSON.stringify(require.resolve('undici'))})
  const sink = () => new Writable({ write (chunk, encoding, done) { setTimeout(done, 5) } })
  let url
  let missing = ${calls.split('there(').length - 1}
  // Called in the same step as what is aborted
  const there = (call) => { missing--; return call }
  const get = () => new Promise((resolve) => http.get(url, resolve))
  const upstream = http.createServer((request, response) => response.write('x')).listen(0, '127.0.0.1', async () => {
    const { default: nodeFetch } = await import(${JSON.stringify(require.resolve('node-fetch'))})
    url = 'http://127.0.0.1:' + upstream.address().port
    ${calls}
    const controller = new AbortController()
    const stacks = []
    const calls = []
    const failed = (error) => stacks.push(error.stack)
    const server = http.createServer(function handle (request, response) {
      const call = { '/a': callA, '/b': callB }[request.url]
      if (call !== undefined) return calls.push(call(controller.signal).catch(failed))
      setTimeout(async function giveUp () {
        if (missing > 0 || calls.length < 2) return setTimeout(giveUp, 20)
        controller.abort(${reason})
        await Promise.all(calls)
        console.log(JSON.stringify(stacks))
        process.exit()
      }, 20)
    }).listen(0, '127.0.0.1', () => {
      for (const path of ['/a', '/b', '/c']) http.get({ port: server.address().port, path }).on('error', () => {})
    })
  })`

const callB = 'async function callB () {}'

for (const [title, call] of Object.entries(abortable)) {
  test(`${title} is aborted: the call is named`, async (t) => {
    if (isUnknown && title.includes('node-fetch')) return skip(t, REASON)
    const source = `async function callA (signal) { await ${call} }`
    const { stdout, stderr } = await program(aborting(`${source}\n${callB}`))
    t.not(stdout, '', stderr)
    const [stack] = JSON.parse(stdout)
    t.regex(stack, /── [^]*at (?:async )?callA [^]*── GET \/a · /)
    t.notRegex(stack, /GET \/b/)
  })
}

test('a call is aborted with an error of the program: the call is named', async (t) => {
  const { stdout, stderr } = await program(aborting(`
    async function callA (signal) { await there(await undici.request(url, { signal })).body.text() }
    ${callB}`, 'new Error("too slow")'))
  t.not(stdout, '', stderr)
  const [stack] = JSON.parse(stdout)
  t.regex(stack, /too slow[^]*── awaited by [^]*at (?:async )?callA /)
})

/** None is named that may not be it. @type {Record<string, string>} */
const notKnown = {
  'two calls have one signal': `
    async function callA (signal) { await there(pipes(new Readable({ read () {} }), sink(), { signal })) }
    async function callB (signal) { await there(pipes(new Readable({ read () {} }), new PassThrough(), sink(), { signal })) }`,

  'one of two calls has a signal of the other\'s': `
    async function callA (signal) { await there(pipes(new Readable({ read () {} }), sink(), { signal })) }
    async function callB (signal) {
      await there(pipes(new Readable({ read () {} }), sink(), { signal: AbortSignal.any([signal]) }))
    }`,

  'the program destroys the streams of others': `
    const streams = []
    const read = (stream) => new Promise((resolve, reject) => stream.on('error', reject))
    async function callA (signal) {
      signal.addEventListener('abort', () => { for (const each of streams) each.destroy(signal.reason) })
      there()
    }
    async function callB () {
      streams.push(new Readable({ read () {} }))
      await there(read(streams[0]))
    }`
}

for (const [title, calls] of Object.entries(notKnown)) {
  for (const listeners of ['0', '1']) {
    test(`${title}: an abort never names one request for the other, listeners ${listeners}`, async (t) => {
      const { stdout, stderr } = await program(aborting(calls), { env: { LONGSTACK_LISTENERS: listeners } })
      t.not(stdout, '', stderr)
      const stacks = JSON.parse(stdout)
      t.true(stacks.length > 0)
      for (const stack of stacks) t.notRegex(stack, /callA|GET \/a/)
    })
  }
}

test('a signal used by an earlier call names the call that uses it now', async (t) => {
  const { stdout, stderr } = await program(aborting(`
    let done
    async function callA (signal) { await (done = pipes(Readable.from(['x']), sink(), { signal })) }
    async function callB (signal) {
      await done
      await there(pipes(new Readable({ read () {} }), sink(), { signal }))
    }`))
  t.not(stdout, '', stderr)
  const [stack] = JSON.parse(stdout)
  t.regex(stack, /── awaited by [^]*at (?:async )?callB /)
  t.notRegex(stack, /callA|GET \/a/)
})

test('no getter of the program is called, and nothing is added to its objects', async (t) => {
  const { stdout, stderr } = await program(`${common}
    const { ServerResponse } = http
    const { Writable } = require('node:stream')
    const seen = []
    const unseen = (object, names = ['req', 'finished', 'signal']) => Object.defineProperties(object, Object.fromEntries(names.map((name) => {
      return [name, { configurable: true, set () {}, get () { seen.push(name) } }]
    })))
    unseen(new Writable({ write () {} })).on('error', () => {}).destroy(new Error('x'))
    unseen(new Writable({ write () {} })).end()
    unseen(new AbortController()).abort()
    unseen(new ServerResponse({ method: 'GET' }), ['req']).destroy()
    serve((request, response) => {
      response.end()
      const before = JSON.stringify(Object.getOwnPropertyDescriptors(response), (key, value) => typeof value === 'object' && key === 'value' ? 0 : value)
      const names = Reflect.ownKeys(response).length
      attempt(() => response.setHeader('a', 'b'))
      seen.push(before === JSON.stringify(Object.getOwnPropertyDescriptors(response), (key, value) => typeof value === 'object' && key === 'value' ? 0 : value))
      seen.push(names === Reflect.ownKeys(response).length)
      Object.freeze(response)
      try { response.setHeader('a', 'b') } catch ({ message }) { seen.push(message) }
      console.log(JSON.stringify(seen))
    })
  `)
  t.regex(stdout, /\n {2}── ended by response\.end /, stderr)
  t.deepEqual(JSON.parse(stdout.trim().split('\n').pop()),
    [true, true, 'Cannot set headers after they are sent to the client'])
})

test('setting a header passes through no function of longstack', async (t) => {
  const { stdout } = await program(`${common}
    const { OutgoingMessage, ServerResponse } = http
    serve(() => {
      const wrapped = [OutgoingMessage, ServerResponse].flatMap(({ prototype }) => {
        return Object.keys(prototype).filter((name) => /header|head$/i.test(name) && String(prototype[name]).includes('constructible'))
      })
      console.log(wrapped.join())
      process.exit()
    })
  `)
  t.is(stdout.trim(), '_storeHeader')
})

test('observed methods look unchanged', async (t) => {
  const source = `
    const { Duplex, Readable, Writable } = require('node:stream')
    const { ClientRequest, OutgoingMessage, ServerResponse } = require('node:http')
    const seen = []
    const owners = { AbortController, ClientRequest, Duplex, OutgoingMessage, Readable, ServerResponse, Writable }
    for (const [owner, { prototype }] of Object.entries(owners)) {
      for (const [name, { value, ...attributes }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
        if (typeof value !== 'function') continue
        let made
        try { made = typeof Reflect.construct(Object, [], value) } catch {}
        seen.push([owner, name, attributes, value.name, value.length, Reflect.ownKeys(value).map(String).sort(), made,
          Object.hasOwn(value, 'prototype') && Reflect.ownKeys(value.prototype).map(String)])
      }
    }
    const { prototype } = ServerResponse
    const areOne = [Duplex.prototype.end === Writable.prototype.end, prototype.writeHead === prototype.writeHeader]
    console.log(JSON.stringify([seen, areOne]))
  `
  const [traced, bare] = await Promise.all([true, false].map((preload) => program(source, { preload })))
  t.deepEqual(JSON.parse(traced.stdout), JSON.parse(bare.stdout))
})
