'use strict'

// trace.why for everything except connections, for unknown facts, and for objects full of traps.

const test = require('ava')
const { program, root } = require('../helpers/run')
const { reports, functions } = require('../helpers/reports')

test('why reports timers and immediates as pending, unreferenced, cleared or fired', async (t) => {
  const { told, code } = await reports(`
    function arm () {
      const timers = { interval: setInterval(function tick () {}, 40), once: setTimeout(() => {}, 1), cleared: setTimeout(() => {}, 1e6), immediate: setImmediate(function soon () {}) }
      ask('interval', timers.interval); ask('once', timers.once); ask('immediate', timers.immediate)
      clearTimeout(timers.cleared); ask('cleared', timers.cleared)
      timers.interval.unref(); ask('unref', timers.interval)
      setTimeout(() => { ask('fired', timers.once); ask('immediate over', timers.immediate); ask('ran', timers.interval) }, 60)
    }
    arm()`)
  t.is(code, 0)
  const why = (/** @type {string} */ name) => told[name].why
  t.like(why('interval'), { type: 'Timeout', state: 'pending', referenced: true, what: 'timer, every 40 ms, calls tick()', hint: 'clearInterval(timer) or timer.unref()' })
  t.like(why('once'), { state: 'pending', what: 'timer, after 1 ms', hint: 'clearTimeout(timer) or timer.unref()' })
  t.like(why('unref'), { state: 'pending', referenced: false })
  t.like(why('cleared'), { state: 'closed', hint: undefined, referenced: undefined })
  t.is(why('fired').state, 'closed')
  t.like(why('immediate'), { type: 'Immediate', state: 'pending', what: 'immediate, calls soon()' })
  t.is(why('immediate over').state, 'closed')
  t.true(why('ran').idleMs < why('ran').ageMs - 20, 'the last run counts')
  t.regex(told.ran.text, /pending, .* old, ran .* ago, does not keep the process alive\n {2}made by\n/)
  for (const name of Object.keys(told)) t.is(functions(why(name).opened)[0], 'arm', name)
})

test('why reports promises as pending or settled, if known', async (t) => {
  const { told, code } = await reports(`
    function make () {
      let settle
      const promise = new Promise((resolve) => { settle = resolve })
      ask('pending', promise)
      setTimeout(() => { settle(); ask('settled', promise) }, 1)
      setTimeout(() => { const other = new Promise(() => {}); trace.disable(); ask('after disable', other) }, 5)
    }
    make()`)
  t.is(code, 0)
  t.like(told.pending.why, { type: 'PROMISE', state: 'pending' })
  t.like(told.settled.why, { type: 'PROMISE', state: 'settled' })
  t.is(told['after disable'].why.state, undefined, 'nobody watches any more')
  t.is(functions(told.settled.why.opened)[0], 'make')
})

test('why reports workers, ports, children, watchers, files, directories, zlib and standard streams', async (t) => {
  const { told, stderr, code } = await reports(`
    const { Worker, MessageChannel } = require('node:worker_threads')
    const settled = []
    async function worker () {
      const one = new Worker('setTimeout(() => {}, 20)', { eval: true })
      ask('worker', one); await once(one, 'exit'); ask('worker over', one)
    }
    async function port () {
      const { port1 } = new MessageChannel()
      port1.on('message', () => {}); ask('port', port1); port1.unref(); ask('port unref', port1)
      port1.close(); await once(port1, 'close'); await wait(5); ask('port over', port1)
    }
    async function child () {
      const one = require('node:child_process').spawn(process.execPath, ['-e', 'setTimeout(() => {}, 50)', 'secret'], { env: {} })
      ask('child', one); ask('child stdout', one.stdout); await once(one, 'close'); ask('child over', one)
    }
    async function watch () { const one = fs.watch(__dirname); ask('watch', one); one.close(); ask('watch over', one) }
    async function file () { const one = await fs.promises.open(__filename); ask('file', one); await one.close(); ask('file over', one) }
    async function zip () { const one = require('node:zlib').createGzip(); ask('zip', one); one.close(); ask('zip over', one) }
    async function standard () { ask('unread', process.stdin); process.stdin.on('data', () => {}); ask('standard', process.stdin); process.stdin.destroy(); ask('stdout', process.stdout) }
    Promise.all([worker(), port(), child(), watch(), file(), zip(), standard()])`)
  t.is(stderr, '')
  t.is(code, 0)
  const why = (/** @type {string} */ name) => told[name].why
  const types = { worker: 'WORKER', port: 'MESSAGEPORT', child: 'PROCESSWRAP', watch: 'FSEVENTWRAP', file: 'FILEHANDLE', zip: 'ZLIB' }
  for (const [name, type] of Object.entries(types)) {
    t.like(why(name), { type, state: 'open', origin: 'registered' }, name)
    t.like(why(`${name} over`), { type, state: 'closed', hint: undefined, asyncId: why(name).asyncId }, name)
    for (const one of [why(name), why(`${name} over`)]) t.true(functions(one.opened).includes(name), `${name} opened it`)
    t.true(why(name).hint.length > 0)
  }
  for (const name of ['worker', 'port', 'child', 'watch', 'standard']) t.is(why(name).referenced, true, name)
  t.is(why('port unref').referenced, false)
  t.regex(why('worker').what, /^worker thread \d+$/)
  t.regex(why('child').what, /^child process \d+, node$/)
  t.like(why('child stdout'), { type: 'PIPEWRAP', side: undefined, state: 'open' })
  t.regex(why('child stdout').what, /^pipe, standard output of child process \d+$/)
  t.regex(why('file').what, /^file, descriptor \d+$/)
  t.regex(why('standard').what, /^standard input, a pipe$/)
  t.regex(why('standard').hint, /process\.stdin/)
  t.regex(why('stdout').what, /^standard output, a pipe$/)
  t.is(why('stdout').hint, undefined)
  t.is(why('stdout').referenced, false, 'it neither reads nor writes')
  t.is(why('unread').referenced, false)
  t.false(JSON.stringify(told).includes('secret'))
})

test('why reports signals, and channels between processes', async (t) => {
  const { told, stderr, code } = await reports(`
    process.on('SIGUSR2', () => {}).on('SIGHUP', () => {})
    list('signals', ['SIGNAL'])
    const child = require('node:child_process').fork('-e', ['process.channel.ref(); setTimeout(() => {}, 50)'], { execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
    list('channel', ['PIPE'])
    child.kill()`)
  t.is(stderr, '')
  t.is(code, 0)
  t.deepEqual(told.signals.all.map((/** @type {any} */ { what }) => what), Array(2).fill('signal listener, SIGUSR2 or SIGHUP'))
  t.regex(told.channel.all[0].what, /^pipe, channel to child process \d+$/)
})

test('why says if nothing is known; a primitive is an error', async (t) => {
  const { told, stderr, code } = await reports(`
    const stream = require('node:stream')
    ask('error', new Error('x')); ask('object', {}); ask('readable', stream.Readable.from(['x'])); ask('passthrough', new stream.PassThrough())
    ask('null prototype', Object.create(null)); ask('array', []); ask('socket', new net.Socket()); ask('server', net.createServer())
    ask('proxy', new Proxy({}, {})); ask('frozen', Object.freeze({ _handle: {} }))
    for (const [name, value] of Object.entries({ number: 42, string: 'a', undefined, null: null, symbol: Symbol('s'), function: () => {}, bigint: 1n })) {
      try { ask(name, value) } catch (error) { say(name, { error: { name: error.name, code: error.code, message: error.message } }) }
    }`)
  t.is(stderr, '')
  t.is(code, 0)
  for (const name of ['error', 'object', 'readable', 'passthrough', 'null prototype', 'array', 'socket', 'proxy', 'frozen']) {
    t.like(told[name].why, { type: 'unknown', origin: 'unknown', opened: [], ageMs: undefined, idleMs: undefined, referenced: undefined }, name)
    t.regex(told[name].text, /unknown: this object has no async resource|not opened yet/, name)
  }
  t.like(told.server.why, { origin: 'unknown', state: 'closed', opened: [] })
  for (const name of ['number', 'string', 'undefined', 'null', 'symbol', 'function', 'bigint']) {
    t.like(told[name].error, { name: 'TypeError', code: 'LONGSTACK_ERR_INVALID_TARGET' }, name)
  }
  t.regex(told.number.error.message, /Received 42\.$/)
})

test('handles opened before enabling, or filtered out, are unknown, never attributed to another flow', async (t) => {
  const source = (/** @type {string} */ filter) => `
    let accepted = []
    const server = net.createServer((socket) => accepted.push(socket.on('data', () => {}))).listen(0, '127.0.0.1', function before () {
      const early = net.connect(server.address().port, '127.0.0.1')
      const timer = setTimeout(() => {}, 1e6), promise = new Promise(() => {})
      early.on('connect', () => setTimeout(async function start () {
        early.write('abc')
        ask('never', early)
        trace.enable(${filter})
        ask('early', early); ask('server', server); ask('timer', timer); ask('promise', promise); list('all', ['TCP'])
        setTimeout(async function later () {
          const late = net.connect(server.address().port, '127.0.0.1'), timeout = setTimeout(() => {}, 1)
          await once(late, 'connect'); await until(() => accepted.length === 2)
          ask('late', late); ask('late timer', timeout); ask('accepted', accepted[1])
          early.destroy(); late.destroy(); server.close(); clearTimeout(timer)
          await until(() => early.closed && late.closed)
          ask('early closed', early); ask('late closed', late)
        }, 1)
      }, 5))
    })`
  const everything = await reports(source(''), { preload: false })
  t.is(everything.stderr, '')
  const why = (/** @type {string} */ name) => everything.told[name].why
  for (const [name, type] of Object.entries({ early: 'TCPWRAP', server: 'TCPSERVERWRAP', timer: 'Timeout', promise: 'PROMISE' })) {
    t.like(why(name), { type, origin: 'early', opened: [], ageMs: undefined }, name)
    t.regex(everything.told[name].text, /early: (opened|made) before longstack was enabled/)
  }
  t.regex(everything.told.never.text, /early: opened while longstack is off, so by whom is unknown; node -r longstack\/register enables it/)
  t.like(why('early'), { side: 'client', state: 'open', bytesWritten: 3, referenced: true })
  const listed = everything.told.all.all.map((one) => [one.type, one.side ?? 'no side', one.origin].join()).sort()
  t.deepEqual(listed, ['TCPSERVERWRAP,no side,early', 'TCPWRAP,client,early', 'TCPWRAP,server,early'])
  t.like(why('early closed'), { type: 'TCPWRAP', state: 'closed', local: why('early').local, remote: why('early').remote, bytesWritten: 3 })
  t.true(functions(why('late').opened).includes('later'))
  t.like(why('accepted'), { side: 'server', opened: [] })

  const { told, stderr } = await reports(source("['FS']"), { preload: false })
  t.is(stderr, '')
  for (const name of ['late', 'late timer', 'accepted', 'late closed']) {
    t.like(told[name].why, { opened: [], ageMs: undefined }, name)
    t.not(told[name].why.origin, 'registered', name)
    t.false(told[name].text.includes('later'), name)
  }
  t.like(told.late.why, { type: 'TCPWRAP', side: 'client', state: 'open', remote: told.server.why.local, usedBy: undefined })
})

test('why reports the creator, bytes and close method of a handle used without net', async (t) => {
  const { told, code } = await reports(`
    const server = net.createServer().listen(0, '127.0.0.1', function makeHandle () {
      const TCP = server._handle.constructor
      const handle = new TCP(1)
      handle.bind('127.0.0.1', 0)
      handle.listen(5)
      handle.onconnection = (status, connection) => {
        connection.onread = () => {
          ask('connection', connection)
          connection.close(); handle.close(); server.close(); client.destroy()
        }
        connection.readStart()
      }
      ask('bare', handle); ask('net', server)
      const address = {}
      handle.getsockname(address)
      const client = net.connect(address.port, '127.0.0.1', () => client.write('hello'))
    })`)
  t.is(code, 0)
  t.like(told.bare.why, { type: 'TCPSERVERWRAP', hint: 'handle.close()' })
  t.regex(told.bare.text, /── new TCP[^]*makeHandle/)
  t.like(told.net.why, { hint: 'server.close()' })
  t.regex(told.net.text, /── server\.listen/)
  t.like(told.connection.why, { type: 'TCPWRAP', bytesRead: 5, hint: 'handle.close()' })
})

test('an accessor that the program put on a socket does not run', async (t) => {
  const { stdout, stderr } = await program(`
    const trace = require(${JSON.stringify(root)})
    const socket = new (require('node:net').Socket)()
    let calls = 0
    for (const name of ['_handle', '_pendingData', '_writableState']) Object.defineProperty(socket, name, { get () { calls++ } })
    trace.why(socket)
    console.log(calls)`)
  t.is(stdout, '0\n', stderr)
})
