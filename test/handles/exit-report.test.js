'use strict'

// The option whyExit prints on stderr why the process ended; output, exit code and signal stay the same.

const test = require('ava')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const path = require('node:path')
const { program, register, root } = require('../helpers/run')

const env = { LONGSTACK_WHY_EXIT: '1' }
const index = JSON.stringify(path.join(root, 'index.js'))
const threads = "const { Worker, isMainThread } = require('node:worker_threads')\n"

/** @param {string} source @param {object} [options] */
const run = (source, options = {}) => program(source, { ...options, env: { ...env, ...options.env } })

test('process.exit: the caller and its chain are reported', async (t) => {
  const { stdout, stderr, code } = await run(`
    process.on('exit', (code) => console.log('exit', code))
    function checkLicence () { process.exit(3) }
    setTimeout(function daily () { checkLicence() }, 1)
    setTimeout(() => {}, 1e6)`)
  t.is(stdout, 'exit 3\n')
  t.is(code, 3)
  t.regex(stderr, /^longstack: process ended by process\.exit\(3\)\n {4}at checkLicence .*\n {4}at daily .*\n {2}── setTimeout\(1\) .*\n.*\n$/)
})

test('a process.exit that does not end the process is not reported, the one that does is', async (t) => {
  const { stdout, stderr, code } = await run(`
    const { exit } = process
    process.exit = (code) => console.log('replaced', code)
    process.exit(3)
    process.exit = exit
    try { process.exit('abc') } catch (error) { console.log(error.code) }
    process.once('exit', function first () { throw new Error('of a listener') })
    process.on('uncaughtException', (error) => console.log(error.message))
    process.on('exit', function last () { if (process.exitCode === 5) process.exit(6) })
    setImmediate(() => process.exit(5))`)
  t.is(stdout, 'replaced 3\nERR_INVALID_ARG_TYPE\nof a listener\n')
  t.is(code, 6)
  t.regex(stderr, /^longstack: process ended by process\.exit\(6\)\n {4}at last .*\n$/)
})

test('process.abort and process.kill of the process itself are reported', async (t) => {
  if (process.platform === 'win32') return t.pass()
  const aborted = await run('setImmediate(function crash () { process.abort() })')
  t.is(aborted.signal, 'SIGABRT')
  t.regex(aborted.stderr, /^longstack: process ended by process\.abort\(\)\n {4}at crash /m)
  const killed = await run(`
    process.kill(process.pid, 0)
    process.on('SIGHUP', () => process.kill(process.pid, 'SIGTERM'))
    setTimeout(() => {}, 1e6)
    process.kill(process.pid, 'SIGHUP')`)
  t.is(killed.signal, 'SIGTERM')
  t.regex(killed.stderr, /^longstack: process ended by process\.kill\(process\.pid, 'SIGTERM'\)\n {4}at .*program\.cjs:3/)
  t.is(killed.stderr.match(/longstack:/g)?.length, 1)
})

/** @param {NodeJS.Signals} signal @param {string} [source] @param {object} [more] environment */
async function endedBy (signal, source = '', more = {}) {
  const text = `${source}; process.stdout.write('ready'); setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['-r', register, '-e', text], { env: { ...process.env, ...env, ...more } })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (part) => { stderr += part })
  await once(child.stdout, 'data')
  child.kill(signal)
  const [code, by] = await once(child, 'close')
  return { stderr, code, by }
}

const hasSignals = process.platform !== 'win32' && process.env.ENGINE !== 'js'

test('a signal is reported with its sender, and ends the process as before', async (t) => {
  if (!hasSignals) return t.pass()
  for (const signal of /** @type {NodeJS.Signals[]} */ (['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2'])) {
    const { stderr, code, by } = await endedBy(signal)
    t.deepEqual([code, by], [null, signal])
    t.true(stderr.startsWith(`longstack: process ended by ${signal}, sent by process ${process.pid}`), stderr)
  }
})

test('a signal that the program handles does not end it; nothing remains when the option is off', async (t) => {
  if (!hasSignals) return t.pass()
  const heard = await endedBy('SIGTERM', "process.on('SIGTERM', function onTerm () { process.exit(9) })")
  t.is(heard.code, 9)
  t.regex(heard.stderr, /^longstack: process ended by process\.exit\(9\)\n {4}at onTerm /)
  const off = await endedBy('SIGTERM', `require(${index}).disable()`)
  t.deepEqual(off, { stderr: '', code: null, by: 'SIGTERM' })
})

const hangs = `
  async function waitForReply () { await new Promise(() => {}) }
  async function main () { await waitForReply(); console.log('never') }
  main()`
const pending = /^longstack: process ended because the event loop is empty, but one await is pending:\n1 × await at waitForReply .*\n {2}── await .*\n {4}at waitForReply .*\n {4}at main /

test('the event loop runs empty during an await', async (t) => {
  const { stdout, stderr, code } = await run(hangs)
  t.deepEqual([stdout, code], ['', 0])
  t.regex(stderr, pending)
  const js = await run(hangs, { env: { LONGSTACK_CAPTURE: 'js', LONGSTACK_ERRORS: 'off' } })
  t.regex(js.stderr, pending)
})

test('a top-level await: exit code 13, and what it awaits', async (t) => {
  const { stderr, code } = await run(`
    async function load () { await new Promise(() => {}) }
    await load()`, { type: 'mjs' })
  t.is(code, 13)
  t.regex(stderr, /^longstack: process ended because [^]*\n1 × await at load /m)
})

test('the report is printed once, when the process really ends', async (t) => {
  const { stdout, stderr, code } = await run(`
    let rounds = 0
    let settle
    async function waits () { await new Promise((resolve) => { settle = resolve }); console.log('settled') }
    process.on('beforeExit', () => { if (rounds++ === 0) setTimeout(() => settle(), 1) })
    process.exitCode = 5
    waits()`)
  t.deepEqual([stdout, stderr, code], ['settled\n', '', 5])
})

test('nothing is printed if nothing is awaited, a race is over, or Node prints an error', async (t) => {
  const done = await run(`
    async function main () {
      await Promise.race([new Promise((resolve) => setTimeout(resolve, 1)), new Promise(() => {})])
      const { Readable } = require('node:stream')
      for await (const part of Readable.from(['a'])) console.log(part)
    }
    main()`)
  t.deepEqual([done.stdout, done.stderr, done.code], ['a\n', '', 0])
  const failed = await run(`${hangs}\nsetTimeout(() => { throw new Error('told by Node') }, 1)`)
  t.is(failed.code, 1)
  t.regex(failed.stderr, /Error: told by Node/)
  t.notRegex(failed.stderr, /longstack:/)
})

test('a worker has its own process.exit and its own loop', async (t) => {
  const exited = await run(`${threads}
    if (isMainThread) new Worker(__filename).on('exit', (code) => console.log(code))
    else setImmediate(function giveUp () { process.exit(7) })`)
  t.is(exited.stdout, '7\n')
  t.regex(exited.stderr, /^longstack: thread 1 ended by process\.exit\(7\)\n {4}at giveUp [^]*── new Worker /)
  const empty = await run(`${threads}
    if (isMainThread) new Worker(__filename).on('exit', (code) => console.log(code))
    else {${hangs}}`)
  t.is(empty.stdout, '0\n')
  t.regex(empty.stderr, /^longstack: thread 1 ended because the event loop is empty, but one await is pending:\n1 × await at waitForReply /)
})

test('the option is off by default, and leaves Node\'s functions unchanged', async (t) => {
  const source = `
    const own = [process.exit, process.reallyExit, process.kill, process.abort]
    const trace = require(${index})
    trace.enable({ whyExit: true })
    const wrapped = [process.exit, process.reallyExit, process.kill, process.abort]
    console.log(own.every((f, i) => f !== wrapped[i] && f.name === wrapped[i].name && f.length === wrapped[i].length && ('prototype' in f) === ('prototype' in wrapped[i])))
    trace.disable()
    console.log(own.every((f, i) => f === [process.exit, process.reallyExit, process.kill, process.abort][i]), process.listenerCount('beforeExit'))
    process.exit(4)`
  const { stdout, stderr, code } = await program(source, { preload: false })
  t.deepEqual([stdout, stderr, code], ['true\ntrue 0\n', '', 4])
})
