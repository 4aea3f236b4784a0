'use strict'

// Which functions allocated what the heap keeps, in recordings, and beside a program that samples its heap
// itself.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const http = require('node:http')
const path = require('node:path')
const { createInterface } = require('node:readline')
const { text } = require('node:stream/consumers')
const test = require('ava')
const { framesOf, growthOf } = require('../../lib/record/growth-text')
const { loadBinding } = require('../../lib/stacks/binding')
const { holderOfBuffers } = require('../../report/aggregate/verdict/memory')
const { inherited, node, program, register, root } = require('../helpers/run')
const { folder } = require('../helpers/sinks')

const hasEngine = loadBinding().binding !== undefined && process.env.ENGINE !== 'js'
const where = hasEngine && process.platform !== 'win32' ? test : test.skip
const service = path.join(root, 'test', 'fixtures', 'box', 'service.js')
const cli = path.join(root, 'lib', 'cli', 'main.js')
const FULL = 47e6 // bytes of the heap, with garbage; of 60 MiB

/** @param {number} port @param {string} url @returns {Promise<string>} */
const ask = (port, url) => new Promise((resolve, reject) => {
  http.get({ port, path: url, host: '127.0.0.1' }, (response) => resolve(text(response))).on('error', reject)
})

where('a recording names the function that fills the heap, and its route', async (t) => {
  const file = path.join(folder(t), 'app.rec')
  const child = spawn(process.execPath, ['-r', register, '--max-old-space-size=60', service], {
    env: { ...inherited, LONGSTACK_RECORD: file }, stdio: ['ignore', 'pipe', 'inherit']
  })
  t.teardown(() => { child.kill('SIGKILL') })
  const [line] = await once(createInterface(child.stdout), 'line')
  const port = Number(line.split(' ')[1])
  /** @type {number[]} */
  let used = []
  while (used.length < 5 || Math.min(...used) < FULL) {
    used = [...used.slice(-4), Number(await ask(port, '/leak'))]
    for (let i = 0; i < 10; i++) await ask(port, '/garbage')
  }
  // A look at the heap comes once a second, later on a busy machine
  for (const end = Date.now() + 3000; Date.now() < end;) await ask(port, '/garbage')
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
  const { stdout } = await node([cli, 'report', file, '--json'])
  const { verdict } = JSON.parse(stdout)
  const finding = verdict.find((/** @type {any} */ { figures }) => figures.heldAt !== undefined)
  t.true(['filling', 'collects'].includes(finding?.rule), JSON.stringify(verdict))
  t.regex(finding.figures.heldAt, /^keepRows \(.*service\.js:/)
  t.is(finding.figures.heldBy, 'GET /leak')
  t.regex(finding.sentence, /% of the \d+ MB that it kept since sampling began were allocated by keepRows \(service\.js:\d+\)/)
})

where('a program that samples its own heap is not disturbed, and no line is printed', async (t) => {
  const file = path.join(folder(t), 'app.rec')
  const { stdout, code } = await program(`
    const { Session } = require('node:inspector')
    const session = new Session()
    session.connect()
    session.post('HeapProfiler.startSampling', { samplingInterval: 4096 })
    const kept = []
    function keep () { kept.push(Array.from({ length: 20000 }, (_, i) => ({ i }))) }
    const timer = setInterval(() => {
      for (let i = 0; i < 3; i++) keep()
      if (kept.length < 45) return
      clearInterval(timer)
      session.post('HeapProfiler.stopSampling', (error, { profile }) => {
        const names = JSON.stringify(profile.head)
        console.log(error, names.includes('"functionName":"keep"'))
      })
    }, 100)`, { args: ['--max-old-space-size=60'], env: { LONGSTACK_RECORD: file } })
  t.deepEqual([stdout, code], ['null true\n', 0])
  const { stdout: report } = await node([cli, 'report', file, '--json'])
  for (const { figures } of JSON.parse(report).verdict) t.is(figures.heldAt, undefined)
})

test('a route is named for Buffers only if it allocated the most, code outside of requests included', (t) => {
  const model = /** @type {any} */ ({ routes: [], tree: { children: [] } })
  const held = { growth: [], sampled: 0, buffers: [{ request: 'GET /upload', bytes: 60e6, at: 'save (a.js:1:1)' }] }
  t.is(holderOfBuffers({ ...held, allocated: 500e6 }, model).heldBy, undefined)
  const { heldBy, heldShare, heldAt } = holderOfBuffers({ ...held, allocated: 80e6 }, model)
  t.deepEqual([heldBy, heldShare, heldAt], ['GET /upload', 0.75, 'save (a.js:1:1)'])
})

test('places of samples are parsed from text, even truncated text', (t) => {
  const places = '2048\n    at a (/x/1\n2.js:1:2)\n    at /y.js:3:4\n1024\n    at b (node:fs:1:2)\n    at c'
  t.deepEqual(growthOf(places), [
    { bytes: 2048, frames: ['a (/x/1', '/y.js:3:4'] },
    { bytes: 1024, frames: ['b (node:fs:1:2)', 'c'] }
  ])
  t.deepEqual(growthOf(''), [])
  t.deepEqual(framesOf('x\n    at f (a.js:1:1)\n'), ['f (a.js:1:1)'])
})
