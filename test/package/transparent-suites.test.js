'use strict'

// Transparency checked by other projects' test suites: the same test names and states with and without the
// preload. Runs of long suites without it are recorded (test/suites/record-bare.js). All packages run if
// TESTS=all is set, as CI does for one version of Node, otherwise a sample. A package runs in one mode;
// together they cover all modes.

const test = require('ava')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { compare, digestOf, run } = require('../helpers/compare-suites')
const { install } = require('../helpers/install-suites')
const { runsAll } = require('../helpers/run')
const { packages, suiteOf } = require('../suites/packages')
const { parseTap, parseTape } = require('../suites/parsers')
const { recordedOf } = require('../suites/record-bare')

const LIMIT_MS = 15 * 60_000

const isOldest = process.versions.node.startsWith('20.')

const { modules, offline } = install()

test('the comparison reports a difference, unless it does not recur', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-suites-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const { tests, passed, differences, byHook, byStacks, unsteady } = await compare({
    cwd: folder,
    files: [path.join(__dirname, '..', 'suites', 'sample.js')],
    command: (file) => ['--test-reporter=tap', file, path.join(folder, 'memory')],
    parse: parseTap
  }, { modes: ['full', 'js'] })
  t.is(tests, 9)
  t.is(passed, 7)
  t.deepEqual(differences.map(({ name, mode, bare, traced }) => [name, mode, bare, traced]), [
    ['sees longstack', 'full', 'ok', 'not ok'],
    ['sees longstack', 'js', 'ok', 'not ok']
  ])
  t.deepEqual(byStacks.map(({ name, mode }) => [name, mode]), [['sees hops', 'full'], ['sees hops', 'js']])
  t.deepEqual(byHook.map(({ name, mode }) => [name, mode]), [['sees any preload', 'full'], ['sees any preload', 'js']])
  t.deepEqual(unsteady.map(({ name, bare, traced }) => [name, bare, traced]), [['differs once', 'ok', 'not ok']])
})

test('a file is repeated without longstack only if it differs from the recorded run', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-suites-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'test.js')
  fs.writeFileSync(file, `
    const { test } = require('node:test')
    test('same', () => {})
    test('sees longstack', () => { if (/register/.test(process.env.NODE_OPTIONS)) throw new Error('seen') })`)
  /** @type {import('../helpers/compare-suites').Suite} */
  const suite = { cwd: folder, files: [file], command: () => ['--test-reporter=tap', file], parse: parseTap }
  const compared = async (/** @type {string} */ digest) => {
    const { tests, passed, differences, bareMs } = await compare(suite, { modes: ['full'], recorded: { [file]: digest } })
    return [tests, passed, differences.length, bareMs > 0]
  }
  t.deepEqual(await compared(digestOf(await run(suite, file, 'bare'))), [2, 2, 2, true]) // the exit code differs, too
  t.deepEqual(await compared(digestOf(await run(suite, file, 'full'))), [2, 1, 0, false])
})

test('the output of each runner is parsed test by test', (t) => {
  t.deepEqual(parseTap('# Subtest: a\n    # Subtest: b\n    not ok 1 - b # time=1.2ms\nok 1 - a # SKIP later\n'), [
    ['a › b', 'not ok'],
    ['a', 'ok # SKIP later']
  ])
  t.deepEqual(parseTape('# first\nok 1 is equal\nnot ok 2\n# second\nok 3 done\n'), [
    ['first › is equal', 'ok'],
    ['first › ', 'not ok'],
    ['second › done', 'ok']
  ])
})

if (modules === undefined) {
  console.log(`Other people's tests are not run: ${offline}`)
} else {
  for (const description of packages.filter(({ inCI }) => inCI)) {
    const suite = suiteOf(description, modules, runsAll)
    const [first, later = first] = description.modes ?? ['full']
    if (suite.files.length > 0) declare(description, suite, isOldest ? first : later)
  }
}

/**
 * Declares the test of a package.
 * @param {import('../suites/packages').Package} description
 * @param {import('../helpers/compare-suites').Suite} suite
 * @param {import('../suites/modes').Mode} mode
 */
function declare ({ name, minPassed, minSample = minPassed }, suite, mode) {
  test.serial(`${name}, ${mode}`, async (t) => {
    t.timeout(LIMIT_MS)
    const result = await compare(suite, { modes: [mode], progress: t.log, recorded: recordedOf(name) })
    const { tests, passed, differences, byHook, byStacks, unsteady, bareMs, tracedMs } = result
    const counts = `${suite.files.length} files, ${tests} tests, ${passed} passed`
    const causes = `${byHook.length} by an empty hook, ${byStacks.length} in stacks, ${unsteady.length} unsteady`
    const times = `${seconds(bareMs)} bare, ${seconds(tracedMs)} traced`
    t.log(`${counts}, ${differences.length} differences, ${causes}; ${times}`)
    t.deepEqual([...differences, ...byStacks], [])
    const expected = runsAll ? minPassed : minSample
    t.true(passed >= expected, `${passed} tests passed, expected ${expected}`)
  })
}

/** @param {number} ms */
function seconds (ms) {
  return `${Math.round(ms / 1000)} s`
}
