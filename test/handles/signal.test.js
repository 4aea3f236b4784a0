'use strict'

// LONGSTACK_SIGNAL: a signal prints open handles with the reasons, and changes nothing else.

const test = require('ava')
const { node, program } = require('../helpers/run')

const source = `
const net = require('node:net'), http = require('node:http')
const agent = new http.Agent({ keepAlive: true })
const server = http.createServer(() => {}).listen(0, '127.0.0.1', function ready () {
  function pool (count) { for (let i = 0; i < count; i++) http.get({ agent, host: '127.0.0.1', port: server.address().port, path: i < 2 ? '/a?x=secret' : '/b' }).on('error', () => {}) }
  pool(3)
  for (let i = 0; i < 4; i++) setTimeout(function late () {}, 1e6)
})
let asked = 0
let connections = 0
server.on('request', () => { if (++connections === 3) setTimeout(kill, 5) })
function kill () {
  if (asked++ === 2) return process.exit(7)
  process.kill(process.pid, 'SIGUSR2')
  setTimeout(kill, 50)
}
console.log('output of the program')
process.on('exit', () => console.log(process.listenerCount('SIGUSR2'), 'end'))
`

test('a signal prints open handles in groups, each time it arrives', async (t) => {
  const { stdout, stderr, code, signal } = await program(source, { env: { LONGSTACK_SIGNAL: 'SIGUSR2' } })
  t.is(stdout, 'output of the program\n1 end\n')
  t.is(code, 7)
  t.is(signal, null)
  const printed = stderr.split(/^longstack: /m)
  t.is(printed.shift(), '')
  t.is(printed.length, 2)
  for (const text of printed) {
    t.regex(text, /^12 open in process \d+\n\n/)
    const groups = text.trimEnd().split('\n\n').slice(1)
    t.deepEqual(groups.map((group) => /^(\d+) × /.exec(group)?.[1] ?? '1'), ['4', '3', '3', '1', '1'], 'the largest group first')
    const [timers, ...others] = groups
    t.regex(timers, /^4 × timer, after 1000000 ms, calls late\(\) · Timeout\n {2}pending, [^\n]* old, keeps the process alive\n {2}made by\n {2}── setTimeout\(1000000\)[^]*at ready/)
    const clients = others.find((group) => group.includes('client'))
    t.regex(clients, /^3 × TCP connection, client to 127\.0\.0\.1:\d+ · TCPWRAP\n {2}open, .*, 0 bytes in, \d+ bytes out, keeps/)
    t.regex(clients, /── http\.get\(127[^]*at pool [^]*used now by GET http:\/\/127\.0\.0\.1:\d+\/a \(2 ×\), GET http:\/\/127\.0\.0\.1:\d+\/b\n {2}to close it: /)
    t.regex(others.find((group) => group.includes('server,')), /^3 × TCP connection, server, at 127[^]*\n {2}from 127.*, 127.*, 127.*\n {2}opened by\n {2}── connection accepted/)
    t.regex(others.find((group) => group.includes('TCP server')), /^TCP server at 127\.0\.0\.1:\d+ · TCPSERVERWRAP\n {2}listening, .* old, last connection .* ago/)
    t.false(text.includes('secret'))
    t.false(text.includes('\u001b'))
  }
})

test('the signal keeps no process alive, and printing opens no handle', async (t) => {
  const { stdout, stderr, code } = await program(`
    process.kill(process.pid, 'SIGUSR2')
    const timer = setInterval(() => {
      if (waited++ < 20) return
      clearInterval(timer)
      console.log(process._getActiveHandles().length)
    }, 5)
    let waited = 0`, { env: { LONGSTACK_SIGNAL: 'SIGUSR2' } })
  t.is(stdout, '0\n')
  t.is(code, 0)
  t.regex(stderr, /^longstack: 1 open in process \d+\n\ntimer, every 5 ms/)
})

test('the option does the same, can be changed, and is undone by disable', async (t) => {
  const { stdout, stderr, code, signal } = await program(`
    const trace = require(${JSON.stringify(require.resolve('../..'))})
    const listeners = () => ['SIGUSR2', 'SIGHUP'].map((name) => process.listenerCount(name)).join()
    trace.enable({ signal: 'SIGUSR2' }); console.log(listeners())
    trace.enable({ signal: 'SIGHUP' }); console.log(listeners())
    trace.disable(); console.log(listeners())
    setTimeout(() => {}, 5000)
    process.kill(process.pid, 'SIGHUP')`, { preload: false })
  t.is(stdout, '1,0\n0,1\n0,0\n')
  t.is(stderr, '')
  t.is(code, null)
  t.is(signal, 'SIGHUP', 'the signal does again what it does by itself')
})

test('a program\'s own listener for that signal is kept', async (t) => {
  const { stdout, stderr, code } = await program(`
    process.on('SIGUSR2', () => { console.log('mine'); clearTimeout(timer) })
    const timer = setTimeout(() => {}, 5000)
    process.kill(process.pid, 'SIGUSR2')`, { env: { LONGSTACK_SIGNAL: 'SIGUSR2' } })
  t.is(stdout, 'mine\n')
  t.regex(stderr, /^longstack: \d+ open in process/)
  t.is(code, 0)
})

for (const name of ['SIGFOO', 'SIGKILL', 'SIGSTOP', 'SIGUSR1', 'sigusr2', '12']) {
  test(`${name} cannot be used as the signal: one line, and the program runs`, async (t) => {
    const { stdout, stderr, code } = await node(['-r', require.resolve('../../lib/register'), '-e', 'console.log(1)'], { env: { LONGSTACK_SIGNAL: name } })
    t.is(stdout, '1\n')
    t.is(code, 0)
    t.regex(stderr, /^longstack: [^\n]*LONGSTACK_SIGNAL[^\n]*\n$/)
    t.true(stderr.includes(name))
  })
}
