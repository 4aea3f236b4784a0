'use strict'

// Openers of descriptors from fs.open and fs.openSync, whose replacements are undetectable.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, program, register, root } = require('../helpers/run')

const run = process.platform === 'linux' && process.env.ENGINE !== 'js' ? test : test.skip

const PRELUDE = `
  const trace = require(${JSON.stringify(root)})
  const fs = require('node:fs'), path = require('node:path')
  const { once } = require('node:events')
  const file = path.join(__dirname, 'file')
  fs.writeFileSync(file, 'x')
  const openerOf = (fd) => {
    const why = trace.handles(['FS']).find(({ what, type }) => type === 'DESCRIPTOR' && what.includes('descriptor ' + fd + ' '))
    const [hop] = why?.opened ?? []
    return hop === undefined ? 'unknown' : hop.label + hop.frames.map(({ functionName }) => ' ' + functionName).join('')
  }
`

run('fs.openSync and fs.open have their openers, however they are called', async (t) => {
  const { stdout, stderr } = await program(`${PRELUDE}
    const { promisify } = require('node:util')
    const { pathToFileURL } = require('node:url')
    const { openSync } = fs
    const byCallback = (call) => new Promise((resolve, reject) => call((error, fd) => error ? reject(error) : resolve(fd)))
    process.chdir(__dirname)
    fs.symlinkSync(file, 'link')
    fs.writeFileSync('gone', '')
    const ways = {
      plainly () { return fs.openSync(file) },
      detached () { return openSync(file, 'r') },
      relatively () { return fs.openSync('./file') },
      throughLink () { return fs.openSync('link') },
      byUrl () { return fs.openSync(pathToFileURL(file)) },
      byBuffer () { return fs.openSync(Buffer.from(file)) },
      created () { return fs.openSync('new', 'w', 0o600) },
      deleted () { const fd = fs.openSync('gone'); fs.unlinkSync('gone'); return fd },
      withTwo () { return byCallback((done) => fs.open(file, done)) },
      withThree () { return byCallback((done) => fs.open(file, 'r', done)) },
      withFour () { return byCallback((done) => fs.open(file, 'r', 0o600, done)) },
      promisified () { return promisify(fs.open)(file) },
      async reading () { const stream = fs.createReadStream(file); return (await once(stream, 'open'))[0] },
      async writing () { const stream = fs.createWriteStream('written'); return (await once(stream, 'open'))[0] }
    }
    async function main () {
      for (const [name, open] of Object.entries(ways)) {
        const fd = await open()
        console.log(name, openerOf(fd))
        if (name === 'writing') process.exit()
      }
    }
    main()`)
  t.is(stderr, '')
  const labels = [
    ...Array(8).fill('fs.openSync'), 'fs.open', 'fs.open', 'fs.open', 'open', 'fs.createReadStream', 'fs.createWriteStream'
  ]
  const lines = stdout.trim().split('\n').map((line) => line.split(' '))
  t.deepEqual(lines.map(([, label]) => label), labels)
  for (const [name, , ...functions] of lines) t.true(functions.includes(name), stdout)
})

run('a closed descriptor loses its opener, whoever closes and reopens it', async (t) => {
  const { stdout, stderr } = await program(`
    ${PRELUDE}
    trace.disable()
    const bare = { ...fs }
    trace.enable()
    const { Worker, isMainThread, workerData } = require('node:worker_threads')
    function first () { return fs.openSync(file) }
    function second () { return fs.openSync(file) }
    async function main () {
      const fd = first()
      console.log('open:', openerOf(fd))
      fs.closeSync(fd)
      console.log('again, unseen:', bare.openSync(file) === fd, openerOf(fd))
      await new Promise((resolve) => fs.close(fd, resolve))
      console.log('again, seen:', second() === fd, openerOf(fd))
      bare.closeSync(fd)
      console.log('closed unseen, another file:', bare.openSync(__filename) === fd, openerOf(fd))
      bare.closeSync(fd)
      console.log('by another:', second() === fd, openerOf(fd))
      const worker = new Worker(__filename, { workerData: fd })
      const [same] = await once(worker, 'message')
      console.log('by a thread:', same, openerOf(fd))
      try { fs.openSync(path.join(__dirname, 'none')) } catch {}
      console.log('still:', openerOf(fd))
      trace.disable()
      console.log('disabled:', openerOf(fd), fs.openSync === bare.openSync)
      process.exit()
    }
    function work () {
      const { parentPort } = require('node:worker_threads')
      fs.closeSync(workerData)
      parentPort.postMessage(first() === workerData)
      setInterval(() => {}, 1e6)
    }
    if (isMainThread) main()
    else work()`)
  t.notRegex(stderr, /Error/) // Node 20 warns of a descriptor that a thread closes for another
  t.deepEqual(stdout.trim().split('\n'), [
    'open: fs.openSync first main undefined',
    'again, unseen: true unknown',
    'again, seen: true fs.openSync second main',
    'closed unseen, another file: true unknown',
    'by another: true fs.openSync second main',
    'by a thread: true unknown',
    'still: unknown',
    'disabled: unknown true'
  ])
})

run('a package may replace the functions too, before longstack and after it', async (t) => {
  const replace = `
    for (const name of ['open', 'openSync', 'close', 'closeSync']) {
      const original = require('node:fs')[name]
      require('node:fs')[name] = function (...args) { return original.apply(this, args) }
    }`
  const body = `
    async function main () {
      function render () { return fs.openSync(file) }
      const fd = render()
      const later = await new Promise((resolve) => (function load () { fs.open(file, (_, fd) => resolve(fd)) })())
      console.log(openerOf(fd), openerOf(later))
      fs.closeSync(fd)
      await new Promise((resolve) => fs.close(later, resolve))
    }
    main()`
  for (const source of [`${PRELUDE}trace.disable()${replace}trace.enable()\n${body}`, `${PRELUDE}${replace}${body}`]) {
    const { stdout, stderr } = await program(source)
    t.is(stderr, '')
    t.regex(stdout, /^fs\.openSync .*render.* fs\.open .*load/)
  }
})

run('named imports of a module have openers', async (t) => {
  const { stdout, stderr } = await program(`
    import { openSync } from 'node:fs'
    import trace from ${JSON.stringify(path.join(root, 'lib', 'esm.mjs'))}
    function render () { return openSync(new URL(import.meta.url)) }
    render()
    console.log(trace.handles(['FS'])[0].opened[0].frames[0].functionName)`, { type: 'mjs' })
  t.is(stderr, '')
  t.is(stdout, 'render\n')
})

/** Prints all that a program sees of the functions: errors, stacks, arguments, contexts, order. */
const observed = `
  'use strict'
  const fs = require('node:fs')
  const { AsyncLocalStorage, executionAsyncResource } = require('node:async_hooks')
  const { openSync } = fs
  const structured = (error) => {
    Error.prepareStackTrace = (_, sites) => sites.map((site) => [site.getFunctionName(), site.getTypeName(), site.getLineNumber()].join())
    const { stack } = error
    Error.prepareStackTrace = undefined
    return stack
  }
  const attempt = (name, call) => {
    try { console.log(name, call()) } catch (error) { console.log(name, error.stack, error.constructor === globalThis[error.name], Object.keys(error)) }
  }
  const missing = () => fs.openSync('/none/x')
  attempt('missing', missing)
  attempt('detached', () => openSync('/none/x'))
  attempt('no receiver', () => (0, fs.openSync)('/none/x'))
  for (const limit of [0, 1, 3, 100]) {
    Error.stackTraceLimit = limit
    attempt('limit', missing)
    try { missing() } catch (error) { console.log(structured(error)) }
  }
  Error.stackTraceLimit = 10
  for (const args of [[], [5], ['/x', 'q'], ['/x', 'r', 'x'], [{}]]) attempt('sync', () => fs.openSync(...args))
  for (const args of [[], ['/x'], ['/x', 'r'], ['/x', 'r', 0o600], ['/x', () => {}, 1, () => {}], ['/x', 'q', () => {}], ['/x', 'r', 'x', () => {}]]) {
    attempt('callback', () => fs.open(...args))
  }
  for (const args of [[], ['x'], [-1], [1.5], [999999]]) {
    attempt('close', () => fs.closeSync(...args))
    attempt('close later', () => fs.close(...args, 'no function'))
  }
  attempt('new', () => typeof new fs.openSync('/etc/hosts'))
  function overflow () { try { overflow() } catch {}; try { fs.closeSync(fs.openSync('/etc/hosts')) } catch (error) { if (!(error instanceof RangeError)) console.log(error) } }
  overflow()
  const storage = new AsyncLocalStorage()
  const order = []
  storage.run('mine', () => fs.open('/etc/hosts', 'r', function opened (...args) {
    console.log(args.length, args[0], typeof args[1], storage.getStore(), this, typeof executionAsyncResource().oncomplete, new Error('in').stack)
    process.nextTick(() => order.push('tick'))
    Promise.resolve().then(() => order.push('microtask'))
    fs.close(args[1], (...args) => {
      console.log(args, order, new Error('closed').stack)
      fs.open('/none', (...args) => {
        console.log(args, args[0].stack)
        process.once('uncaughtException', (error, origin) => {
          console.log(origin, error.stack)
          fs.open('/etc/hosts', () => { throw new TypeError('the end') })
        })
        fs.open('/etc/hosts', function fails () { throw new Error('uncaught') })
      })
    })
  }))
`

test('the program sees no difference', async (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  const file = path.join(directory, 'program.js')
  fs.writeFileSync(file, observed)
  const [bare, traced] = await Promise.all([
    node([file]), node(['-r', register, file], { env: { LONGSTACK_ERRORS: 'off' } })
  ])
  t.true(bare.stderr.includes('TypeError: the end'), bare.stderr) // it comes last
  const trampoline = /\n +at FSReqCallback\.callbackTrampoline .*/g // of Node, with any hook
  t.is(traced.stdout.replace(trampoline, ''), bare.stdout.replace(trampoline, ''))
  t.is(traced.stderr.replace(trampoline, ''), bare.stderr.replace(trampoline, ''))
  t.is(traced.code, bare.code)
})

run('stacks of opened files are counted like others: no count is negative', async (t) => {
  const { stdout } = await program(`${PRELUDE}
    const before = trace.stats()
    for (let i = 0; i < 3; i++) fs.closeSync(fs.openSync(__filename))
    const { captured, misses, hits } = trace.stats()
    console.log(captured - before.captured > 0, misses - before.misses > 0, before.hits >= 0, hits >= 0)`)
  t.is(stdout, 'true true true true\n')
})
