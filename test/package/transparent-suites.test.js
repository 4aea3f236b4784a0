'use strict'

// Transparent by other people's tests: the same names and states with and without the preload.
//
// Fastify's tests are many. In CI, and where SUITES=all is set, all its files run; else every third one.

const test = require('ava')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { compare, parseTap, parseMocha } = require('../helpers/compare-suites')
const { install } = require('../helpers/install-suites')

const SHARE = process.env.CI || process.env.SUITES === 'all' ? 1 : 3
const LIMIT_MS = 15 * 60_000

const { modules, offline } = install()

test('the comparison sees a difference, and leaves out what does not show again', async (t) => {
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
  suite('promises-aplus-tests', { passed: 872 }, {
    cwd: modules,
    files: [path.relative(modules, path.join(__dirname, '..', 'suites', 'promise-adapter.js'))],
    command: (file) => ['--unhandled-rejections=none', 'promises-aplus-tests/lib/cli.js', file, '--reporter', 'json'],
    parse: parseMocha
  })
  suite('light-my-request', { passed: 184 }, tapSuite('light-my-request', 1))
  suite('fastify', { passed: SHARE === 1 ? 2400 : 700 }, tapSuite('fastify', SHARE))
}

/**
 * @param {string} name
 * @param {{ passed: number }} least what an intact suite passes without longstack
 * @param {import('../helpers/compare-suites').Suite} what
 */
function suite (name, least, what) {
  test.serial(name, async (t) => {
    t.timeout(LIMIT_MS)
    const result = await compare(what, { progress: t.log })
    const { files, tests, passed, differences, unsteady, bareMs, tracedMs } = result
    t.log(`${files} files, ${tests} tests, ${passed} passed, ${differences.length} differences, ${unsteady.length} unsteady; ` +
      `${seconds(bareMs)} bare, ${seconds(tracedMs)} traced`)
    t.deepEqual(differences, [])
    t.true(passed >= least.passed, `${passed} tests passed, expected ${least.passed}`)
  })
}

/**
 * @param {string} name of a package that carries its tests
 * @param {number} share take one file of so many
 * @returns {import('../helpers/compare-suites').Suite}
 */
function tapSuite (name, share) {
  const cwd = path.join(/** @type {string} */ (modules), name)
  const all = fs.readdirSync(path.join(cwd, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.test\.m?js$/.test(file))
    .sort()
  return {
    cwd,
    files: all.filter((_, i) => i % share === 0).map((file) => path.join('test', file)),
    command: (file) => ['--test-reporter=tap', file],
    parse: parseTap
  }
}

/** @param {number} ms */
function seconds (ms) {
  return `${Math.round(ms / 1000)} s`
}
