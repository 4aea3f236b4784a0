'use strict'

// longstack profile PID: a running process is profiled and left as it was.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { WebSocket } = require('ws')
const { node, register, root } = require('../helpers/run')
const { patient } = require('../helpers/starved')

const main = path.join(root, 'lib', 'cli', 'main.js')
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-process-'))
const own = process.platform === 'win32' ? test.skip : patient(test)
const isInspectable = process.platform === 'linux'

const app = path.join(directory, 'app.mjs')
fs.writeFileSync(app, `
  import { setTimeout as sleep } from 'node:timers/promises'
  function spin (ms) { const end = performance.now() + ms; while (performance.now() < end); }
  setInterval(async function beat () { await sleep(5); spin(10) }, 30)
  setInterval(() => {
    const tracer = process.getBuiltinModule('async_hooks')[Symbol.for('longstack.tracer.3')]
    console.log(JSON.stringify({ enabled: tracer?.trace.enabled === true, inspector: process.getBuiltinModule('inspector').url() ?? 'closed' }))
  }, 50)
`)

/** @type {Array<import('node:child_process').ChildProcess>} */
const children = []
test.afterEach.always(() => { for (const child of children.splice(0)) child.kill('SIGKILL') })
test.after.always(() => fs.rmSync(directory, { recursive: true, force: true }))

/** Starts a program, and waits for its first line. @param {string[]} args of node */
async function start (...args) {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  let text = ''
  let stderr = ''
  child.stderr.on('data', (part) => { stderr += part })
  child.stdout.on('data', (part) => { text += part })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  return {
    pid: Number(child.pid),
    child,
    stderr: () => stderr,
    /** The state that the program prints next. */
    async state () {
      text = ''
      while (text.trim().split('\n').length < 2) await new Promise((resolve) => child.stdout.once('data', resolve))
      return JSON.parse(text.trim().split('\n')[1])
    }
  }
}

/** @param {...(string | number)} args */
const profile = (...args) => node([main, 'profile', ...args.map(String)])

for (const [name, flags] of /** @type {Array<[string, string[]]>} */ ([['that is traced', ['-r', register]], ['that is not', []]])) {
  own(`it profiles a process ${name}, and restores it`, async (t) => {
    const target = await start('--inspect-port=0', ...flags, app)
    const before = await target.state()
    const { stdout, stderr, code } = await profile(target.pid, '--seconds', '1.2', '--json')
    t.is(code, 0, stderr)
    const { pid, chains, samples, seconds } = JSON.parse(stdout)
    t.is(pid, target.pid)
    t.true(seconds >= 0.5)
    const beat = chains.filter((/** @type {any} */ { frames }) => frames[0]?.startsWith(`beat (${app}:`))
    t.true(beat.some((/** @type {any} */ { label, waitedMs }) => label === 'timers.promises.setTimeout' || waitedMs > 5), JSON.stringify(chains))
    if (samples.length < 3) t.log(stdout)
    const spinning = samples.find((/** @type {any} */ { frames }) => frames.some((/** @type {string} */ frame) => frame.startsWith('spin (')))
    t.truthy(spinning, 'a sample of what it spins in')
    t.true(beat.includes(chains[spinning.chain]))
    t.deepEqual(await target.state(), before)
    t.is(before.inspector, 'closed')
  })
}

own('LONGSTACK_SOCKET needs no inspector; a killed command ends its profile', async (t) => {
  process.env.LONGSTACK_SOCKET = path.join(directory, 'socket')
  const target = await start('-r', register, app).finally(() => { delete process.env.LONGSTACK_SOCKET })
  const second = () => profile(target.pid, '--seconds', '0.3', '--json')
  for (let isRefused = false; !isRefused;) { // on a busy machine the second may be the first
    const first = spawn(process.execPath, [main, 'profile', '--seconds', '60', String(target.pid)])
    children.push(first)
    const closed = new Promise((resolve) => first.once('close', resolve))
    await new Promise((resolve) => setTimeout(resolve, 500))
    const { stderr } = await second()
    isRefused = /^longstack: Process \d+: A profile is already running in this thread\. Wait until it ends\.$/m.test(stderr)
    first.kill('SIGKILL')
    await closed
  }
  const { stdout, stderr, code } = await second()
  t.is(code, 0, stderr)
  t.is(JSON.parse(stdout).pid, target.pid)
  t.is(target.stderr(), '')
})

own('an attached debugger stays attached', async (t) => {
  const target = await start('--inspect=0', app)
  const { inspector } = await target.state()
  const debugging = new WebSocket(inspector)
  await new Promise((resolve) => debugging.once('open', resolve))
  const { code, stderr } = await profile(target.pid, '--seconds', '0.3', '--json')
  t.is(code, 0, stderr)
  t.is((await target.state()).inspector, inspector)
  t.is(debugging.readyState, WebSocket.OPEN)
  debugging.terminate()
})

own('it fails with one sentence and exit code 1', async (t) => {
  const gone = spawn(process.execPath, ['-e', ''])
  await new Promise((resolve) => gone.on('close', resolve))
  const sleeper = spawn('sleep', ['60'])
  children.push(sleeper)
  await new Promise((resolve) => sleeper.once('spawn', resolve))
  /** @type {Array<[number, RegExp]>} */
  const refusals = [
    [Number(gone.pid), /^longstack: There is no process \d+\.$/m],
    [0, /^longstack: There is no process 0\.$/m],
    [1e12, /^longstack: There is no process 1000000000000\.$/m],
    [Number(sleeper.pid), /^longstack: Process \d+ is not a Node process: it runs .*sleep.*\.$/m]
  ]
  if (process.allowedNodeEnvironmentFlags.has('--disable-sigusr1') && isInspectable) {
    const deaf = await start('--disable-sigusr1', app)
    refusals.push([deaf.pid, /^longstack: Process \d+ does not open its inspector on SIGUSR1: it was started with --disable-sigusr1/m])
  }
  for (const [pid, sentence] of refusals) {
    const { stdout, stderr, code } = await profile(pid)
    t.is(code, 1)
    t.is(stdout, '')
    t.regex(stderr, sentence)
    t.is(stderr.trim().split('\n').length, 1, stderr)
  }
  t.is(sleeper.exitCode, null, 'no signal was sent')
})

own('a process that ends meanwhile is reported in one sentence', async (t) => {
  const target = await start('--inspect-port=0', app)
  const recording = profile(target.pid, '--seconds', '60')
  while (!(await target.state()).enabled);
  target.child.kill('SIGKILL')
  const { stderr, code } = await recording
  t.is(code, 1)
  t.regex(stderr, /^longstack: Process \d+ ended, or closed its connection\.$/m)
})
