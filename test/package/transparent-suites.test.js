'use strict'

// Transparent by other people's tests: the same names and states with and without the preload. Fastify has
// 199 files of tests: all of them run where TESTS=all is set, as CI does for one version of Node; a sample
// runs elsewhere.

const test = require('ava')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { compare, parseTap, parseMocha } = require('../helpers/compare-suites')
const { install } = require('../helpers/install-suites')
const { runsAll } = require('../helpers/run')

const LIMIT_MS = 15 * 60_000

/** Fastify's files that use hooks, streams, contexts, errors and connections most. */
const sample = [
  'als', 'async-await', 'async_hooks', 'close', 'diagnostics-channel/async-request', 'handler-timeout', 'hooks',
  'hooks-async', 'http2/closing', 'https/https', 'internals/hook-runner', 'logger/logging', 'reply-error', 'route-hooks',
  'set-error-handler', 'stream.1', 'upgrade', 'web-api'
]

const { modules, offline } = install()

test('the comparison reports a difference, and leaves out what does not occur again', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-suites-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const { tests, passed, differences, unsteady } = await compare({
    cwd: folder,
    files: [path.join(__dirname, '..', 'suites', 'sample.js')],
    command: (file) => ['--test-reporter=tap', file, path.join(folder, 'memory')],
    parse: parseTap
  })
  t.is(tests, 7)
  t.is(passed, 5)
  t.deepEqual(differences.map(({ name, bare, traced }) => [name, bare, traced]), [['sees longstack', 'ok', 'not ok']])
  t.deepEqual(unsteady.map(({ name, bare, traced }) => [name, bare, traced]), [['differs once', 'ok', 'not ok']])
})

if (modules === undefined) {
  console.log(`Other people's tests are not run: ${offline}`)
} else {
  suite('promises-aplus-tests', 872, {
    cwd: modules,
    files: [path.relative(modules, path.join(__dirname, '..', 'suites', 'promise-adapter.js'))],
    command: (file) => ['--unhandled-rejections=none', 'promises-aplus-tests/lib/cli.js', file, '--reporter', 'json'],
    parse: parseMocha
  })
  suite('light-my-request', 184, tapSuite('light-my-request'))
  if (runsAll) suite('fastify', 2400, tapSuite('fastify'))
  else suite('fastify, a sample', 420, tapSuite('fastify', sample))
}

/**
 * Declares the test of a suite.
 * @param {string} name
 * @param {number} minPassed tests that an intact suite passes without longstack
 * @param {import('../helpers/compare-suites').Suite} files
 */
function suite (name, minPassed, files) {
  test.serial(name, async (t) => {
    t.timeout(LIMIT_MS)
    const { tests, passed, differences, unsteady, bareMs, tracedMs } = await compare(files, {
      progress: t.log
    })
    const counts = `${files.files.length} files, ${tests} tests, ${passed} passed`
    const found = `${differences.length} differences, ${unsteady.length} unsteady`
    t.log(`${counts}, ${found}; ${seconds(bareMs)} bare, ${seconds(tracedMs)} traced`)
    t.deepEqual(differences, [])
    t.true(passed >= minPassed, `${passed} tests passed, expected ${minPassed}`)
  })
}

/**
 * Describes a package that carries its tests.
 * @param {string} name
 * @param {string[]} [chosen] names of its files of tests, by default all
 * @returns {import('../helpers/compare-suites').Suite}
 */
function tapSuite (name, chosen) {
  const cwd = path.join(/** @type {string} */ (modules), name)
  const all = fs.readdirSync(path.join(cwd, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.test\.m?js$/.test(file))
    .sort()
  return {
    cwd,
    files: (chosen?.map((file) => `${file}.test.js`) ?? all).map((file) => path.join('test', file)),
    command: (file) => ['--test-reporter=tap', file],
    parse: parseTap
  }
}

/** @param {number} ms */
function seconds (ms) {
  return `${Math.round(ms / 1000)} s`
}
