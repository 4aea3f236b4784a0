'use strict'

// Both engines produce the same chains: hops, labels and frames are equal to the column, regardless of the
// capturing engine.

const { isDeepStrictEqual } = require('node:util')
const test = require('ava')
const { loadBinding } = require('../../lib/stacks/binding')
const { program, root, split } = require('../helpers/run')
const { stories } = require('../helpers/stories')

const why = loadBinding().failure?.code
const both = why === undefined ? test.serial : () => {}

test('both engines are available', (t) => {
  if (why !== undefined) t.log(`nothing to compare: ${why}`)
  if (process.env.CI || process.env.NODES === 'all') t.is(why, undefined)
  t.is(typeof loadBinding().binding, why === undefined ? 'object' : 'undefined')
})

const js = { LONGSTACK_CAPTURE: 'js' }
const native = { LONGSTACK_CAPTURE: 'native' }

/**
 * A text without what differs from run to run: ages, ports, temporary folders; and without the word that only
 * the reader is known, for the errors here are read where they are made, which the JavaScript engine cannot
 * know.
 * @param {string} text
 */
function lasting (text) {
  return text.replace(/^on a connection opened by /, '').replace(/ · reader(: only where \.stack was read is known)?(?= ──)/g, '')
    .replace(/\s· [\d.]+ (ms|s|min|h) earlier/g, '')
    .replace(/(127\.0\.0\.1|\[::1\]|::1):\d{4,5}/g, 'HOST:PORT')
    .replace(/\/[^\s"]*?longstack-(\w+-)?\w+(?=[/)])/g, 'DIR')
}

/** How a hop was recorded that is the reader's. @param {string} origin @param {string} type */
function recorded (origin, type) {
  if (origin === 'idle') return 'registered'
  if (origin !== 'reader') return origin
  return type === 'MESSAGE' ? 'worker' : 'registered'
}

/**
 * What a story says. Which of Node's frames lie below the program's in the error itself is a matter of
 * timing: a microtask runs between two timers, or behind the last.
 * @param {import('../helpers/stories').Story} story
 */
function said ({ chain, ofError, text }) {
  const { head, hops } = split(text)
  const meant = (/** @type {any[]} */ hops) => hops.map(({ label, type, origin, repeats, functions }) =>
    ({ label: lasting(label), type, origin: recorded(origin, type), repeats, functions }))
  return {
    chain: meant(chain),
    ofError: meant(ofError),
    head: lasting(head.split('\n').filter((line) => !line.includes('(node:')).join('\n')),
    hops: hops.map(({ title, frames }) => lasting(`${title}\n${frames}`))
  }
}

/** @param {Record<string, import('../helpers/stories').Story>} stories */
function saidOf (stories) {
  return Object.fromEntries(Object.entries(stories).map(([name, story]) => [name, said(story)]))
}

for (const theme of ['beats', 'files', 'loops', 'others', 'promises', 'sockets', 'timers', 'web']) {
  both(`both engines agree on theme: ${theme}`, async (t) => {
    let [one, other] = [await stories(theme, js), await stories(theme, native)]
    // What ends a stream first is a matter of time.
    for (let again = 0; again < 2 && !isDeepStrictEqual(saidOf(one), saidOf(other)); again++) {
      [one, other] = [await stories(theme, js), await stories(theme, native)]
    }
    t.true(Object.keys(one).length > 2)
    t.deepEqual(Object.keys(other).sort(), Object.keys(one).sort())
    for (const [name, story] of Object.entries(one)) t.deepEqual(said(other[name]), said(story), name)
  })
}

const prelude = `
  'use strict'
  const trace = require(${JSON.stringify(root)})
  const told = {}
  const tell = (name) => {
    const error = new Error(name)
    told[name] = trace.chain().concat(trace.chain(error)).map(({ asyncId, triggerAsyncId, ageMs, origin, ...hop }) =>
      ({ ...hop, origin: !['reader', 'triggered'].includes(origin) ? origin : hop.type === 'MESSAGE' ? 'worker' : 'registered' }))
  }
  process.on('exit', () => console.log(JSON.stringify({ told, engine: trace.stats().engine })))
`

const programs = {
  'a server with middleware': `
    const http = require('node:http')
    const fs = require('node:fs')
    class App {
      #layers = []
      use (layer) { this.#layers.push(layer); return this }
      handle (req, res) {
        const next = (at) => (error) => error ? res.writeHead(500).end() : this.#layers[at]?.(req, res, next(at + 1))
        next(0)()
      }
    }
    class User {
      #name
      constructor (name) { this.#name = name; setImmediate(() => tell('constructor')) }
      get name () { process.nextTick(function fromGetter () { tell('getter') }); return this.#name }
      static async find (id) { await fs.promises.stat(__filename); return new User('user ' + id) }
    }
    const app = new App()
      .use(function logs (req, res, next) { res.on('finish', function finished () { tell('finish') }); next() })
      .use(async function session (req, res, next) { await new Promise((resolve) => setTimeout(resolve, 2)); tell('session'); next() })
      .use((req, res, next) => fs.readFile(__filename, (error) => { tell('file'); next(error) }))
      .use(async (req, res) => {
        const user = await User.find(1)
        JSON.parse('[1, 2]', function revive (key, value) { if (key === '0') queueMicrotask(() => tell('reviver')); return value })
        const sorted = [3, 1].sort(function compare (a, b) { setTimeout(function late () { tell('sort') }, 1); return a - b })
        tell('answer')
        res.end(user.name + sorted)
      })
    const server = http.createServer((req, res) => app.handle(req, res)).listen(0, '127.0.0.1', function get () {
      http.get({ port: server.address().port, host: '127.0.0.1', agent: false }, (res) => {
        res.resume().on('end', function ended () { tell('ended'); setTimeout(() => server.close(), 20) })
      })
    })`,

  'streams and generators': `
    const { Readable, Transform, pipeline } = require('node:stream')
    const zlib = require('node:zlib')
    async function * source () {
      await new Promise((resolve) => setImmediate(resolve))
      tell('source')
      yield 'text' // one, so that no two steps race
    }
    const upper = new Transform({
      transform (chunk, _, done) { setTimeout(function slow () { tell('transform'); done(null, String(chunk).toUpperCase()) }, 1) }
    })
    pipeline(Readable.from(source()), upper, zlib.createGzip(), zlib.createGunzip(), async function sink (chunks) {
      for await (const chunk of chunks) tell('chunk ' + chunk.length)
      tell('sink')
    }, function done () { tell('done') })`,

  'a worker': `
    const { Worker, isMainThread, parentPort } = require('node:worker_threads')
    function work () {
      parentPort.once('message', async function got () {
        await new Promise((resolve) => setTimeout(resolve, 1))
        tell('inside')
        parentPort.postMessage(told)
      })
    }
    function hire () {
      const worker = new Worker(__filename)
      worker.on('message', function answered (inside) { Object.assign(told, inside); tell('outside') })
      worker.postMessage('go')
    }
    if (isMainThread) setTimeout(hire, 1)
    else {
      process.removeAllListeners('exit')
      work()
    }`,

  'many forms of a function': `
    const vm = require('node:vm')
    const later = (name) => setTimeout(() => tell(name), 1)
    class Base { constructor () { later('super') } static { later('static block') } field = later('field') }
    class Derived extends Base { constructor () { super(); later('derived') } set it (value) { later('setter') } [Symbol.toPrimitive] () { later('toPrimitive'); return 1 } }
    const one = new Derived()
    one.it = +one
    new Proxy({}, { get: function trap () { later('trap') } }).any
    Reflect.construct(function Made () { later('construct') }, [])
    eval('(function evaled () { later("eval") })()')
    vm.runInThisContext('(function inVm (later) { later("vm") })', { filename: 'machine.js' })(later)
    new Function('later', 'later("new Function")')(later)
    'a'.replace(/a/, function replacer () { later('replace') })
    ;[1].forEach(function each () { later('forEach') })
    const { o } = { o: { method () { later('method') }, 'quoted name' () { later('quoted') }, get g () { later('object getter') } } }
    o.method(); o['quoted name'](); o.g
    ;(function * steps () { later('generator'); yield })().next()
    Array.from({ length: 3 }, function fill (_, i) { later('from ' + i) })
    function deep (n) { if (n > 0) deep(n - 1); else later('deep') }
    deep(40)
    for (let i = 0; i < 3000; i++) hot(i === 2999)
    function hot (last) { inner(last) }
    function inner (last) { if (last) later('optimized') }`
}

for (const [name, source] of Object.entries(programs)) {
  both(`both engines agree on program: ${name}`, async (t) => {
    const answers = []
    for (const env of [js, native]) {
      const { stdout, stderr, code } = await program(prelude + source, { env })
      t.is(stderr, '')
      t.is(code, 0)
      answers.push(JSON.parse(lasting(stdout)))
    }
    t.deepEqual(answers.map(({ engine }) => engine), ['js', 'native'])
    t.true(Object.keys(answers[0].told).length > 1)
    for (const hops of Object.values(answers[0].told)) t.true(hops.length > 0 && hops.every((hop) => hop.frames.length > 0 || /accepted|^GET \/|^a request that is over$/.test(hop.label)))
    t.deepEqual(answers[1].told, answers[0].told)
  })
}
