'use strict'

// longstack's own threads and their effects on a program.

const test = require('ava')
const fs = require('node:fs')
const path = require('node:path')
const { node, root } = require('../helpers/run')
const { folder } = require('../helpers/sinks')

const file = path.join(root, 'lib', 'own-thread.js')

/**
 * Runs a program that starts a thread, which answers with what it is told to look for.
 * @param {import('ava').ExecutionContext} t
 * @param {string} seen an expression of the thread
 * @param {string} source of the program; `thread` is there, and `start`, which returns one
 * @param {{ args?: string[], env?: Record<string, string> }} [options]
 */
async function run (t, seen, source, { args = [], env } = {}) {
  const dir = folder(t)
  const script = path.join(dir, 'thread.js')
  fs.writeFileSync(script, `
    const { parentPort, workerData } = require('node:worker_threads')
    parentPort.on('message', (message) => { if (message === 'fail') throw new Error('bad'); parentPort.postMessage(${seen}) })`)
  return node([...args, '-e', `
    const { startThread } = require(${JSON.stringify(file)})
    const ended = []
    const start = () => startThread(${JSON.stringify(script)}, { name: 'test', workerData: { a: 1 }, heap: 64 }, (error) => ended.push(String(error?.message)))
    const ask = (thread) => new Promise((resolve) => { thread.once('message', resolve); thread.unref(); thread.postMessage('tell') })
    ${source}`], { env, cwd: dir })
}

test('the thread emits no events, other threads do', async (t) => {
  const { stdout, stderr } = await run(t, '1', `
    const seen = []
    process.on('worker', () => seen.push('worker'))
    require('node:diagnostics_channel').subscribe('worker_threads', () => seen.push('channel'))
    const before = [process.listenerCount('exit'), Object.getOwnPropertyDescriptor(process, 'nextTick').value, process.eventNames().length]
    const ticks = []
    process.nextTick(() => ticks.push(1))
    const thread = start()
    process.nextTick(() => ticks.push(2))
    const after = [process.listenerCount('exit'), Object.getOwnPropertyDescriptor(process, 'nextTick').value, process.eventNames().length]
    const resources = [process.getActiveResourcesInfo(), process._getActiveHandles().length]
    setTimeout(async () => {
      const own = [...seen]
      const { Worker } = require('node:worker_threads')
      new Worker('0', { eval: true }).on('exit', () => {
        console.log(JSON.stringify([own, seen, before.every((one, i) => one === after[i]), ticks, resources]))
      })
    }, 20)`)
  t.is(stderr, '')
  const [own, others, isSame, ticks, resources] = JSON.parse(stdout)
  t.deepEqual([own, isSame, ticks, resources], [[], true, [1, 2], [[], 0]])
  t.true(others.includes('worker'))
})

test('the process ends while it runs, with its own exit code', async (t) => {
  const { code, stdout, stderr } = await run(t, '1', `
    const thread = start()
    setTimeout(() => { process.exitCode = 3; console.log(ended.length) }, 20)`)
  t.deepEqual([code, stdout, stderr], [3, '0\n', ''])
})

test("settings for the program's threads do not reach it", async (t) => {
  const dir = folder(t)
  const preload = path.join(dir, 'preload.js')
  fs.writeFileSync(preload, "require('node:fs').writeSync(2, 'loaded ')")
  const { code, stdout, stderr } = await run(t,
    '[process.execArgv, process.argv.length, Object.keys(process.env).filter((name) => /^(NODE_|LONGSTACK)/.test(name)), process.env.MINE]', `
    const thread = start()
    ;(async () => { console.log(JSON.stringify(await ask(thread))) })()
    setTimeout(() => process.exit(), 2000)`,
    {
      args: ['--cpu-prof', `--cpu-prof-dir=${dir}`],
      env: { NODE_OPTIONS: `-r ${preload}`, NODE_V8_COVERAGE: path.join(dir, 'coverage'), NODE_EXTRA_CA_CERTS: '', LONGSTACK_SOCKET: 'x', MINE: '1' }
    })
  t.deepEqual([code, stderr], [0, 'loaded '])
  t.deepEqual(JSON.parse(stdout), [[], 2, ['NODE_EXTRA_CA_CERTS'], '1'])
  t.is(fs.readdirSync(dir).filter((name) => name.endsWith('.cpuprofile')).length, 1)
  t.is(fs.readdirSync(path.join(dir, 'coverage')).length, 1)
})

test('its creator learns how it ended', async (t) => {
  const { code, stdout, stderr } = await run(t, '1', `
    start().postMessage('fail')
    start().terminate()
    const timer = setInterval(() => {
      if (ended.length < 3) return
      clearInterval(timer)
      console.log(JSON.stringify(ended.sort()))
    }, 10)`)
  t.deepEqual([code, stderr], [0, ''])
  t.deepEqual(JSON.parse(stdout), ['bad', 'undefined', 'undefined'])
})
