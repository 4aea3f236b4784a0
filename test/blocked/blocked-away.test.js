'use strict'

// Apparent long runs that are none: a process that was stopped, as in a machine that sleeps, and a process
// paused by a debugger. Also the cost of watching an idle program.

const test = require('ava')
const { spawn } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')
const { node, program, register, root } = require('../helpers/run')
const { watched } = require('../helpers/watchdog')

const folder = path.join(__dirname, '..', 'fixtures', 'blocked')

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string[]} args
 * @param {string} blocked
 */
function start (t, args, blocked) {
  const env = { PATH: process.env.PATH, LONGSTACK_BLOCKED: blocked, LONGSTACK_CAPTURE: 'native' }
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (text) => { output.stdout += text })
  child.stderr.on('data', (text) => { output.stderr += text })
  return { child, output, exit: new Promise((resolve) => child.on('close', resolve)) }
}

/** @param {() => boolean} condition */
async function until (condition) {
  while (!condition()) await sleep(20)
}

// Its work is counted in time on a processor: what a process that is stopped does not have.
const work = `
  const used = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1e3 }
  const spin = (ms) => { const end = used() + ms; while (used() < end); }
  console.log('ready')`
const light = `${work}; setInterval(function light () { spin(2) }, 10)`
const heavy = `${work}
  setTimeout(function heavy () {
    const start = performance.now()
    require('node:fs').writeSync(1, 'begun\\n')
    spin(1000)
    console.log(performance.now() - start)
  }, 100)`
const STOP_MS = 3000

watched(test, 'a process that is stopped and goes on was not blocked', async (t) => {
  const { child, output } = start(t, ['-r', register, '-e', light], '800')
  await until(() => output.stdout.includes('ready'))
  for (let i = 0; i < 2; i++) {
    await sleep(150 + i * 33)
    child.kill('SIGSTOP')
    await sleep(1200)
    child.kill('SIGCONT')
  }
  await sleep(400)
  t.is(child.exitCode, null)
  t.is(output.stderr, '')
})

watched(test, 'a long run that is stopped inside is as long as it ran', async (t) => {
  const { child, output, exit } = start(t, ['-r', register, '-e', heavy], '800')
  await until(() => output.stdout.includes('begun'))
  await sleep(200)
  child.kill('SIGSTOP')
  await sleep(STOP_MS)
  child.kill('SIGCONT')
  await exit
  const found = /was blocked for ([\d.]+) s[\n,]/.exec(output.stderr)
  t.truthy(found, output.stderr)
  const seconds = (Number(output.stdout.split('\n')[2]) - STOP_MS) / 1000 // without the stop
  t.true(Math.abs(Number(found?.[1]) - seconds) < 1 + seconds / 4, `${found?.[1]} of ${seconds} s`)
})

watched(test, 'a program that a debugger pauses is not blocked; one that has a debugger can be', async (t) => {
  const source = `
    setInterval(function tick () { JSON.stringify({ a: [1, 2, 3] }) }, 20)
    function heavy () { const end = performance.now() + 1200; while (performance.now() < end); process.exit() }
    process.on('SIGUSR2', () => setTimeout(heavy, 1))`
  const { child, output, exit } = start(t, ['--inspect=0', '-r', register, '-e', source], '800')
  await until(() => /ws:\S+/.test(output.stderr))
  const url = /** @type {RegExpExecArray} */ (/ws:\S+/.exec(output.stderr))[0]
  const flags = 'WebSocket' in globalThis ? [] : ['--experimental-websocket']
  const { stdout, stderr } = await node([...flags, path.join(folder, 'debugger.js'), url])
  t.is(stdout, 'paused\nresumed\n', stderr)
  t.false(output.stderr.includes('longstack'), output.stderr)
  child.kill('SIGUSR2')
  await exit
  const reports = output.stderr.split('longstack: ').slice(1).filter((text) => text.includes('was blocked'))
  t.is(reports.length, 1)
  t.regex(reports[0], /at heavy /)
})

watched(test, 'an idle program is left to sleep', async (t) => {
  if (process.platform !== 'linux') {
    t.log('skipped: only Linux counts how often a process was awake')
    return t.pass()
  }
  const { child, output } = start(t, ['-r', register, '-e', 'setTimeout(() => {}, 1e6); console.log("ready")'], '50')
  await until(() => output.stdout.includes('ready'))
  await sleep(1000)
  const before = switches(Number(child.pid))
  await sleep(2500)
  const wakeUps = switches(Number(child.pid)) - before
  t.true(wakeUps <= 15, `${wakeUps} wake-ups in 2.5 s`)
})

/** How often the threads of a process went to sleep. @param {number} pid */
function switches (pid) {
  let sum = 0
  for (const task of fs.readdirSync(`/proc/${pid}/task`)) {
    const status = fs.readFileSync(`/proc/${pid}/task/${task}/status`, 'utf8')
    sum += Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)?.[1])
  }
  return sum
}

watched(test, 'watching keeps no program alive and is nowhere to be seen', async (t) => {
  const { stdout, stderr, code } = await program(`
    const before = { handles: process._getActiveHandles().length, requests: process._getActiveRequests().length }
    const trace = require(${JSON.stringify(root)})
    console.log(Object.keys(globalThis).some((key) => /longstack/i.test(key)), trace.handles().length)
    process.on('beforeExit', () => console.log('nothing left'))`, { env: { LONGSTACK_BLOCKED: '1000', LONGSTACK_CAPTURE: 'native' } })
  t.is(stdout, 'false 0\nnothing left\n')
  t.is(stderr, '')
  t.is(code, 0)
})

watched(test, 'workers that end while they are watched', async (t) => {
  const { stdout, stderr, code, signal } = await node(['-r', register, path.join(folder, 'threads.js'), '2'], { env: { LONGSTACK_BLOCKED: '150', LONGSTACK_CAPTURE: 'native' } })
  t.is(signal, null, stderr)
  t.is(code, 0, stderr)
  t.is(stdout, 'ended\n')
  for (const [frame, verb] of [['inWorker', 'was'], ['leaving', 'was'], ['failing', 'was'], ['endless', 'is']]) {
    t.regex(stderr, new RegExp(`the event loop ${verb} blocked.*\\n(?: .*\\n)*? {4}at ${frame} .*\\n {2}── setTimeout\\(10\\)[^]*?in the parent thread`))
  }
})
