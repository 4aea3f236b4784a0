'use strict'

// Hostile exchanges: thousands of requests and connections of many kinds, mixed, that are broken off, reset,
// refused, upgraded, left or finished at random instants, under spans. Afterwards no span may be open, each
// has to say what became of its exchange, no good request may lack its spans, and memory has to be back.
//
//     npm run fuzz -- exchanges --count 100000
//     node fuzz/exchanges.js --count 100000 --seed 7 --kinds plain,queue --progress
//     node fuzz/exchanges.js --count 100000 --bare        without longstack: what Node itself keeps
//
// Options of longstack come from the environment, as LONGSTACK_CAPTURE=js. Exit code 1 where something is
// wrong, with one line for each kind that is.

const { parseArgs } = require('node:util')
const v8 = require('node:v8')
const vm = require('node:vm')
const trace = require('..')
const { allOpen } = require('../lib/spans/identities')
const { createJudge } = require('./exchanges/judge')
const { createWorld } = require('./exchanges/world')

/** @type {Record<string, import('./exchanges/world').Exchange>} */
const allKinds = {
  ...require('./exchanges/plain'),
  ...require('./exchanges/broken'),
  ...require('./exchanges/handed-over'),
  ...require('./exchanges/http2'),
  ...require('./exchanges/fetches')
}
const MIN_BATCH = 2000
const MAX_BATCHES = 20 // memory is measured after each
const AT_ONCE = 40
const MAX_SETTLE_MS = 15_000 // a busy machine, and timeouts of the exchanges themselves
const MAX_GROWTH = 6 // MiB from the middle to the end: bounded tables are full by then

const wait = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms))
const MIB = 2 ** 20

/**
 * @typedef {object} Settings
 * @property {number} seed
 * @property {number} [count] exchanges
 * @property {number} [seconds]
 * @property {string[]} [kinds]
 * @property {boolean} [isBare] longstack stays disabled, and nothing is judged
 * @property {(line: string) => void} [log] gets a line after each batch
 *
 * @typedef {Record<string, any> & { exchanges: number }} Result figures
 */

/**
 * Plays exchanges.
 * @param {Settings} settings
 * @returns {Promise<{ result: Result, findings: string[] }>}
 */
async function playExchanges ({ seed, count = Infinity, seconds = Infinity, kinds, isBare = false, log }) {
  v8.setFlagsFromString('--expose-gc')
  const gc = vm.runInNewContext('gc')
  process.on('warning', () => {}) // of listeners that some exchanges add on purpose
  const names = kinds ?? Object.keys(allKinds)
  const judge = createJudge()
  if (!isBare) {
    trace.on('span', judge.noteSpan)
    trace.enable()
  }
  const world = await createWorld(seed, judge)
  const batch = Math.max(MIN_BATCH, Number.isFinite(count) ? Math.ceil(count / MAX_BATCHES) : 0)
  const started = performance.now()
  /** @type {number[]} MiB after each batch */
  const heaps = []
  let exchanges = 0
  for (let open = 0; open === 0 && exchanges < count && secondsSince(started) < seconds;) {
    exchanges += await runBatch(world, names, Math.min(batch, count - exchanges), started + seconds * 1000)
    open = await settle(world, gc)
    judge.judgeBatch(open === 0 ? [] : allOpen(), isBare)
    heaps.push(await heapUsed(gc))
    log?.(`${exchanges} exchanges, ${open} spans open, heap ${heaps.at(-1)?.toFixed(1)} MiB`)
  }
  const [first, middle, last] = [heaps[0], heaps[heaps.length >> 1], heaps[heaps.length - 1]]
  const growth = last - middle
  const { spans, bytes, fault } = trace.stats()
  const findings = judge.complaints()
  if (growth > MAX_GROWTH) findings.push(`the heap has grown by ${growth.toFixed(1)} MiB since the middle`)
  if (spans !== undefined && spans.open > 0) findings.push(`${spans.open} spans stay open`)
  if (spans !== undefined && spans.dropped > 0) findings.push(`${spans.dropped} spans were dropped`)
  if (fault !== undefined) findings.push(`a hook failed: ${fault}`)
  const result = {
    node: process.version,
    seed,
    seconds: Math.round(secondsSince(started)),
    ...judge.totals(),
    exchanges,
    open: spans?.open,
    ended: spans?.ended,
    dropped: spans?.dropped,
    heapMiB: [first, middle, last].map((heap) => Number(heap.toFixed(1))),
    ownMiB: Number((bytes / MIB).toFixed(1)), // contexts and stacks, outside of the heap for the most part
    fault
  }
  return { result, findings }
}

/** @param {number} start ms */
function secondsSince (start) {
  return (performance.now() - start) / 1000
}

/**
 * @param {import('./exchanges/world').World} world
 * @param {string[]} names of kinds
 * @param {number} count
 * @param {number} end ms: none begins later
 * @returns {Promise<number>} exchanges
 */
async function runBatch (world, names, count, end) {
  let begun = 0
  const worker = async () => {
    while (begun < count && performance.now() < end) {
      begun++
      const kind = names[world.below(names.length)]
      await allKinds[kind](world, world.begin(kind))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return begun
}

/**
 * Waits until no span is open.
 * @param {import('./exchanges/world').World} world
 * @param {() => void} gc
 * @returns {Promise<number>} open spans
 */
async function settle (world, gc) {
  await world.closeIdle()
  const openSpans = () => trace.stats().spans?.open ?? 0
  const until = performance.now() + MAX_SETTLE_MS
  for (let calm = 0; calm < 3 && performance.now() < until;) { // what a client has sent may still be to come
    gc()
    await wait(20)
    calm = openSpans() === 0 ? calm + 1 : 0
  }
  return openSpans()
}

/** @param {() => void} gc @returns {Promise<number>} MiB, when all has settled */
async function heapUsed (gc) {
  for (let i = 0; i < 5; i++) {
    await wait(30)
    gc()
  }
  return process.memoryUsage().heapUsed / MIB
}

/** @type {import('./helpers/targets').Target['run']} */
async function run ({ seed, count, seconds }) {
  const { result, findings } = await playExchanges({ seed, count, seconds })
  if (findings.length > 0) throw new Error(`${findings.join('\n')}\n${JSON.stringify(result)}`)
  return result.exchanges
}

async function main () {
  const { values } = parseArgs({
    options: {
      count: { type: 'string', default: '10000' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      kinds: { type: 'string', default: Object.keys(allKinds).join() },
      bare: { type: 'boolean', default: false },
      progress: { type: 'boolean', default: false }
    }
  })
  const count = Number(values.count)
  const kinds = values.kinds.split(',')
  if (kinds.some((name) => !Object.hasOwn(allKinds, name)) || !(count > 0)) {
    process.stderr.write(`Expected kinds among ${Object.keys(allKinds).join()}, and a count.\n`)
    process.exit(2)
  }
  const log = (/** @type {string} */ line) => process.stderr.write(`${line}\n`)
  const settings = { seed: Number(values.seed), count, kinds, isBare: values.bare }
  const { result, findings } = await playExchanges({ ...settings, log: values.progress ? log : undefined })
  process.stdout.write(`${[JSON.stringify(result), ...findings].join('\n')}\n`)
  process.exit(findings.length > 0 ? 1 : 0)
}

module.exports = { name: 'exchanges', run }

if (require.main === module) {
  main().catch((error) => {
    process.stderr.write(`${error.stack}\n`)
    process.exit(1)
  })
}
