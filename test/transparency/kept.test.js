'use strict'

// longstack does not read values that Node and V8 cache on first access, so the program finds them as without
// longstack.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { livePrograms, longstack } = require('../helpers/live')
const { recordsOf } = require('../helpers/records')
const { program, root } = require('../helpers/run')

const { start } = livePrograms(test)

/** @param {string} name */
const pem = (name) => fs.readFileSync(path.join(root, 'test/fixtures/chains', `${name}.pem`), 'utf8')
const pair = { key: pem('key'), cert: pem('cert') }

/**
 * Runs a program bare and with longstack, with each of the options.
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {Array<Record<string, string>>} options
 * @returns {Promise<string>} what it printed bare
 */
async function same (t, source, options) {
  const bare = await program(source, { preload: false })
  t.is(bare.stderr, '')
  for (const env of options) t.is((await program(source, { env })).stdout, bare.stdout, JSON.stringify(env))
  return bare.stdout
}

/** @param {import('ava').ExecutionContext} t */
function spanFile (t) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-kept-'))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  return path.join(directory, 'spans.jsonl')
}

const addresses = ['remoteAddress', 'remotePort', 'remoteFamily', 'localAddress', 'localPort', 'localFamily']

test('the addresses of a socket are undefined once it is closed', async (t) => {
  const LONGSTACK_SPANS = spanFile(t)
  const stdout = await same(t, `
    const http = require('node:http'), https = require('node:https'), http2 = require('node:http2'), net = require('node:net')
    const host = '127.0.0.1', pair = ${JSON.stringify(pair)}, wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
    const listen = (server) => new Promise((resolve) => server.listen(0, host, () => resolve(server.address().port)))
    const show = (name, socket) => console.log(name, ...${JSON.stringify(addresses)}.map((key) => String(socket[key])))
    const after = (name, { req: { socket } }) => socket.on('close', () => setImmediate(() => show(name, socket)))
    const get = (module, port) => new Promise((resolve) => module.get({ port, host, agent: false, rejectUnauthorized: false }, (response) => response.resume().on('close', resolve)))
    ;(async () => {
      for (const [name, module] of [['http', http], ['https', https]]) {
        const server = module.createServer(pair, (req, res) => { after(name, res); res.end() })
        server.on('upgrade', (req, socket) => { socket.on('close', () => setImmediate(() => show(name + ' upgrade', socket))).end() })
        const port = await listen(server)
        await get(module, port)
        await new Promise((resolve) => module.get({ port, host, agent: false, rejectUnauthorized: false, headers: { connection: 'upgrade', upgrade: 'x' } }).on('error', resolve).on('close', resolve))
        await wait(30)
        server.close()
      }
      const server = http2.createServer((req, res) => res.end('x'))
      server.on('connection', (socket) => { socket.on('close', () => setImmediate(() => show('http2', socket))) })
      const session = http2.connect('http://' + host + ':' + await listen(server))
      await new Promise((resolve) => session.request().resume().on('close', resolve))
      session.close(); server.close()
      const accepting = net.createServer((socket) => socket.end())
      const client = net.connect(await listen(accepting), host).resume()
      client.on('close', () => setImmediate(() => { show('net', client); accepting.close() }))
    })()`, [{ LONGSTACK_SPANS }, { LONGSTACK_BLOCKED: '1000' }, {}])
  for (const name of ['http', 'http upgrade', 'https', 'https upgrade', 'http2', 'net']) {
    t.true(stdout.includes(`${name} undefined undefined`), name)
  }
  const served = recordsOf(fs.readFileSync(LONGSTACK_SPANS, 'utf8')).filter(({ kind }) => kind === 'SERVER')
  const peers = served.map(({ attributes }) => [attributes['network.peer.address'], typeof attributes['network.peer.port']])
  t.deepEqual(peers, Array(5).fill(['127.0.0.1', 'number']))
})

test('a stack is formatted when the program reads it, with the message and formatter of that time', async (t) => {
  const stdout = await same(t, `
    const http = require('node:http'), net = require('node:net')
    const trace = require(${JSON.stringify(root)})
    const first = (error) => { error.message = 'changed'; console.log(String(error.stack).split('\\n')[0]) }
    const formatted = (error) => {
      const before = Error.prepareStackTrace
      Error.prepareStackTrace = (of, sites) => 'formatted ' + of.message + ' ' + Array.isArray(sites)
      console.log(error.stack)
      Error.prepareStackTrace = before
    }
    const fail = (use) => trace.span('fails', async () => { await null; throw new TypeError('by a span') }).catch(use)
    const refuse = (use) => new Promise((resolve) => {
      const server = net.createServer((socket) => socket.destroy()).listen(0, '127.0.0.1', () => {
        http.get({ port: server.address().port, host: '127.0.0.1' }).on('error', (error) => { use(error); server.close(resolve) })
      })
    })
    ;(async () => {
      for (const use of [first, formatted]) {
        await fail(use)
        await refuse(use)
        const asked = new RangeError('asked')
        trace.stack(asked); trace.chain(asked); trace.stack(asked)
        use(asked)
        await Promise.reject(new Error('rejected')).catch((error) => { trace.stack(error); use(error) })
      }
    })()`, [{ LONGSTACK_SPANS: spanFile(t) }, {}, { LONGSTACK_ERRORS: 'off' }, { LONGSTACK_SPANS: spanFile(t), LONGSTACK_ERRORS: 'off' }])
  t.deepEqual(stdout.trimEnd().split('\n'), [
    'TypeError: changed', 'Error: changed', 'RangeError: changed', 'Error: changed',
    'formatted by a span true', 'formatted socket hang up true', 'formatted asked true', 'formatted rejected true'
  ])
})

/** Prints what is open; a stream that was opened does not block any more (O_NONBLOCK). */
const streams = `
  const flags = [1, 2].map((fd) => /^flags:\\s*(\\d+)/m.exec(require('node:fs').readFileSync('/proc/self/fdinfo/' + fd, 'latin1'))[1])
  const open = [process.getActiveResourcesInfo(), process._getActiveHandles().map(({ fd }) => fd), flags]`

test('process.stderr is opened by the program or not at all', async (t) => {
  if (process.platform !== 'linux') return t.log('there is no /proc')
  const file = spanFile(t)
  const options = [{ LONGSTACK_SPANS: file, LONGSTACK_PROPAGATE: 'on' }, { LONGSTACK_SPANS: file }, { LONGSTACK_BLOCKED: '1000' }, {}]
  const stdout = await same(t, `${streams}; require('node:fs').writeSync(1, JSON.stringify(open))`, options)
  const [resources, handles, flags] = JSON.parse(stdout)
  t.deepEqual([resources, handles], [[], []])
  const socket = path.join(path.dirname(file), 'socket')
  const asked = await start(`
    process.stdin.once('data', () => { ${streams}; console.log('open', JSON.stringify(open)); process.exit() })
    require('node:fs').writeSync(1, 'ready\\n')`, { env: { LONGSTACK_SOCKET: socket } })
  t.is((await longstack('why', socket)).code, 0)
  asked.say('tell')
  const [, handlesLater, [, stderrLater]] = await asked.told('open')
  t.deepEqual(handlesLater, [0])
  t.is(stderrLater, flags[1])
})

test('Node\'s lazy properties stay lazy', async (t) => {
  const options = [{ LONGSTACK_SPANS: spanFile(t) }, {}]
  const stdout = await same(t, `
    const http = require('node:http'), trace = require(${JSON.stringify(root)}), controller = new AbortController()
    const isLazy = (object, name) => typeof Object.getOwnPropertyDescriptor(object, name).get === 'function'
    const server = http.createServer(() => controller.abort()).listen(0, '127.0.0.1', () => {
      http.get({ port: server.address().port, host: '127.0.0.1', signal: controller.signal }).on('error', ({ name }) => {
        trace.doctor()
        console.log(name, isLazy(process, 'allowedNodeEnvironmentFlags'), isLazy(globalThis, 'DOMException'))
        server.close()
      })
    })`, options)
  t.regex(stdout, /^AbortError true /)
})

test('a replacement of a Node method has its name and number of parameters', async (t) => {
  const options = [{ LONGSTACK_SPANS: spanFile(t), LONGSTACK_PROPAGATE: 'on' }, { LONGSTACK_SPANS: spanFile(t) }, {}]
  await same(t, `
    const http = require('node:http'), net = require('node:net'), vm = require('node:vm'), trace = require(${JSON.stringify(root)})
    trace.onError(() => false)
    const server = http.createServer((req, res) => res.end()).listen(0, '127.0.0.1', () => {
      http.get({ port: server.address().port, host: '127.0.0.1', agent: false }, (response) => response.resume().on('close', () => {
        const methods = [process._fatalException, http.IncomingMessage.prototype._addHeaderLines, http.ClientRequest.prototype._storeHeader,
          net.Socket.prototype._unrefTimer, vm.createContext, Object.getPrototypeOf(vm.Script.prototype).runInContext]
        console.log(methods.map(({ name, length }) => name + '/' + length).join(' '))
        server.close()
      }))
    })`, options)
})

test('an exception pending while Node makes a resource reaches the program', async (t) => {
  const stdout = await same(t, `
    const { generateKeyPairSync } = require('node:crypto')
    const privateKeyEncoding = { type: 'pkcs8', format: 'pem', cipher: 'no such cipher', passphrase: 'secret' }
    try {
      generateKeyPairSync('rsa', {
        modulusLength: 512, publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding
      })
    } catch (error) {
      console.log(error.code)
    }`, [{}, { LONGSTACK_CAPTURE: 'js' }])
  t.is(stdout, 'ERR_CRYPTO_UNKNOWN_CIPHER\n')
})
