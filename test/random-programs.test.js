'use strict'

// Random programs: flows that share their handlers make errors, keep them and read each other's. Who made which is
// known by construction, and every line of every chain is judged. RANDOM_PROGRAMS_SEED plays a printed seed again,
// RANDOM_PROGRAMS_JUDGMENTS asks for more.

const test = require('ava')
const { loadBinding } = require('../lib/stacks/binding')
const { runBatch, runSeeds } = require('./fixtures/random-programs/batches')
const { judge } = require('./fixtures/random-programs/judge')
const { kinds, programOf, uses, ways } = require('./fixtures/random-programs/programs')
const { shrink } = require('./fixtures/random-programs/shrink')
const { bad, tableOf, total } = require('./fixtures/random-programs/tally')
const { Context, World } = require('./fixtures/random-programs/world')

const JUDGMENTS = Number(process.env.RANDOM_PROGRAMS_JUDGMENTS ?? 4000)
const seed = Number(process.env.RANDOM_PROGRAMS_SEED ?? Date.now() % 2000)

const { why } = loadBinding()
const hasLight = Number(process.versions.node.split('.')[0]) >= 24
const settings = [{ engine: 'js', mode: 'full' }]
if (why === undefined) settings.push({ engine: 'native', mode: 'full' })
if (why === undefined && hasLight) settings.push({ engine: 'native', mode: 'light' })

for (const { engine, mode } of settings) {
  test.serial(`no chain names a stranger, ${engine}, ${mode}`, async (t) => {
    const faulty = bad[/** @type {'light' | 'full'} */ (mode)]
    const result = await runSeeds({ engine, mode, judgments: JUDGMENTS, seed, keep: 1 })
    t.log(`seed ${seed}: ${result.judgments} judgments, ${result.collections} collections\n${tableOf(result.verdicts)}`)
    t.is(result.engine, `${engine} ${mode}`)
    t.deepEqual(result.stuck, [], 'every program ends')
    t.is(result.mistakes, 0, 'no callback runs while it is being registered')
    judgedMuch(t, result, mode)
    const faults = Object.keys(result.samples).filter((verdict) => faulty.test(verdict))
    if (faults.length > 0) return t.fail(await explain(result.samples[faults[0]][0], { engine, mode, faulty }))
    if (engine === 'native' && mode === 'full') proves(t, result)
  })
}

/**
 * The test would pass if nothing was judged.
 * @param {import('ava').ExecutionContext} t
 * @param {import('./fixtures/random-programs/tally').Result} result
 * @param {string} mode
 */
function judgedMuch (t, result, mode) {
  for (const bucket of ['same callback', 'within 20', 'within 20, collected', 'within 150', 'within 150, collected', 'older', 'present']) {
    t.true(total(result, /./, bucket) >= JUDGMENTS / 80, `${bucket}: ${total(result, /./, bucket)}`)
  }
  for (const way of ways) t.true(count(result.ways[way]) >= JUDGMENTS / 400, `made by ${way}: ${count(result.ways[way])}`)
  for (const use of uses) t.true(count(result.uses[use]) >= 1, `${use}: ${count(result.uses[use])}`)
  t.true(result.named > result.judgments, 'chains have hops')
  t.is(total(result, mode === 'full' ? /right/ : /right|partial|empty/, 'present'), total(result, /./, 'present'), 'trace.chain() of what runs')
}

/** @param {Record<string, number> | undefined} cells */
function count (cells = {}) {
  return Object.values(cells).reduce((a, b) => a + b, 0)
}

/**
 * What the allocation clock is to know.
 * @param {import('ava').ExecutionContext} t
 * @param {import('./fixtures/random-programs/tally').Result} result
 */
function proves (t, result) {
  const share = (/** @type {string} */ bucket) => {
    const known = total(result, /^right$/, bucket)
    return known / (known + total(result, /^(reader|rejecter|thrower)$/, bucket))
  }
  t.true(share('same callback') >= 0.99, `read in the same callback: ${share('same callback')}`)
  t.true(share('within 20') >= 0.97, `read within 20 callbacks: ${share('within 20')}`)
  t.log(`kept over up to 150 callbacks and collections: ${(share('within 150, collected') * 100).toFixed(0)} % right`)
}

/** @param {any} sample @param {{ engine: string, mode: string, faulty: RegExp }} setting @returns {Promise<string>} */
async function explain (sample, setting) {
  const { text, ...known } = sample
  const found = await shrink({ ...setting, seed: sample.seed })
  const smallest = found === undefined ? 'alone it does nothing wrong' : `${JSON.stringify(found.program)}\n${found.sample.verdict}\n${found.sample.text}`
  return `seed ${sample.seed}\n${JSON.stringify(known, undefined, 1)}\n${text}\n\nthe smallest program, after ${found?.shrinks} steps: ${smallest}`
}

test('Node agrees on the context of every callback', async (t) => {
  const { mistakes, judgments, stuck } = await runSeeds({ engine: 'bare', mode: 'full', judgments: 1500, seed })
  t.log(`seed ${seed}: ${judgments} readings`)
  t.is(mistakes, 0)
  t.deepEqual(stuck, [])
})

test('a correct chain is right', async (t) => {
  const make = { act: 'make', way: 'plain', reader: 'now', after: 0, use: 'plain', read: 'stack' }
  const steps = [{ kind: 0, back: 0, ms: 0, way: 'plain', acts: [make] }, { kind: 1, back: 0, ms: 0, way: 'plain', acts: [make] }]
  for (const { engine, mode } of settings.filter((setting) => setting.engine === 'native')) {
    const { verdicts } = await runBatch({ engine, mode, programs: [{ kinds: ['timer', 'immediate'], copies: 0, flows: [{ sloppy: false, steps }] }] })
    t.deepEqual(verdicts, { 'same callback': { right: 2 } })
  }
})

test('a seed is a program, and most kinds are in it', (t) => {
  t.deepEqual(programOf(seed), programOf(seed))
  const seen = new Set(Array.from({ length: 200 }, (_, i) => programOf(i).kinds).flat())
  t.deepEqual([...seen].sort(), [...kinds].sort())
})

test('the judge tells the verdicts apart', (t) => {
  const world = new World({ kinds: [], copies: 0, flows: [] })
  const maker = new Context(world, { number: 1, sloppy: false, steps: 0 }).child()
  const other = new Context(world, { number: 2, sloppy: false, steps: 0 }).child()
  const sibling = /** @type {Context} */ (maker.parent).child()
  const reading = { way: 'plain', makers: [maker], readers: [other], rejecters: [other], throwers: [], awaiters: [other] }
  const hops = (/** @type {string[]} */ names, says = '') => names.map((name) => `\n  ── setTimeout(1) · Timeout · 1 ms earlier${says} ──\n    at go (x.js:1:1)\n    at ${name} (x.js:1:1)`).join('')
  /** @type {Array<[string, string]>} */
  const cases = [
    ['', 'empty'],
    [hops(maker.names), 'right'],
    [hops(maker.names.slice(1)), 'partial'],
    [hops(maker.names.slice(0, 1)), 'partial'],
    [hops(other.names), 'stranger'],
    [hops([...maker.names, ...other.names]), 'stranger'],
    [hops(sibling.names), 'wrong'],
    [hops([...maker.names].reverse()), 'wrong'],
    [hops(other.names, ' · reader: only where .stack was read is known'), 'reader'],
    [hops(maker.names, ' · reader: only where .stack was read is known'), 'false reader'],
    [hops(other.names, ' · rejected here'), 'rejecter'],
    [hops(maker.names, ' · rejected here'), 'false rejecter'],
    [hops(other.names, ' · thrown here'), 'false thrower'],
    [hops(maker.names) + hops(other.names).replace('──', '── awaited by'), 'right'],
    [hops(maker.names) + hops(sibling.names).replace('──', '── awaited by'), 'false awaiter']
  ]
  for (const [told, verdict] of cases) t.is(judge({ ...reading, told: `Error: x\n    at f7_s7 (x.js:1:1)${told}` }).verdict, verdict, told)
})
