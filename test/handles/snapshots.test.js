'use strict'

// trace.snapshot, trace.diff and trace.assertNoLeaks: handles opened since then, in every mode and thread. A
// snapshot keeps nothing alive.

const test = require('ava')
const { program, root } = require('../helpers/run')

const PRELUDE = `
  const trace = require(${JSON.stringify(root)})
  const net = require('node:net'), http = require('node:http'), fs = require('node:fs')
  const { once } = require('node:events')
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const types = (list) => list.map(({ type, side }) => [type, side].filter(Boolean).join(' ')).sort().join()
`

const KINDS = `${PRELUDE}
  const { Worker, MessageChannel } = require('node:worker_threads')
  const { spawn } = require('node:child_process')
  async function main () {
    const early = net.createServer().listen(0, '127.0.0.1')
    const oldTimer = setInterval(() => {}, 1e6)
    await once(early, 'listening')
    const before = trace.snapshot()
    console.log('none:' + types(trace.diff(before)))
    trace.assertNoLeaks(before)
    const socket = net.connect(early.address().port, '127.0.0.1')
    await once(socket, 'connect')
    const timers = [setTimeout(() => {}, 1e6), setInterval(() => {}, 1e6)]
    const { port1 } = new MessageChannel()
    port1.on('message', () => {})
    const worker = new Worker('require("node:worker_threads").parentPort.on("message", () => {})', { eval: true })
    await once(worker, 'online')
    const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 1e6)'], { stdio: 'ignore' })
    const watcher = fs.watch(__dirname)
    const udp = require('node:dgram').createSocket('udp4').bind(0, '127.0.0.1')
    await once(udp, 'listening')
    const file = await fs.promises.open(__filename)
    await wait(20)
    console.log('open:' + types(trace.diff(before)))
    try { trace.assertNoLeaks(before); console.log('no error') } catch (error) {
      const own = error.stack.slice(error.stack.indexOf('    at ', error.stack.lastIndexOf('to close it')))
      console.log('error:' + [error.name, error.code, types(error.handles), Object.keys(error), own.includes('snapshots.js')])
      console.log(/^(\\d+ handles opened since the snapshot are still open:)/.exec(error.message)[1])
    }
    udp.close(); watcher.close(); await file.close(); port1.close(); socket.destroy()
    for (const timer of timers) clearTimeout(timer)
    const over = [once(worker, 'exit'), once(child, 'exit')]
    worker.terminate(); child.kill()
    await Promise.all(over)
    await wait(50)
    console.log('closed:' + types(trace.diff(before)))
    trace.assertNoLeaks(before)
    clearInterval(oldTimer); early.close()
  }
  main()`

const OPEN = 'FILEHANDLE,FSEVENTWRAP,MESSAGEPORT,MESSAGEPORT,PROCESSWRAP,TCPWRAP client,TCPWRAP server,' +
  'Timeout,Timeout,UDPWRAP,WORKER'

for (const [name, env] of Object.entries({
  full: {}, 'js engine': { LONGSTACK_CAPTURE: 'js' }
})) {
  test(`${name}: timers, sockets, processes, workers, watchers, ports and files are in the diff while open`, async (t) => {
    const { stdout, stderr, code } = await program(KINDS, { env })
    t.is(stderr, '')
    t.is(code, 0)
    const [none, open, error, message, closed] = stdout.split('\n')
    t.is(none, 'none:')
    t.is(open, `open:${OPEN}`)
    t.is(error, `error:Error,ERR_LONGSTACK_LEAK,${OPEN.replace('MESSAGEPORT,', '')},code,false`, 'the other port is not referenced')
    t.is(message, '10 handles opened since the snapshot are still open:')
    t.is(closed, 'closed:')
  })
}

test('an interval leaked per request has a growth per minute; balanced opens and closes have none', async (t) => {
  const { stdout, stderr } = await program(`${PRELUDE}
    const pool = []
    const server = http.createServer((request, response) => {
      setInterval(function poll () {}, 1e6)
      pool.push(setTimeout(function reopened () {}, 1e6))
      if (pool.length > 3) clearTimeout(pool.shift())
      response.end()
    })
    server.listen(0, '127.0.0.1', async function main () {
      const get = async () => { await once((await once(http.get({ port: server.address().port, host: '127.0.0.1', agent: false }), 'response'))[0].resume(), 'end') }
      for (let i = 0; i < 3; i++) await get()
      const before = trace.snapshot()
      const start = performance.now()
      for (let i = 0; i < 6; i++) await get()
      await wait(1100)
      const all = trace.diff(before)
      const elapsed = performance.now() - start
      const timers = all.filter(({ type }) => type === 'Timeout')
      const growth = (delay) => [...new Set(timers.filter(({ what }) => what.includes(delay)).map(({ perMinute }) => perMinute))]
      const [[every], [once_]] = [growth('every'), growth('after')]
      console.log(timers.length, growth('every').length, Math.abs(every / (6 * 60000 / elapsed) - 1) < 0.5, once_)
      console.log(String(require('node:util').inspect(all)))
      process.exit()
    })`)
  t.is(stderr, '')
  const [figures, ...text] = stdout.split('\n')
  t.is(figures, '9 1 true 0')
  t.regex(text.join('\n'), /6 × timer, every 1000000 ms, calls poll\(\) · Timeout\n.*\n {2}6 more since the snapshot \d.* ago, \d+ per minute\n {2}made by\n.*setInterval/)
  t.regex(text.join('\n'), /^6 × [^]*\n\nBalanced since the snapshot \d.* ago:\n(?: .*\n)*? {2}3 × timer, .* · Timeout, at .*\n/m)
  t.notRegex(text.join('\n'), /\n {2}3 × timer, .*\n {4}/, 'one line')
})

test('a snapshot keeps nothing alive, has no properties and cannot be changed', async (t) => {
  const { stdout, stderr } = await program(`${PRELUDE}
    let port = new (require('node:worker_threads').MessageChannel)().port1
    let socket = new net.Socket()
    const server = net.createServer().listen(0, '127.0.0.1', async () => {
      socket.connect(server.address().port, '127.0.0.1')
      await once(socket, 'connect')
      const before = trace.snapshot()
      const weak = new WeakRef(socket)
      const handle = new WeakRef(socket._handle)
      socket.destroy()
      await once(socket, 'close')
      socket = undefined
      for (let i = 0; i < 5; i++) { await wait(5); gc() }
      console.log(weak.deref() === undefined, handle.deref() === undefined, Reflect.ownKeys(before), Object.isFrozen(before))
      trace.diff(before)
      process.exit()
    })`, { args: ['--expose-gc'] })
  t.is(stderr, '')
  t.is(stdout, 'true true [] true\n')
})

test('workers have their own snapshots; early and filtered handles count, without a chain', async (t) => {
  const { stdout, stderr } = await program(`${PRELUDE}
    const { Worker, isMainThread } = require('node:worker_threads')
    if (isMainThread) trace.disable()
    const early = net.createServer().listen(0)
    trace.enable(['TIMER'])
    const before = trace.snapshot()
    const server = net.createServer().listen(0, '127.0.0.1')
    const timer = setInterval(() => {}, 1e6)
    setTimeout(async () => {
      console.log(isMainThread, types(trace.diff(before)), trace.diff(before).map(({ opened }) => opened.length > 0).sort().join())
      if (isMainThread) await once(new Worker(__filename), 'exit')
      process.exit()
    }, 20)`)
  t.is(stderr, '')
  t.is(stdout, 'true TCPSERVERWRAP,Timeout false,true\nfalse TCPSERVERWRAP,Timeout false,true\n')
})

test('anything but a snapshot is rejected with a code', async (t) => {
  const { stdout } = await program(`${PRELUDE}
    for (const value of [undefined, null, {}, 'x', new Proxy(trace.snapshot(), {})]) {
      for (const method of ['diff', 'assertNoLeaks']) {
        try { trace[method](value); console.log('no error') } catch (error) { console.log(error.code, error.message.startsWith('trace.' + method + ' takes the return value of trace.snapshot(). Received ')) }
      }
    }`)
  t.is(stdout, 'LONGSTACK_ERR_INVALID_SNAPSHOT true\n'.repeat(10))
})
