'use strict'

// Listeners may do anything in every event: disable, enable, throw, exit, remove and add listeners, call
// longstack again, block. The program continues, `trace.enabled` is correct, and nothing is left behind once
// tracing is off.

const test = require('ava')
const path = require('node:path')
const { node, program, root, runsAll } = require('../helpers/run')
const { watched } = require('../helpers/watchdog')

const table = path.join(__dirname, '..', 'fixtures', 'listeners', 'table.js')
const index = JSON.stringify(path.join(root, 'index.js'))

const events = [
  'span', 'span of a request', 'span that tracing leaves open', 'blocked', 'blocked, from inside', 'warning',
  'warning, while tracing is changed', 'listener of the process, while tracing is changed', 'init', 'before', 'after',
  'onError', 'formatter', 'intercept', 'function of a span'
]
/** Where parts of their own call listeners. */
const main = ['span', 'blocked', 'warning, while tracing is changed', 'init', 'onError', 'formatter']

/** @type {Array<[string, Record<string, string>, string[]]>} */
const ways = [
  ['native', {}, runsAll ? events : [...main, 'blocked, from inside']],
  ['js', { LONGSTACK_CAPTURE: 'js' }, runsAll ? main.filter((name) => name !== 'blocked') : ['init']]
]

for (const [name, env, tested] of ways) {
  for (const event of tested) {
    test(`${name}: a listener may do anything in ${event}`, async (t) => {
      const { stdout, stderr, code } = await node(['--expose-internals', table, event], { env })
      t.is(stdout, 'went on\n')
      t.is(code, 0, stderr)
    })
  }
}

for (const event of runsAll ? events : main.slice(0, 3)) {
  test(`a listener may end the process in ${event}`, async (t) => {
    const { stdout, code } = await node(['--expose-internals', table, event, 'disable and enable'])
    t.is(stdout, '')
    t.is(code, 7)
  })
}

watched(test, "a listener of 'blocked' turns tracing off", async (t) => {
  const { stdout, stderr, code } = await program(`const trace = require(${index})
    trace.on('blocked', () => trace.disable())
    trace.enable({ blocked: 20, capture: 'native' })
    const beat = setInterval(() => {
      const end = Date.now() + 100
      while (Date.now() < end);
      if (!trace.enabled) setTimeout(() => console.log('goes on'), 50)
      if (!trace.enabled) clearInterval(beat)
    }, 10)`, { preload: false })
  t.is(stdout, 'goes on\n', stderr)
  t.is(code, 0)
})

test('a warning during enable() is emitted at its end: a listener turns tracing off for good', async (t) => {
  const { stdout, stderr } = await program(`const trace = require(${index})
    const { OutgoingMessage } = require('node:http')
    const own = () => [process.listenerCount('exit'), OutgoingMessage.prototype._addHeaderLines]
    const before = own()
    const seen = []
    trace.on('warning', ({ code }) => {
      seen.push(code, trace.enabled)
      trace.disable()
    })
    trace.enable({ spans: '/nonexistent/x' })
    seen.push(trace.enabled)
    trace.disable()
    console.log(...seen, ...own().map((value, i) => value === before[i]))`, { preload: false })
  t.is(stdout, 'LONGSTACK_WARN_SPANS_ENOENT true false true true\n', stderr)
})

test('a listener that another one removes, or that re-adds itself, is called once per event', async (t) => {
  const { stdout, stderr } = await program(`const trace = require(${index})
    const calls = []
    let off
    function again () { calls.push('again'); off(); off = trace.on('span', again) }
    trace.on('span', () => { calls.push('first'); removeSecond() })
    const removeSecond = trace.on('span', () => calls.push('second'))
    off = trace.on('span', again)
    trace.enable()
    trace.span('one', () => {})
    setTimeout(() => console.log(calls.join()), 20)`, { preload: false })
  t.is(stdout, 'first,again\n', stderr)
})

test('a removed listener has received the spans that ended before', async (t) => {
  const { stdout, stderr } = await program(`const trace = require(${index})
    const http = require('node:http')
    trace.enable()
    const off = trace.on('span', ({ kind }) => console.log(kind))
    const server = http.createServer((request, response) => {
      response.on('finish', () => setImmediate(() => {
        off()
        console.log('removed')
        server.close()
      })).end()
    }).listen(0, () => http.get({ port: server.address().port, agent: false }, (response) => response.resume()))`, { preload: false })
  t.regex(stdout, /SERVER\n[^]*removed\n$/, stderr)
})

watched(test, 'tracing that is turned off on top of a hook leaves nothing in Node', async (t) => {
  const { stdout, stderr, code } = await program(`
    const { internalBinding } = require('internal/test/binding')
    const { async_hook_fields, getPromiseHooks } = internalBinding('async_wrap')
    const state = () => JSON.stringify([[...async_hook_fields].slice(0, 7), getPromiseHooks().map((hook) => typeof hook)])
    const { AsyncResource } = require('node:async_hooks')
    const trace = require(${index})
    const before = state()
    trace.on('blocked', ({ stillRunning }) => { if (stillRunning) trace.disable() })
    let offs = 0
    function round (left) {
      trace.enable({ blocked: 20, capture: 'native' })
      setTimeout(() => {
        const end = performance.now() + 1200
        while (trace.enabled && performance.now() < end) for (let i = 0; i < 100; i++) new AsyncResource('HOOKED')
        if (!trace.enabled) offs++
        trace.disable()
        setTimeout(() => {
          if (state() !== before) console.log(state(), before)
          if (offs < 4 && left > 0) round(left - 1)
          else console.log(offs)
        }, 20)
      }, 100)
    }
    round(20)`, { preload: false, args: ['--expose-internals'] })
  t.is(stdout, '4\n', stderr)
  t.is(code, 0)
})
