'use strict'

// A transform that only looks changes nothing: the same raw clients get the same bytes from the same servers
// with and without it, and the server sees the same events in the same order. No field of a socket reveals
// it.

const util = require('node:util')
const test = require('ava')
const trace = require('../..')
const { dial, serve, until } = require('../helpers/intercept')

/**
 * @typedef {object} Case
 * @property {string} name
 * @property {import('node:http').ServerOptions} [options]
 * @property {(server: any, say: (text: string) => void) => void} [set]
 * @property {(client: ReturnType<typeof dial>) => unknown} client
 */

const delay = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms))
const HEAD = 'Host: a\r\n'

/** @type {Case[]} */
const cases = [
  {
    name: 'kept alive, one after another',
    client: async (c) => {
      for (let i = 1; i < 4; i++) {
        c.write(`GET /${i} HTTP/1.1\r\n${HEAD}\r\n`)
        await c.until(i)
      }
      c.socket.end()
    }
  },
  { name: 'pipelined, with bodies', client: (c) => c.write(`POST /1 HTTP/1.1\r\n${HEAD}Content-Length: 2\r\n\r\nabGET /2 HTTP/1.1\r\n${HEAD}\r\nGET /3 HTTP/1.0\r\n\r\n`) },
  { name: 'HEAD and HTTP/1.0', client: (c) => c.write('HEAD / HTTP/1.0\r\n\r\n') },
  { name: 'chunks and trailers', client: (c) => c.write(`POST / HTTP/1.1\r\n${HEAD}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n`) },
  { name: 'no host', client: (c) => c.write('GET / HTTP/1.1\r\n\r\n') },
  { name: 'nonsense', client: (c) => c.write('nonsense\r\n\r\n') },
  { name: 'nonsense after a request', client: (c) => c.write(`GET / HTTP/1.1\r\n${HEAD}\r\n\u0000\u0001`) },
  {
    name: 'nonsense, with a listener',
    set: (s, say) => s.on('clientError', (/** @type {any} */ error, /** @type {any} */ socket) => {
      say(`${error.code} ${error.bytesParsed} ${error.rawPacket}`)
      socket.end('HTTP/1.1 418 No\r\n\r\n')
    }),
    client: (c) => c.write(`GET / HTTP/1.1\r\n${HEAD}x y: z\r\n\r\n`)
  },
  { name: 'a head too large', client: (c) => c.write(`GET / HTTP/1.1\r\n${HEAD}x: ${'y'.repeat(20_000)}\r\n\r\n`) },
  { name: 'two lengths', client: (c) => c.write(`POST / HTTP/1.1\r\n${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`) },
  { name: 'lenient', options: { insecureHTTPParser: true }, client: (c) => c.write(`GET / HTTP/1.1\r\n${HEAD}x: \u0001\r\nConnection: close\r\n\r\n`) },
  { name: 'too late with the head', options: { headersTimeout: 150, requestTimeout: 300, connectionsCheckingInterval: 30 }, client: (c) => c.write('GET / HTTP/1.1\r\nHost') },
  {
    name: 'too late with the body',
    options: { headersTimeout: 100, requestTimeout: 150, connectionsCheckingInterval: 30 },
    client: (c) => c.write(`POST / HTTP/1.1\r\n${HEAD}Content-Length: 5\r\n\r\nab`)
  },
  { name: 'idle for too long', options: { keepAliveTimeout: 50 }, client: (c) => c.write(`GET / HTTP/1.1\r\n${HEAD}\r\n`) },
  { name: 'a timeout of the server', set: (s) => { s.timeout = 80 }, client: (c) => c.write('GET /') },
  {
    name: 'too many requests',
    set: (s) => Object.assign(s, { maxRequestsPerSocket: 2, keepAliveTimeout: 50 }),
    client: (c) => c.write([1, 2, 3].map((i) => `GET /${i} HTTP/1.1\r\n${HEAD}\r\n`).join(''))
  },
  {
    name: '100-continue',
    client: async (c) => {
      c.write(`POST / HTTP/1.1\r\n${HEAD}Expect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n`)
      await c.until('100 Continue')
      c.write('ok')
    }
  },
  { name: 'an expectation that nobody meets', client: (c) => c.write(`GET / HTTP/1.1\r\n${HEAD}Expect: x\r\nConnection: close\r\n\r\n`) },
  { name: 'half-closed after the request', set: (s) => { s.httpAllowHalfOpen = true }, client: (c) => c.socket.end(`GET / HTTP/1.1\r\n${HEAD}\r\n`) },
  { name: 'half-closed in the middle of a head', client: (c) => c.socket.end(`GET / HTTP/1.1\r\n${HEAD}`) },
  { name: 'half-closed in the middle of a body', client: (c) => c.socket.end(`POST / HTTP/1.1\r\n${HEAD}Content-Length: 5\r\n\r\nab`) },
  { name: 'an upgrade that nobody takes', client: (c) => c.write(`GET / HTTP/1.1\r\n${HEAD}Connection: Upgrade, close\r\nUpgrade: x\r\n\r\n`) },
  { name: 'CONNECT that nobody takes', client: (c) => c.write(`CONNECT a:1 HTTP/1.1\r\n${HEAD}\r\n`) },
  {
    name: 'an upgrade with a head, read later',
    set: (s, say) => s.on('upgrade', (/** @type {any} */ req, /** @type {any} */ socket, /** @type {Buffer} */ head) => {
      say(`head ${head} flowing ${socket.readableFlowing} parser ${socket.parser} listeners ${socket.eventNames().map(String).sort()}`)
      socket.write('HTTP/1.1 101 OK\r\n\r\n')
      setTimeout(() => { socket.on('data', (/** @type {Buffer} */ data) => socket.end(`got ${data}`)) }, 20)
    }),
    client: async (c) => {
      c.write(`GET / HTTP/1.1\r\n${HEAD}Connection: Upgrade\r\nUpgrade: x\r\n\r\nfirst`)
      await c.until('101')
      c.write('second')
    }
  },
  {
    name: 'an upgrade with a body',
    set: (s, say) => s.on('upgrade', (/** @type {any} */ req, /** @type {any} */ socket, /** @type {Buffer} */ head) => {
      say(`${socket.constructor.name} ${head}`)
      socket.write('HTTP/1.1 101 OK\r\n\r\n')
      socket.on('data', (/** @type {Buffer} */ data) => { say(`data ${data}`); socket.end('bye') })
      req.on('data', (/** @type {Buffer} */ data) => say(`body ${data}`))
    }),
    client: async (c) => {
      c.write(`POST / HTTP/1.1\r\n${HEAD}Content-Length: 4\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nbo`)
      await c.until('101')
      c.write('dyrest')
    }
  },
  {
    name: 'pipelined past what the client reads',
    set: (s) => s.removeAllListeners('request').on('request', (/** @type {any} */ req, /** @type {any} */ res) => res.end(Buffer.alloc(200_000, req.url[1]))),
    client: async (c) => {
      c.socket.pause()
      for (let i = 0; i < 40; i++) c.write(`GET /${i % 10} HTTP/1.1\r\n${HEAD}${i === 39 ? 'Connection: close\r\n' : ''}\r\n`)
      await delay(100)
      c.socket.resume()
    }
  },
  {
    name: 'a body that is left unread',
    set: (s) => s.removeAllListeners('request').on('request', (/** @type {any} */ req, /** @type {any} */ res) => res.end(req.url)),
    client: async (c) => {
      c.write(`POST /1 HTTP/1.1\r\n${HEAD}Content-Length: 300000\r\n\r\n`)
      c.write(Buffer.alloc(300_000))
      await c.until('/1')
      c.write(`GET /2 HTTP/1.1\r\n${HEAD}Connection: close\r\n\r\n`)
    }
  }
]

/**
 * @param {import('ava').ExecutionContext} t
 * @param {Case} one
 * @param {boolean} intercepted
 */
async function runs (t, { options, set, client }, intercepted) {
  /** @type {string[]} */
  const events = []
  const say = (/** @type {string} */ text) => { events.push(text.replace(/127\.0\.0\.1:\d+/g, 'there')) }
  const server = await serve(t, undefined, options)
  server.prependListener('request', (req, res) => {
    say(`request ${req.method} ${req.url} ${req.rawHeaders.join()}`)
    req.on('error', (/** @type {any} */ error) => say(`request error ${error.code}`))
    res.on('finish', () => say(`finish ${req.url}`)).on('close', () => say(`close ${req.url}`))
  })
  let over = 0
  server.on('connection', (socket) => {
    socket.on('end', () => say('socket end'))
    socket.on('close', (/** @type {boolean} */ failed) => { over++; say(`socket close ${failed} in ${socket.bytesRead}`) })
  })
  server.on('dropRequest', (req) => say(`dropped ${req.url}`))
  set?.(server, say)
  let chunks = 0
  if (intercepted) trace.intercept(server, () => { chunks++ })
  const one = dial(server.port)
  await client(one)
  await one.closed
  await until(() => over === 1, 'the end of the connection')
  if (intercepted) t.true(chunks > 0)
  return { got: one.got().replace(/^Date: .*$/gm, ''), events }
}

for (const one of cases) {
  test(`traffic is the same with a transform: ${one.name}`, async (t) => {
    const bare = await runs(t, one, false)
    t.deepEqual(await runs(t, one, true), bare)
    t.true(bare.events.length > 0)
  })
}

/**
 * All that can be read of an object, some levels deep; ids and times left out by comparison.
 * @param {any} root
 */
function fieldsOf (root) {
  /** @type {Record<string, string>} */
  const out = {}
  const seen = new Map()
  const walk = (/** @type {any} */ object, /** @type {string} */ at, /** @type {number} */ deep) => {
    seen.set(object, at)
    for (const key of Reflect.ownKeys(object)) {
      const { value, get, enumerable, writable } = /** @type {PropertyDescriptor} */ (
        Object.getOwnPropertyDescriptor(object, key)
      )
      const place = `${at}.${String(key)}`
      const inside = typeof value === 'object' && value !== null
      const shown = typeof value === 'function' ? util.inspect(value) : inside ? seen.get(value) ?? Object.prototype.toString.call(value) : String(value)
      out[place] = `${enumerable} ${writable} ${get !== undefined} ${shown}`
      if (inside && !seen.has(value) && deep < 6 && !/^(server|_server|incoming|_httpMessage|_idlePrev|_idleNext)$/.test(String(key))) walk(value, place, deep + 1)
    }
  }
  walk(root, 'socket', 0)
  return out
}

test.serial('no socket field reveals a transform, neither in handlers of first and later requests nor afterwards', async (t) => {
  /** @param {boolean} intercepted */
  async function look (intercepted) {
    /** @type {Array<Record<string, string>>} */
    const seen = []
    const note = (/** @type {import('node:net').Socket} */ socket) => seen.push({
      ...fieldsOf(socket),
      keys: Object.keys(socket).join(),
      inspected: util.inspect(socket, { depth: 1 }).replace(/\d+/g, '#'),
      listeners: socket.eventNames().map((event) => `${String(event)}: ${socket.listeners(event).map(({ name }) => name)}`).join('; '),
      on: String(socket.on),
      read: `${socket.bytesRead} ${socket.readableDidRead} ${socket.readableFlowing} ${socket.readableLength}`,
      timeout: `${socket.timeout}`
    })
    /** @type {import('node:net').Socket} */
    let served
    const server = await serve(t, (req, res) => {
      note(served = req.socket)
      req.on('end', () => { note(req.socket); res.end('{}\n') }).resume()
    })
    if (intercepted) trace.intercept(server, (chunk) => Buffer.from(chunk))
    const client = dial(server.port)
    client.write(`GET / HTTP/1.1\r\n${HEAD}\r\n`)
    await client.until(1)
    client.write(`POST / HTTP/1.1\r\n${HEAD}Content-Length: 3\r\n\r\nabc`)
    await client.until(2)
    client.socket.destroy()
    await until(() => served.destroyed, 'the end')
    return seen
  }
  await look(false) // the first is different: much is made lazily
  const [bare, again] = [await look(false), await look(false)]
  const intercepted = await look(true)
  t.is(intercepted.length, 4)
  for (const [i, fields] of intercepted.entries()) {
    const same = (/** @type {string} */ name) => bare[i][name] === again[i][name]
    const names = [...new Set([...Object.keys(bare[i]), ...Object.keys(fields)])].filter(same)
    t.true(names.length > 90 && names.includes('socket._events.data') && names.includes('inspected'))
    t.deepEqual(names.filter((name) => fields[name] !== bare[i][name]), [], `look ${i + 1}`)
  }
})
