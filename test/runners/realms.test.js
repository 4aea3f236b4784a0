'use strict'

// One tracer per thread, seen from inside of a test: runners that make a realm per test file have modules,
// globals and a process of their own in it.

const test = require('ava')
const { preload, testRunners } = require('../helpers/runners')

const JEST = ['jest30', 'jest29']
const VITEST = ['vitest5', 'vitest4']
const POOLS = ['forks', 'threads', 'vmThreads', 'vmForks']

/** What a test file finds: RESULT, and JSON. */
const body = `
  function later () {
    return new Promise((resolve) => setTimeout(function tick () {
      const error = new RangeError('made by a timer')
      resolve({ stack: trace.stack(error), hops: trace.chain(error).map(({ label }) => label) })
    }, 2))
  }
  test('asks the tracer', async () => {
    const wasEnabled = trace.enabled
    if (!wasEnabled) trace.enable()
    const types = []
    const remove = trace.hook({ init: ({ type }) => { types.push(type) } })
    const { stack, hops } = await later()
    remove()
    const server = require('node:net').createServer().listen(0)
    const why = String(trace.why(server))
    server.close()
    const refused = (work) => { try { work() } catch (thrown) { return thrown.code } }
    console.log('RESULT' + JSON.stringify({
      wasEnabled,
      types,
      why,
      stack,
      hops,
      doctor: trace.doctor().enabled,
      accepted: trace.enable({ filter: ['*'], hide: /nowhere/ }) === trace && trace.enable(['*']) === trace,
      refused: refused(() => trace.enable({ filter: ['TPC'] })),
      awaited: await trace.span('own', async () => 7),
      again: typeof jest === 'object' ? (jest.resetModules(), require('longstack') === trace) : require('longstack') === trace,
      off: trace.disable().enabled,
      on: trace.enable().enabled
    }) + 'END')
  })`

/** @param {string} stdout @returns {any[]} one for each file that printed one */
function results (stdout) {
  return [...stdout.matchAll(/RESULT(.*?)END/gs)].map(([, text]) => JSON.parse(text))
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {any} result
 * @param {boolean} wasEnabled
 * @param {string} file a pattern
 */
function assertOneTracer (t, result, wasEnabled, file) {
  t.is(result.wasEnabled, wasEnabled)
  t.true(result.types.includes('Timeout'))
  t.regex(result.why, /^TCP server at /)
  t.is(result.hops[0], 'setTimeout(2)')
  t.regex(result.stack, new RegExp(`RangeError: made by a timer\n.*tick.*${file}:\\d+:\\d+`))
  const { doctor, accepted, refused, awaited, again, off, on } = result
  t.deepEqual({ doctor, accepted, refused, awaited, again, off, on }, {
    doctor: true,
    accepted: true,
    refused: 'LONGSTACK_ERR_UNKNOWN_SUBSYSTEM',
    awaited: 7,
    again: true,
    off: false,
    on: true
  })
}

for (const nodeOptions of [preload, '']) {
  const when = nodeOptions === '' ? 'without a preload' : 'with a preload'

  testRunners(test, JEST, `one tracer in all files, ${when}`, async (t, run) => {
    const source = `const trace = require('longstack')\n${body}`
    const { stdout, stderr, code } = await run({
      files: { 'a.test.js': source, 'b.test.js': source, 'jest.config.js': 'module.exports = {}' },
      args: ['-i'],
      nodeOptions
    })
    t.is(code, 0, stdout + stderr)
    const found = results(stdout + stderr)
    t.is(found.length, 2)
    found.forEach((result, i) => assertOneTracer(t, result, nodeOptions !== '' || i > 0, '[ab]\\.test\\.js'))
  })

  testRunners(test, JEST, `one tracer for modules of a realm, ${when}`, async (t, run) => {
    const { stdout, stderr, code } = await run({
      files: {
        'a.test.mjs': `import trace, { enable } from 'longstack'\nimport { createRequire } from 'node:module'\nimport { jest } from '@jest/globals'\nconst require = createRequire(import.meta.url)\nif (enable !== trace.enable) throw new Error('another object')\n${body}`,
        'jest.config.js': "module.exports = { testMatch: ['**/*.test.mjs'], transform: {} }"
      },
      nodeOptions: `${nodeOptions} --experimental-vm-modules --no-warnings`
    })
    t.is(code, 0, stdout + stderr)
    assertOneTracer(t, results(stdout + stderr)[0], nodeOptions !== '', 'a\\.test\\.mjs')
  })
}

for (const pool of POOLS) {
  testRunners(test, VITEST, `one tracer in all files, pool ${pool}`, async (t, run) => {
    const source = `import { test } from 'vitest'\nimport trace from 'longstack'\nimport { createRequire } from 'node:module'\nconst require = createRequire(import.meta.url)\n${body}`
    const files = { 'a.test.mjs': source, 'b.test.mjs': source }
    const args = ['run', '--pool', pool, '--maxWorkers', '1', '--no-isolate']
    const { stdout, stderr, code } = await run({ files, args })
    t.is(code, 0, stdout + stderr)
    const found = results(stdout + stderr)
    t.is(found.length, 2)
    for (const result of found) assertOneTracer(t, result, true, '[ab]\\.test\\.mjs')
  })
}

const REALMS = 12
const MAX_ALIVE = 4 // the one that counts, one that the runner or longstack has just looked at

testRunners(test, JEST, 'realms of files that enable tracing are collected', async (t, run) => {
  // The list is of the main realm, as any object of a realm keeps that one
  const source = (/** @type {boolean} */ isTraced) => `
    ${isTraced ? "require('longstack').enable()" : ''}
    test('keeps nothing', async () => {
      await new Promise((resolve) => setTimeout(resolve, 2))
      await Promise.all([1, 2].map(async () => String(new Error('read').stack)))
      const add = require('node:vm').runInThisContext('(realm) => (globalThis.realms ??= []).push(new WeakRef(realm))')
      if (add(globalThis) < ${REALMS}) return
      const inMain = require('node:vm').runInThisContext
      // longstack looks at a realm now and then, which keeps it for as long as a job takes (lib/stacks/realms.js)
      for (let i = 0; i < 200 && inMain('realms.filter((realm) => realm.deref()).length') > ${MAX_ALIVE}; i++) {
        await new Promise((resolve) => setTimeout(resolve, 50))
        inMain('gc')()
      }
      console.log('ALIVE ' + inMain('realms.filter((realm) => realm.deref()).length'))
    }, 120000)`
  const counts = await Promise.all([false, true].map(async (isTraced) => {
    const files = Object.fromEntries(Array.from({ length: REALMS }, (_, i) => [`${i}.test.js`, source(isTraced)]))
    const { stdout, stderr, code } = await run({
      files: { ...files, 'jest.config.js': 'module.exports = {}' }, args: ['-i'], nodeOptions: '--expose-gc'
    })
    t.is(code, 0, stdout + stderr)
    return Number(/ALIVE (\d+)/.exec(stdout + stderr)?.[1])
  }))
  t.log(`alive: ${counts[0]} bare, ${counts[1]} traced`)
  t.true(counts.every((count) => count <= MAX_ALIVE), String(counts))
})
