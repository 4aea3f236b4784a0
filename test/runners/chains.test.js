'use strict'

// Chains inside a test runner, with only the preload: they show the test's own steps since the runner called
// it, and the runner's own hops as a count.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { installRunner } = require('../helpers/install-runners')
const { node, root } = require('../helpers/run')
const { preload, testRunners } = require('../helpers/runners')
const { skip } = require('../helpers/skip')

const LIBRARY = `
  const trace = require('longstack')
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const callback = (done) => { setTimeout(function inEarlierTest () { setImmediate(done) }, 2) }
  async function inOwnTest () {
    await wait(2)
    return new Promise((resolve) => setTimeout(function tick () { resolve(new Error('late')) }, 2))
  }
  function deep (n) { return n === 0 ? wait(1).then(() => new Error('deep')) : deep(n - 1) }
  const record = (name, error) => console.log('RESULT' + JSON.stringify({ name, stack: trace.stack(error), chain: trace.chain(error) }) + 'END')
  async function body () {
    const late = await inOwnTest()
    record('late', late)
    const timer = setInterval(() => {}, 1e6)
    console.log('RESULT' + JSON.stringify({ name: 'why', stack: String(trace.why(timer)) }) + 'END')
    clearInterval(timer)
    record('deep', await deep(20))
    record('again', new Error('again'))
  }
  function sync () { record('sync', new Error('sync')) }
`

/** Test files by runner. */
const files = {
  mocha: `${LIBRARY}
    beforeEach(async () => { await wait(1) })
    it('earlier', callback)
    it('late', body)
    it('sync', sync)`,
  jest: `${LIBRARY}
    beforeEach(async () => { await wait(1) })
    test('earlier', callback)
    test('late', body)
    test('sync', sync)`,
  vitest: `
    import { beforeEach, test } from 'vitest'
    import { createRequire } from 'node:module'
    const require = createRequire(import.meta.url)
    ${LIBRARY}
    beforeEach(async () => { await wait(1) })
    test('earlier', () => new Promise(callback))
    test('late', body)
    test('sync', sync)`,
  ava: `${LIBRARY}
    const ava = require('ava')
    const test = ava.default ?? ava // Ava 8 is a module of ECMAScript
    test.beforeEach(async () => { await wait(1) })
    test.serial('earlier', async (t) => { await new Promise(callback); t.pass() })
    test.serial('late', async (t) => { await body(); t.pass() })
    test.serial('sync', (t) => { sync(); t.pass() })`,
  node: `${LIBRARY}
    const { beforeEach, describe, it, test } = require('node:test')
    beforeEach(async () => { await wait(1) })
    test('earlier', (t, done) => callback(done))
    describe('suite', () => { it('late', body) })
    test('sync', sync)`
}

/** @param {string} text @returns {Record<string, { stack: string, chain: any[] }>} */
function resultsOf (text) {
  return Object.fromEntries([...text.matchAll(/RESULT(\{.*?\})END/gs)].map(([, json]) => {
    const { name, ...result } = JSON.parse(json)
    return [name, result]
  }))
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} output
 * @param {string} name of the runner
 */
function assertOwnStory (t, output, name) {
  const { late, why, deep, again, sync } = resultsOf(output)
  if (sync === undefined) return t.fail(output)
  for (const { stack } of [late, why, deep, again, sync]) t.notRegex(stack, /inEarlierTest|beforeEach/)
  t.regex(again.stack, /^Error: again\n.*body /)
  t.notRegex(again.stack, /──[^]*node_modules/, 'no frame of what the runner depends on')
  const [head, ...hops] = late.stack.split(/^ {2}── /m)
  t.regex(head, /^Error: late\n.* (?:Timeout\.)?tick/)
  t.regex(hops[0], /^setTimeout\(2\) .*\n[^]*inOwnTest/)
  t.regex(late.stack, /at (?:async )?body|at inOwnTest/)
  t.notRegex(hops.join(''), /node_modules/, 'no frame of the runner')
  const last = /** @type {string} */ (late.stack.split('\n').at(-1))
  if (name !== 'node:test') t.regex(last, new RegExp(`^ {4}\\.\\.\\. \\d+ hops? in ${name}$`))
  t.notRegex(sync.stack, /──/, 'an error in the test itself needs no hop')
  t.regex(why.stack, /^timer, every 1000000 ms[^]*at body/)
  const folded = late.chain.filter(({ type }) => type === 'RUNNER')
  t.true(folded.length <= 1)
  for (const { label, repeats, frames } of folded) {
    t.is(label, `${repeats} hop${repeats === 1 ? '' : 's'} in ${name}`)
    t.deepEqual(frames, [])
  }
}

const commands = {
  mocha: { file: 'a.test.js', args: ['a.test.js'] },
  jest: { file: 'a.test.js', args: [] },
  vitest: { file: 'a.test.js', args: ['run'] },
  ava: { file: 'a.test.js', args: [] }
}

for (const [name, runners] of Object.entries({
  mocha: ['mocha12', 'mocha11'], jest: ['jest30', 'jest29'], vitest: ['vitest5', 'vitest4'], ava: ['ava8', 'ava7']
})) {
  const { file, args } = commands[/** @type {keyof typeof commands} */ (name)]
  const source = { [file]: files[/** @type {keyof typeof files} */ (name)] }

  testRunners(test, runners, 'a chain is of its own test, and the runner is a line', async (t, run) => {
    const { stdout, stderr, code } = await run({ files: source, args })
    t.is(code, 0, stderr)
    assertOwnStory(t, stdout + stderr, name)
    t.notRegex(stdout + stderr, /at .*[lL]og .*\n+ *── /, 'no hops below what Jest logs')
  })

  testRunners(test, runners.slice(0, 1), 'internals show the runner', async (t, run) => {
    const { stdout, stderr } = await run({ files: source, args, env: { LONGSTACK_INTERNALS: '1' } })
    const { late } = resultsOf(stdout + stderr)
    t.notRegex(late.stack, /hops? in/)
    t.regex(late.stack, new RegExp(`── .*\n[^]*node_modules/.*${name}`))
  })
}

const modes = { full: {}, 'js engine': { LONGSTACK_CAPTURE: 'js' } }

for (const [mode, env] of Object.entries(modes)) {
  test(`node:test, ${mode}: a chain belongs to its own test`, async (t) => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-node-test-'))
    t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
    const file = path.join(folder, 'a.test.js')
    fs.writeFileSync(file, files.node.replaceAll("'longstack'", JSON.stringify(root)))
    const variables = { NODE_OPTIONS: preload, ...env }
    const { stdout, stderr, code } = await node([file], { cwd: folder, env: variables })
    t.is(code, 0, stdout + stderr)
    assertOwnStory(t, stdout, 'node:test')
  })
}

test('a program that runs Mocha itself keeps its chain around the tests', async (t) => {
  const { directory, reason } = installRunner('mocha12')
  if (directory === undefined) {
    return skip(t, `mocha12 ${reason}`)
  }
  const { stdout, stderr, code } = await node(['-r', path.join(root, 'lib', 'register.js'), '-e', `
    const exported = require(${JSON.stringify(path.join(directory, 'node_modules', 'mocha'))})
    const Mocha = exported.default ?? exported // on Node 22 it is a module of ECMAScript
    function runTests () {
      const mocha = new Mocha({ reporter: 'min' })
      mocha.suite.addTest(new Mocha.Test('one', (done) => setTimeout(done, 2)))
      mocha.reporter(class {})
      mocha.run(function onTestsRan () { setTimeout(function after () { console.log(new Error('after').stack) }, 2) })
    }
    setTimeout(runTests, 2)`])
  t.is(stderr, '')
  t.is(code, 0)
  t.regex(stdout, /^Error: after\n {4}at Timeout\.after[^]*setTimeout\(2\)[^]*at onTestsRan[^]*at runTests/)
})
