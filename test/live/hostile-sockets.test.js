'use strict'

// The listener on a socket may be another program, another version, or an attacker. Whatever it sends, a
// command ends soon, in bounded memory, with a sentence and an exit code.

const fs = require('node:fs')
const http = require('node:http')
const net = require('node:net')
const path = require('node:path')
const test = require('ava')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { isAnswer, isEvent } = require('../../lib/ask/shapes')
const { livePrograms, main } = require('../helpers/live')
const { node } = require('../helpers/run')
const { timeFactor } = require('../helpers/time-factor')

const { start, directory } = livePrograms(test)
const COMMANDS = [
  ['why'], ['why', '--json'], ['top', '--once'], ['top', '--once', '--json'], ['diff', '--seconds', '1'], ['metrics'],
  ['attach', '--seconds', '1'], ['--seconds', '1'], ['--seconds', '1', '--json']
]

let sockets = 0
/**
 * Listens on a socket.
 * @param {import('ava').ExecutionContext} t
 * @param {(socket: net.Socket) => void} serve
 */
async function listen (t, serve) {
  const file = path.join(directory, `s${++sockets}`)
  const open = new Set()
  const server = net.createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {})
    serve(socket)
  }).listen(file)
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return file
}

/** Calls what answers each question. @param {net.Socket} socket @param {(question: any) => unknown} answer */
function answerEach (socket, answer) {
  let rest = ''
  socket.setEncoding('utf8').on('data', (text) => {
    const lines = (rest + text).split('\n')
    rest = String(lines.pop())
    for (const line of lines) socket.write(String(answer(JSON.parse(line))))
  })
}

const FACTS = {
  pid: 1, threadId: 0, isMainThread: true, node: 'v1.2.3', longstack: '1', title: 'x', uptimeMs: 1, rss: 1, tracing: 'full', spans: false
}
const line = (/** @type {unknown} */ value) => `${JSON.stringify(value)}\n`

/** @param {import('ava').ExecutionContext} t @param {string[]} args @param {string} file */
async function endsWell (t, args, file, { flags = [] } = {}) {
  const { code, stdout, stderr } = await node([...flags, main, ...args, file])
  const name = `${args.join(' ')}\n${stdout}${stderr}`
  t.true(code === 0 || code === 1, name)
  t.notRegex(stderr, /^\s+at .*lib.(?:ask|cli|top|incident|format)|TypeError|RangeError|heap|Uncaught/m, name)
  return { code, stdout, stderr }
}

test.serial('a response of an unexpected shape is rejected with a message', async (t) => {
  for (const value of [1, 'x', null, true, [], [1], {}, { map: 1 }, [null], { requests: {}, groups: 1 }]) {
    const all = await listen(t, (socket) => answerEach(socket, ({ id }) => line({ id, value })))
    const { code, stderr } = await endsWell(t, ['why'], all)
    t.is(code, 1)
    t.regex(stderr, /^longstack: What listens on .* sends data in an unknown format/)
    const after = await listen(t, (socket) => answerEach(socket, ({ id, name }) => line({ id, value: name === 'facts' ? FACTS : value })))
    t.is((await endsWell(t, ['why'], after)).code, 1)
  }
})

for (const args of COMMANDS) {
  test.serial(`after valid facts, data of an unknown shape are rejected: ${args.join(' ')}`, async (t) => {
    const file = await listen(t, (socket) => answerEach(socket, ({ id, name }) => line({ id, value: name === 'facts' ? FACTS : { a: [{}] } })))
    const { code, stderr } = await endsWell(t, args, file)
    t.is(code, 1)
    t.regex(stderr, /^longstack: .*(sends data in an unknown format|ended)/m)
  })
}

test.serial('an endless line ends the command, in bounded memory', async (t) => {
  const chunk = Buffer.alloc(1 << 20, 'x')
  const file = await listen(t, (socket) => {
    const write = () => { while (!socket.destroyed && socket.write(chunk)); }
    socket.on('drain', write).resume()
    write()
  })
  const { code, stderr } = await endsWell(t, ['why'], file, { flags: ['--max-old-space-size=300'] })
  t.is(code, 1)
  t.regex(stderr, /^longstack: What listens on .* sends a line that is too long/)
})

test.serial('an endless response ends the command as well', async (t) => {
  const file = await listen(t, (socket) => answerEach(socket, ({ id, name }) => {
    if (name === 'facts') return line({ id, value: FACTS })
    const chunk = line({ id, part: ['x'.repeat(1 << 20)] }).repeat(4)
    const write = () => { while (!socket.destroyed && socket.write(chunk)); }
    socket.on('drain', write)
    setImmediate(write)
    return ''
  }))
  const { code, stderr } = await endsWell(t, ['why'], file, { flags: ['--max-old-space-size=1000'] })
  t.is(code, 1)
  t.regex(stderr, /^longstack: .* sends a response that is too long/)
})

test.serial('noise, silence, a half line and the end of the connection are handled', async (t) => {
  for (const [i, noise] of ['\n\n{\n[]\nnull\n"x"\n{"id":{}}\n', '{"event":"log"}\n', '{"event":"toString","value":{}}\n', '{"id":1,"value"', ''].entries()) {
    const file = await listen(t, (socket) => { socket.on('data', () => socket.end(noise)) })
    const { code } = await endsWell(t, ['why'], file)
    t.is(code, 1, String(i))
  }
})

test('deep values and names of objects are handled', (t) => {
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
  t.false(isAnswer('profile', deep))
  t.false(isEvent('log', { block: 'x', deep }))
  t.true(isEvent('log', { block: 'x' }))
  for (const name of ['toString', '__proto__', 'constructor', undefined, {}]) t.false(isEvent(name, { lines: 'x' }))
})

test.serial('responses with one value replaced are handled', async (t) => {
  const real = path.join(directory, 'real')
  await start(`
    const http = require('node:http')
    const held = []
    const server = http.createServer(async (request, response) => {
      if (request.url === '/hang') await new Promise((resolve) => held.push(resolve))
      for (const end = Date.now() + 5; Date.now() < end;);
      setTimeout(() => response.end(), 5)
    }).listen(0, () => {
      const get = (path) => http.get({ port: server.address().port, path }, (response) => response.resume()).on('error', () => {})
      get('/hang')
      setInterval(() => get('/a'), 100)
      setInterval(() => setInterval(() => {}, 1000), 200)
      console.log('ready')
    })`, { env: { LONGSTACK_SOCKET: real } })
  let seed = 7
  const random = (/** @type {number} */ below) => {
    seed = Math.imul(seed, 1103515245) + 12345 & 0x7fffffff
    return (seed >> 8) % below
  }
  const others = [null, -1, 1e300, '', 'constructor', '__proto__', [], {}, [[]], { toString: 1 }, true, ['x']]
  /** @param {any} value */
  function mutate (value) {
    const places = []
    const visit = (/** @type {any} */ object) => {
      if (typeof object !== 'object' || object === null) return
      for (const key of Object.keys(object)) {
        places.push([object, key])
        visit(object[key])
      }
    }
    visit(value)
    if (places.length === 0) return
    const [object, key] = places[random(places.length)]
    if (random(4) === 0) delete object[key]
    else object[key] = others[random(others.length)]
  }
  const count = Math.ceil(12 / timeFactor)
  for (let i = 0; i < count; i++) {
    let answers = 0
    const changed = 1 + random(12)
    const file = await listen(t, (socket) => {
      const onward = net.connect(real)
      onward.on('error', () => {}).on('close', () => socket.destroy())
      socket.pipe(onward)
      socket.on('close', () => onward.destroy())
      let rest = ''
      onward.setEncoding('utf8').on('data', (text) => {
        const lines = (rest + text).split('\n')
        rest = String(lines.pop())
        for (const one of lines) {
          const message = JSON.parse(one)
          if (++answers % changed === 0) mutate(message)
          socket.write(line(message))
        }
      })
    })
    await endsWell(t, COMMANDS[i % COMMANDS.length], file)
  }
})

test.serial('a debugger that is not Node\'s is rejected', async (t) => {
  const script = path.join(directory, 'debugger.js')
  fs.writeFileSync(script, `
    const http = require('node:http')
    const { WebSocketServer } = require(${JSON.stringify(require.resolve('ws'))})
    const server = http.createServer((request, response) => response.end(JSON.stringify([{ type: 'node', id: 'a-b' }])))
    const answers = ['x', '[]', 'null', '{}', '{"method":"NodeWorker.attachedToWorker"}', '{"id":1,"result":{"result":{"value":{}}}}']
    new WebSocketServer({ server }).on('connection', (socket) => socket.on('message', () => answers.forEach((text) => socket.send(text))))
    server.listen(Number(process.argv[2].split('=')[1]), '127.0.0.1', () => console.log('ready'))`)
  const probe = http.createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = /** @type {net.AddressInfo} */ (probe.address())
  await new Promise((resolve) => probe.close(resolve))
  const child = spawn(process.execPath, [script, `--inspect-port=${port}`], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill())
  await once(child.stdout, 'data')
  const { code, stderr } = await endsWell(t, ['why'], String(child.pid))
  t.is(code, 1, stderr)
  t.regex(stderr, /^longstack: (The debugger of process|Process) \d+ does not respond/)
})
