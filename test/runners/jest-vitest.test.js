'use strict'

// longstack/jest and longstack/vitest: tests and files that leave handles open fail, others pass.

const test = require('ava')
const { testRunners } = require('../helpers/runners')

const JEST = ['jest30', 'jest29']
const VITEST = ['vitest5', 'vitest4']

/** Hooks around all tests: what tests leave open is judged after these. */
const around = `
  let shared
  beforeAll(() => { shared = net.createServer().listen(0) })
  afterAll(() => new Promise((resolve) => { shared.close(resolve) }))
`
/** Tests that leave nothing open. */
const closing = `
  const closedAfterwards = []
  afterEach(() => { for (const server of closedAfterwards.splice(0)) server.close() })

  test('closes', async () => {
    const server = net.createServer().listen(0)
    await new Promise((resolve) => { server.close(resolve) })
    await new Promise((resolve) => { setTimeout(resolve, 2) })
  })
  test('has it closed by a hook', () => { closedAfterwards.push(net.createServer().listen(0)) })
  test.skip('is skipped', () => { net.createServer().listen(0) })
  test.todo('is to be written')
  test('passes under fake timers', () => { fake(); setTimeout(() => {}, 60_000) })
  test('has real timers again', () => { real(); expect(1).toBe(1) })
`
const leaking = `
  test('leaks', () => { openOne() })
  test('fails by itself', () => { openOne(); throw new Error('its own failure') })
  test('leaks under fake timers', () => { fake(); openOne(); real() })
  function openOne () {
    return net.createServer().listen(0) // LINE
  }
`
const jestHead = "const net = require('node:net')\nconst fake = () => jest.useFakeTimers()\nconst real = () => jest.useRealTimers()\n"
const vitestHead = "import net from 'node:net'\nimport { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'\nconst fake = () => vi.useFakeTimers()\nconst real = () => vi.useRealTimers()\n"

/** @param {string} source @param {string} text */
function lineOf (source, text) {
  return source.slice(0, source.indexOf(text)).split('\n').length
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {import('../helpers/run').Result} result
 * @param {string} source
 * @param {string} file
 */
function assertLeaksReported (t, { stdout, stderr, code }, source, file) {
  const output = stdout + stderr
  t.is(code, 1, output)
  const place = `openOne (${file}:${lineOf(source, '// LINE')})`
  for (const name of ['leaks', 'fails by itself', 'leaks under fake timers']) {
    t.true(output.includes(`test '${name}' left 1 TCP server, opened at ${place}`), output)
  }
  t.regex(output, /its own failure/)
  t.notRegex(output, /test 'closes'|test 'has it closed|test 'passes under|file .* left/)
}

testRunners(test, JEST, 'the gate judges each test', async (t, run) => {
  const config = "module.exports = { setupFilesAfterEnv: ['longstack/jest'], forceExit: true }"
  const source = jestHead + closing + leaking
  const result = await run({ files: { 'a.test.js': source, 'jest.config.js': config }, nodeOptions: '' })
  assertLeaksReported(t, result, source, 'a.test.js')
  t.regex(result.stderr, /Tests: +3 failed, 1 skipped, 1 todo, 4 passed/)
})

testRunners(test, JEST, 'the gate passes, and judges files and concurrent tests', async (t, run) => {
  const config = "module.exports = { setupFilesAfterEnv: ['longstack/jest'], forceExit: true }"
  const files = {
    'jest.config.js': config,
    'fine.test.js': jestHead + around + closing,
    'file.test.js': `${jestHead}net.createServer().listen(0)\ntest('is fine', () => {})`,
    'concurrent.test.js': `${jestHead}
      const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
      test.concurrent('keeps', async () => { await sleep(5); net.createServer().listen(0); await sleep(5) })
      test.concurrent('is innocent', async () => { await sleep(20) })`
  }
  const { stdout, stderr, code } = await run({ files, nodeOptions: '', args: ['--maxWorkers=2'] })
  t.is(code, 1)
  t.regex(stderr, /PASS .*fine\.test\.js/, stdout + stderr)
  t.regex(stderr, /file file\.test\.js left 1 TCP server, opened at (Object\.<anonymous> \()?file\.test\.js:4/)
  t.regex(stderr, /test 'keeps' left 1 TCP server/)
  t.notRegex(stderr, /test 'is innocent'|test 'is fine'/)
  t.regex(stderr, /Test Suites: 2 failed, 1 passed/)
})

for (const pool of ['forks', 'vmThreads']) {
  testRunners(test, VITEST, `the gate judges each test, pool ${pool}`, async (t, run) => {
    const config = "export default { test: { setupFiles: ['longstack/vitest'] } }"
    const source = vitestHead + closing + leaking
    const files = {
      'a.test.js': source,
      'fine.test.js': vitestHead + around + closing,
      'file.test.js': `${vitestHead}net.createServer().listen(0)\ntest('is fine', () => {})`,
      'concurrent.test.js': `${vitestHead}
        const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
        test.concurrent('keeps', async () => { await sleep(5); net.createServer().listen(0); await sleep(5) })
        test.concurrent('is innocent', async () => { await sleep(20) })`,
      'vitest.config.mjs': config
    }
    const result = await run({ files, args: ['run', '--pool', pool, '--maxWorkers', '2'], nodeOptions: '' })
    const output = result.stdout + result.stderr
    assertLeaksReported(t, { ...result, stdout: output.replace(/file file\.test\.js left/, ''), stderr: '' }, source, 'a.test.js')
    t.regex(output, /file file\.test\.js left 1 TCP server, opened at .*file\.test\.js:5/)
    t.regex(output, /test 'keeps' left 1 TCP server/)
    t.notRegex(output, /test 'is innocent'|test 'is fine'/)
    t.regex(output, /Test Files +3 failed \| 1 passed/)
  })
}

const retried = `
  let attempts = 0
  test('is tried again', () => {
    if (++attempts === 1) { require('node:net').createServer().listen(0); throw new Error('first attempt') }
  })
  test('comes after', () => {})`

testRunners(test, JEST, 'what a failed attempt left open fails the file', async (t, run) => {
  const { stderr, code } = await run({
    files: {
      'a.test.js': `jest.retryTimes(1)\n${retried}`,
      'jest.config.js': "module.exports = { setupFilesAfterEnv: ['longstack/jest'] }"
    },
    nodeOptions: ''
  })
  t.is(code, 1, stderr)
  t.regex(stderr, /test 'is tried again', in an attempt before its last, left 1 TCP server, opened at .*a\.test\.js:5/)
  t.regex(stderr, /Tests: +2 passed/)
})

testRunners(test, VITEST, 'what a failed attempt left open fails the file', async (t, run) => {
  const { stdout, stderr, code } = await run({
    files: {
      'a.test.js': `import { test } from 'vitest'\nimport { createRequire } from 'node:module'\nconst require = createRequire(import.meta.url)${retried}`,
      'vitest.config.mjs': "export default { test: { retry: 1, setupFiles: ['longstack/vitest'] } }"
    },
    args: ['run'],
    nodeOptions: ''
  })
  t.is(code, 1, stdout + stderr)
  t.regex(stderr, /test 'is tried again', in an attempt before its last, left 1 TCP server, opened at .*a\.test\.js:6/)
  t.regex(stdout, /Tests +2 passed/)
})
