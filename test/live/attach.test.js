'use strict'

// longstack attach: the command's output and exit; afterwards the attached process is as before, even if the
// command was killed.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { attachOften } = require('../../fuzz/attach')
const { node, register, root, runsAll } = require('../helpers/run')
const { patient } = require('../helpers/starved')
const { recordsOf } = require('../helpers/records')

const main = path.join(root, 'lib', 'cli', 'main.js')
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-attach-test-'))
const isInspectable = process.platform === 'linux'
const own = isInspectable ? patient(test) : test.skip
const WITHIN_MS = 30_000

const app = path.join(directory, 'app.js')
fs.writeFileSync(app, `
  const http = require('node:http')
  const { isMainThread, Worker } = require('node:worker_threads')
  const hang = async () => { await new Promise(() => {}) }
  const block = () => { for (const end = performance.now() + 60; performance.now() < end;); }
  if (isMainThread) {
    new Worker(__filename)
    const server = http.createServer(async (request, response) => {
      if (request.url === '/block') block()
      if (request.url === '/hang') await hang()
      if (request.url === '/end') process.exit(3)
      response.end('answer')
    }).listen(0, '127.0.0.1', () => console.log(server.address().port))
  } else {
    setInterval(function beat () {}, 20)
  }
  setInterval(() => {
    if (!isMainThread) return
    const tracer = process.getBuiltinModule('async_hooks')[Symbol.for('longstack.tracer.3')]?.tracer
    const { enabled = false, options = {} } = tracer?.settings ?? {}
    console.log(JSON.stringify({
      enabled,
      frames: enabled ? options.frames : undefined,
      spans: enabled && options.spans !== undefined,
      inspector: process.getBuiltinModule('inspector').url() ?? 'closed',
      formatter: typeof Error.prepareStackTrace
    }))
  }, 50)
`)

/** @type {Array<import('node:child_process').ChildProcess>} */
const children = []
test.afterEach.always(() => { for (const child of children.splice(0)) child.kill('SIGKILL') })
test.after.always(() => fs.rmSync(directory, { recursive: true, force: true }))

/**
 * Starts a program of Node.
 * @param {string[]} args
 * @param {Record<string, string>} [env]
 */
function start (args, env = {}) {
  const child = spawn(process.execPath, args, { env: { ...process.env, ...env } })
  children.push(child)
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text) => { output.stdout += text })
  child.stderr.setEncoding('utf8').on('data', (text) => { output.stderr += text })
  const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal })))
  return { child, pid: Number(child.pid), output, ended }
}

/** @param {string[]} [flags] of node @param {Record<string, string>} [env] */
async function startApp (flags = [], env = {}) {
  const target = start(['--inspect-port=0', ...flags, app], env)
  await until(() => target.output.stdout.split('\n').length > 2, () => target.output.stderr)
  const url = `http://127.0.0.1:${target.output.stdout.split('\n', 1)[0]}`
  /** The state that the program printed last. */
  const state = () => JSON.parse(/** @type {string} */ (target.output.stdout.split('\n').at(-2)))
  return { ...target, url, state, before: state() }
}

/** @param {() => boolean} isSo @param {() => unknown} [describe] */
async function until (isSo, describe = () => '') {
  for (const end = performance.now() + WITHIN_MS; !isSo();) {
    if (performance.now() > end) throw new Error(`waited in vain: ${describe()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** @param {Awaited<ReturnType<typeof startApp>>} target @param {string[]} flags */
async function attach (target, ...flags) {
  const command = start([main, 'attach', ...flags, String(target.pid)])
  await until(() => /Ctrl-C detaches/.test(command.output.stdout), () => command.output.stderr)
  await until(() => target.state().enabled, () => JSON.stringify(target.state()))
  return command
}

/** @param {import('ava').ExecutionContext} t @param {Awaited<ReturnType<typeof startApp>>} target */
async function isAsBefore (t, target) {
  const isSame = () => JSON.stringify(target.state()) === JSON.stringify(target.before)
  await until(isSame, () => target.output.stdout.slice(-300)).catch(() => {})
  t.deepEqual(target.state(), target.before)
  t.is(target.before.inspector, 'closed')
}

own('Ctrl-C detaches and prints handles opened meanwhile; spans are whole lines', async (t) => {
  const target = await startApp()
  const file = path.join(directory, `spans-${target.pid}.ndjson`)
  const command = await attach(target, '--spans', file)
  t.true(target.state().spans)
  t.is(target.state().formatter, 'function')
  t.is(target.state().inspector, 'closed', 'while attached')
  for (let i = 0; i < 5; i++) t.is(await (await fetch(target.url)).text(), 'answer')
  fetch(`${target.url}/hang`).catch(() => {})
  const hasSpans = () => fs.existsSync(file) && fs.readFileSync(file, 'utf8').split('\n').length > 5
  await until(hasSpans, () => target.output.stderr)
  command.child.kill('SIGINT')
  t.deepEqual(await command.ended, { code: 0, signal: null })
  t.regex(command.output.stderr, /^Detached\.$/m)
  t.regex(command.output.stdout, /TCP connection, server/)
  await isAsBefore(t, target)
  const text = fs.readFileSync(file, 'utf8')
  t.true(text.endsWith('\n'))
  const spans = recordsOf(text)
  t.true(spans.filter(({ attributes }) => attributes['url.path'] === '/').length >= 5)
})

own('a killed command restores the process and its options', async (t) => {
  const target = await startApp(['-r', register], { LONGSTACK_FRAMES: '7' })
  t.like(target.before, { enabled: true, frames: 7, spans: false })
  const file = path.join(directory, `killed-${target.pid}.ndjson`)
  const command = await attach(target, '--spans', file)
  await until(() => target.state().spans)
  t.is(target.state().frames, 7)
  command.child.kill('SIGKILL')
  await isAsBefore(t, target)
  const bare = await startApp()
  const second = await attach(bare)
  second.child.kill('SIGKILL')
  await isAsBefore(t, bare)
})

own('if the process ends meanwhile, the command says so, with exit code 0', async (t) => {
  const target = await startApp()
  const command = await attach(target)
  fetch(`${target.url}/end`).catch(() => {})
  const { code } = /** @type {any} */ (await command.ended)
  t.is((/** @type {any} */ (await target.ended)).code, 3, 'its own code')
  t.regex(command.output.stderr, new RegExp(`^longstack: process ${target.pid} has ended\\.$`, 'm'))
  t.is(code, 0)
})

own('it prints what blocks the event loop', async (t) => {
  const target = await startApp()
  const command = await attach(target, '--blocked', '30')
  await until(() => {
    fetch(`${target.url}/block`).then((response) => response.text()).catch(() => {})
    return /blocked/.test(command.output.stdout)
  }, () => command.output.stdout)
  await until(() => /block \(.*app\.js/.test(command.output.stdout), () => command.output.stdout)
  t.is(target.output.stderr.replace(/^(Debugger|For help).*\n/gm, ''), '', 'the process prints nothing')
  command.child.kill('SIGINT')
  await command.ended
  await isAsBefore(t, target)
})

own('longstack why shows openers and pending awaits of an attached process and its worker', async (t) => {
  const target = await startApp()
  const command = await attach(target)
  fetch(`${target.url}/hang`).catch(() => {})
  let answer = ''
  for (let i = 0; i < 5 && !/hang \(.*app\.js/.test(answer); i++) {
    const { stdout, stderr, code } = await node([main, 'why', String(target.pid)])
    t.is(code, 0, stderr)
    answer = stdout
  }
  t.regex(answer, /with 1 worker/)
  t.notRegex(answer, /not traced/)
  t.regex(answer, /hang \(.*app\.js/)
  t.regex(answer, /GET \/hang/)
  t.true(target.state().enabled, 'longstack why detaches nothing of another command')
  command.child.kill('SIGINT')
  await command.ended
  await isAsBefore(t, target)
})

const count = runsAll ? 48 : 10
const often = isInspectable ? test.serial : test.serial.skip
for (const isPreloaded of [false, true]) {
  const subject = isPreloaded ? 'a preloaded process' : 'a bare process'
  often(`it attaches to ${subject} ${count} times under load, and leaves nothing behind`, async (t) => {
    const settings = { seed: 20261123, count, isPreloaded, commandEvery: 12 }
    const { findings, requests, done } = await attachOften(settings)
    t.deepEqual(findings, [])
    t.is(done, count)
    t.true(requests > count)
  })
}
