'use strict'

// Servers of the articles with difficult clients and outputs: a client that reads late, a stdout without a
// reader, a renamed directory.

const { fork, spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')
const test = require('ava')
const { ANSWER } = require('../../bench/articles/02-tcp-net-http/servers')
const { harness } = require('../helpers/articles')
const { register } = require('../helpers/run')

test('a TCP handle sends a slow reader every response, and the end', async (t) => {
  const child = fork(harness('02-tcp-net-http'), ['count', 'raw', 'hoisted'], { execArgv: ['-r', register] })
  t.teardown(() => child.kill())
  const [{ port }] = await once(child, 'message')
  const count = 120_000 // 15 MB of answers, more than the kernel keeps
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.setTimeout(30_000, () => socket.destroy(new Error('no end')))
  await once(socket, 'connect')
  socket.end('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.repeat(count))
  await once(socket, 'finish')
  const writes = async () => {
    child.send('count')
    return (await once(child, 'message'))[0].counts.WRITEWRAP ?? 0
  }
  for (const end = Date.now() + 30_000; await writes() === 0 && Date.now() < end;) await delay(50)
  t.true(await writes() > 0, 'a write has to wait')
  let answers = ''
  for await (const text of socket.setEncoding('latin1')) answers += text
  t.true(answers === ANSWER.repeat(count))
})

/** Starts the logging server, traced. @param {import('ava').ExecutionContext} t */
async function startLogger (t) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-logger-'))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  const args = ['-r', register, harness('06-logger'), 'serve', directory, '1']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  t.teardown(() => child.kill('SIGKILL'))
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text) => { stderr += text })
  const [port] = await once(child, 'message')
  return {
    directory,
    child,
    get: async (/** @type {string} */ url) => (await fetch(`http://127.0.0.1:${port}${url}`)).text(),
    log: (place = directory) => fs.readFileSync(path.join(place, 'all.log'), 'utf8'),
    async end () {
      child.kill('SIGTERM')
      const [code] = await once(child, 'close')
      t.is(code, 0)
      t.is(stderr, '')
    }
  }
}

test('buffered log lines are written at exit', async (t) => {
  const { get, log, end } = await startLogger(t)
  await get('/the-last')
  await end()
  t.regex(log(), /info {2}request 1: \/the-last\n[^]*info {2}SERVER GET \/the-last 200 in /)
})

test('a stdout without a reader is reported once, and the file is complete', async (t) => {
  const { child, get, log, end } = await startLogger(t)
  child.stdout?.destroy()
  for (let i = 0; i < 5; i++) await get('/user')
  await end()
  t.is(log().match(/error no user\n/g)?.length, 5)
  t.is(log().match(/log output stdout failed with EPIPE/g)?.length, 1)
})

test('if its directory is renamed, the open file is used until a new one can be opened', async (t) => {
  const { directory, child, get, log, end } = await startLogger(t)
  const until = async (/** @type {() => boolean} */ done) => { while (!done()) await delay(10) }
  await get('/before')
  const old = `${directory}.old`
  fs.renameSync(directory, old)
  t.teardown(() => fs.rmSync(old, { recursive: true, force: true }))
  child.kill('SIGUSR2')
  await get('/without')
  await until(() => log(old).includes('/without'))
  fs.mkdirSync(directory)
  child.kill('SIGUSR2')
  await until(() => fs.existsSync(path.join(directory, 'all.log')))
  await get('/after')
  await end()
  t.regex(log(old), /request 1: \/before\n[^]*request 2: \/without\n/)
  t.regex(log(), /request 3: \/after\n/)
})
