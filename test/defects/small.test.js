'use strict'

// Small defects found by trying to break longstack.

const test = require('ava')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { program } = require('../helpers/run')

const INDEX = path.join(__dirname, '..', '..', 'index.js')

/** @param {import('ava').ExecutionContext} t @param {string} name @param {string} [text] */
function file (t, name, text) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-small-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  if (text !== undefined) fs.writeFileSync(path.join(folder, name), text)
  return path.join(folder, name)
}

test('a type chosen by the program cannot forge frames or send escapes to a terminal', async (t) => {
  const { stdout, stderr } = await program(`
    const { AsyncResource } = require('node:async_hooks')
    const resource = new AsyncResource('\\x1b[31m\\u202e\\n    at fake (x.js:1:1)')
    resource.runInAsyncScope(() => setTimeout(() => console.log(new Error('x').stack), 1))`)
  t.is(stderr, '')
  t.regex(stdout, /new AsyncResource/)
  t.notRegex(stdout, /[\x1b\u202e]/) // eslint-disable-line no-control-regex
  t.notRegex(stdout, /^\s+at fake/m)
})

for (const capture of ['auto', 'js']) {
  test(`${capture}: functions of one place have their current names`, async (t) => {
    const { stdout, stderr } = await program(`
      const make = () => function () { setTimeout(() => console.log(/ at (job|sendMail) /.exec(new Error('x').stack)[1]), 1) }
      const [first, second] = [make(), make()]
      Object.defineProperty(first, 'name', { value: 'job', configurable: true })
      first()
      setTimeout(() => {
        Object.defineProperty(second, 'name', { value: 'sendMail' })
        second()
        Object.defineProperty(first, 'name', { value: 'sendMail' })
        first()
      }, 20)`, { env: { LONGSTACK_CAPTURE: capture } })
    t.is(stdout, 'job\nsendMail\nsendMail\n', stderr)
  })
}

test('a rejection of a value by the main script has a place', async (t) => {
  const { stderr } = await program('function start () { Promise.reject("plain string") }\nstart()')
  t.regex(stderr, /── Promise\.reject .*── *\n +at start /)
})

for (const spans of [undefined, 'spans.jsonl']) {
  const way = spans === undefined ? 'without spans' : 'with spans'
  test(`no event is emitted for a resource without an init event, ${way}`, async (t) => {
    const env = spans === undefined ? {} : { LONGSTACK_SPANS: file(t, spans) }
    const { stdout, stderr } = await program(`
      const { createHook } = require('node:async_hooks')
      const known = new Set()
      const strange = []
      createHook({
        init (id) { known.add(id) },
        before (id) { if (!known.has(id)) strange.push('before ' + id) },
        after (id) { if (!known.has(id)) strange.push('after ' + id) },
        destroy (id) { if (!known.has(id)) strange.push('destroy ' + id) }
      }).enable()
      setTimeout(() => setImmediate(() => console.log(strange.join())), 5)`, { env })
    t.is(stdout, '\n', stderr)
  })
}

/** @type {Array<[string, Record<string, string>]>} */
const modes = [['full', {}], ['js', { LONGSTACK_CAPTURE: 'js' }]]
for (const [mode, env] of modes) {
  test(`${mode}: longstack uses no finalizers, as V8 runs one registry per task and would delay the program's`, async (t) => {
    const shim = file(t, 'shim.js', `
      let count = 0
      global.FinalizationRegistry = class extends FinalizationRegistry {
        register (...args) { count++; return super.register(...args) }
      }
      process.on('exit', () => console.log(count))`)
    const { stdout, stderr } = await program(`
      const trace = require(${JSON.stringify(INDEX)})
      const server = require('node:http').createServer((request, response) => response.end('ok'))
      server.listen(0, () => require('node:http').get({ port: server.address().port, agent: false }, (response) => {
        response.resume().on('close', () => {
          server.close()
          trace.handles()
          trace.why(server)
          new Error('x').stack
        })
      }))`, { env: { ...env, NODE_OPTIONS: `-r "${shim}"`, LONGSTACK_SPANS: file(t, 'spans.jsonl') } })
    t.is(stdout, '0\n', stderr)
  })
}

test('errors: false leaves stacks unchanged, and trace.stack(error) has the chain', async (t) => {
  const { stdout, stderr } = await program(`
    const trace = require(${JSON.stringify(INDEX)})
    setTimeout(function later () {
      const error = new Error('x')
      console.log(/ ── /.test(error.stack), / ── setTimeout\\(1\\) /.test(trace.stack(error)))
    }, 1)`, { env: { LONGSTACK_ERRORS: '0' } })
  t.is(stdout, 'false true\n', stderr)
})
