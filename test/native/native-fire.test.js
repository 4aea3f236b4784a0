'use strict'

// The native engine under stress: each capture is compared with V8's own stack, in every tier and with V8's
// own stress flags. A longer run: node test/fixtures/native/fire.js --captures=3e6

const test = require('ava')
const { execFile, execFileSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { promisify } = require('node:util')
const { node, runsAll } = require('../helpers/run')
const { loadBinding } = require('../../lib/stacks/binding')

const folder = path.join(__dirname, '..', 'fixtures', 'native')
const fire = path.join(folder, 'fire.js')

const CAPTURES = runsAll ? 100_000 : 30_000

/** Programs with stacks that have no key: stacks of their own. */
const KEYLESS = ['switching']

/** V8 takes a flag that it does not know for an error, so each is looked up. */
const STRESS = [
  '--stress-compaction', '--gc-interval=500', '--stress-flush-code', '--always-turbofan', '--always-sparkplug',
  '--no-maglev', '--stress-maglev', '--jitless', '--no-opt', '--interpreted-frames-native-stack',
  '--deopt-every-n-times=100', '--stress-incremental-marking', '--stress-scavenge=50', '--minor-ms', '--turbolev',
  '--stack-size=300'
]

const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8', maxBuffer: 1 << 24 })

/** @param {string} flag */
function knows (flag) {
  const name = flag.replace(/^--(no-)?/, '').split('=')[0]
  return new RegExp(`^ +--(\\[no-\\])?${name} `, 'm').test(known)
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string[]} args
 */
async function runs (t, args) {
  const { stdout, stderr, code, signal } = await node(args, { timeout: 120_000 })
  t.is(signal, null, stderr)
  const results = stdout.trim().split('\n').map((line) => JSON.parse(line))
  for (const result of results) {
    t.is(result.wrong, 0, result.examples.join('\n'))
    t.true(result.captures > 100, `${args}: ${result.captures} captures`)
    t.true(result.hits > result.captures / 5, `${args}: ${result.hits} of ${result.captures} known`)
  }
  t.is(code, 0, stderr)
  return results
}

test.serial('no stack is wrong, and stacks with a key are stored', async (t) => {
  const results = await runs(t, [fire, `--captures=${CAPTURES}`, '--workers=1', '--contents=0'])
  t.is(results.length, 2)
  for (const { captures, hits, each } of results) {
    t.true(hits > captures / 2)
    const programs = Object.entries(each)
    t.true(programs.length > 20)
    for (const [name, { captures, unstored }] of programs) {
      // a full collection between capture() and remember() makes a key worthless
      if (!KEYLESS.includes(name)) t.true(unstored <= 3 + captures / 100, `${name}: ${unstored} of ${captures} not stored`)
    }
  }
})

test.serial('no stack known by its contents is wrong', async (t) => {
  const [{ each, captures, hits }] = await runs(t, [fire, `--captures=${CAPTURES}`])
  t.true(hits > captures * 0.8)
  for (const name of ['wasm', 'dying', 'names', 'twins', 'symbols']) {
    t.true(each[name].captures > 100)
    t.true(each[name].unstored <= 3, `${name}: ${each[name].unstored} of ${each[name].captures} not stored`)
  }
})

test.serial('no stack is wrong under V8 flags that move, free and recompile code', async (t) => {
  for (const flag of STRESS) {
    if (!knows(flag)) t.log(`${process.version} does not know ${flag}`)
    else await runs(t, [flag, fire, `--seconds=${runsAll ? 1 : 0.4}`])
  }
})

test.serial('an addon without frame pointers hides nothing', async (t) => {
  const out = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-addon-'))
  t.teardown(() => fs.rmSync(out, { recursive: true, force: true }))
  const addon = path.join(out, 'addon.node')
  const build = ['-O2', '-fomit-frame-pointer', '-fPIC', '-shared', path.join(folder, 'no-frame-pointers.c'), '-o', addon]
  await promisify(execFile)('cc', build)
  const [{ each, captures, hits }] = await runs(t, [fire, '--only=addon,calls,json', `--addon=${addon}`, '--captures=10000'])
  t.true(each.addon.captures > 100)
  t.is(each.addon.unstored, 0)
  t.true(hits > captures * 0.8)
})

test.serial('threads end, are terminated and exit while they capture', async (t) => {
  const { stdout, stderr, code } = await node([path.join(folder, 'workers.js'), '4'])
  t.is(code, 0, stderr)
  t.deepEqual(JSON.parse(stdout), { threads: 24, good: 24 })
})

/** A binding of this thread, ready to walk. */
function binding () {
  const { binding } = /** @type {any} */ (loadBinding())
  binding.configure(20)
  const why = binding.nest(() => binding.learn())
  if (why !== undefined) throw new Error(why)
  return binding
}

test.serial('a number belongs to the last missed stack, not to one captured meanwhile', (t) => {
  const { capture, remember } = binding()
  const inner = () => capture() || (remember(7) && 7)
  const outer = () => {
    const id = capture()
    const other = inner()
    return [id, other, id === 0 && remember(1000)]
  }
  const results = [1, 2, 3].map(() => outer())
  t.true(results.some(([id, other]) => id === 0 && other === 7))
  for (const [id, other, remembered] of results) {
    t.true(id === 0 && remembered === false, 'what inner() captured took the place of the outer stack')
    t.is(other, 7)
  }
})

test.serial('a young collection removes no key', async (t) => {
  const { stdout, code, stderr } = await node(['--expose-gc', '-e', `
    const { binding } = require(${JSON.stringify(path.join(__dirname, '..', '..', 'lib', 'stacks', 'binding.js'))}).loadBinding()
    binding.configure(20)
    binding.nest(() => binding.learn())
    const site = () => binding.capture() || (binding.remember(1), 0)
    for (let i = 0; i < 3; i++) site()
    setImmediate(() => { // not below -e, which is called by a built-in of C++ on Node 20
      const ids = []
      for (let i = 0; i < 10; i++) { gc({ type: 'minor' }); ids.push(site()) }
      console.log(JSON.stringify(ids))
    })`])
  t.is(code, 0, stderr)
  // One may be new code: a function that is compiled meanwhile returns to another place. A forgotten key
  // would be ten.
  const ids = JSON.parse(stdout)
  t.true(ids.filter((id) => id === 1).length >= 8, stdout)
  t.true(ids.every((id) => id === 0 || id === 1), stdout)
})
