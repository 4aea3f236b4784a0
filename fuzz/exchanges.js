'use strict'

// Hostile exchanges: thousands of requests and connections of many kinds, mixed, that are broken off, reset,
// refused, upgraded, left or finished at random instants, under spans. Afterwards no span may be open, each
// has to say what became of its exchange, no good request may lack its spans, and memory has to be back.
//
//     node fuzz/exchanges.js --count 100000 --seed 7 --kinds plain,queue
//
// Options of longstack come from the environment, as LONGSTACK_MODE=light. Exit code 1 where something is
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
const BATCH = 2000
const AT_ONCE = 40
const MAX_SETTLE_MS = 15_000 // a busy machine, and timeouts of the exchanges themselves
const WARM_UP = 2000 // exchanges before memory is measured first
const MAX_GROWTH = 6 // MiB

v8.setFlagsFromString('--expose-gc')
/** @type {() => void} */
const gc = vm.runInNewContext('gc')
const wait = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function main () {
  const { values } = parseArgs({
    options: {
      count: { type: 'string', default: '10000' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      kinds: { type: 'string', default: Object.keys(allKinds).join() }
    }
  })
  const count = Number(values.count)
  const names = values.kinds.split(',')
  const unknown = names.find((name) => allKinds[name] === undefined)
  if (unknown !== undefined || !(count > 0)) {
    process.stderr.write(`Expected kinds among ${Object.keys(allKinds).join()}, and a count.\n`)
    process.exit(2)
  }
  process.on('warning', () => {}) // of listeners that some exchanges add on purpose
  const judge = createJudge()
  trace.on('span', judge.noteSpan)
  trace.enable()
  const world = await createWorld(Number(values.seed), judge)
  const started = Date.now()
  let heapBefore = 0
  for (let done = 0; done < count; done += BATCH) {
    await runBatch(world, names, Math.min(BATCH, count - done))
    const open = await settle(world)
    judge.judgeBatch(open === 0 ? [] : allOpen())
    if (open > 0) break
    if (done + BATCH >= WARM_UP && heapBefore === 0) heapBefore = await heapUsed()
  }
  const growth = (await heapUsed()) - heapBefore
  const { spans, fault } = trace.stats()
  const hasGrown = growth > MAX_GROWTH
  const result = {
    node: process.version,
    seed: Number(values.seed),
    seconds: Math.round((Date.now() - started) / 1000),
    ...judge.totals(),
    open: spans.open,
    ended: spans.ended,
    dropped: spans.dropped,
    heapMiB: Number(heapBefore.toFixed(1)),
    growthMiB: Number(growth.toFixed(1)),
    fault
  }
  process.stdout.write(`${JSON.stringify(result)}\n`)
  for (const line of judge.complaints()) process.stdout.write(`${line}\n`)
  if (hasGrown) process.stdout.write(`The heap has grown by ${growth.toFixed(1)} MiB.\n`)
  const hasLost = spans.open > 0 || spans.dropped > 0 || fault !== undefined
  process.exit(hasGrown || hasLost || judge.complaints().length > 0 ? 1 : 0)
}

/**
 * @param {import('./exchanges/world').World} world
 * @param {string[]} names of kinds
 * @param {number} count
 */
async function runBatch (world, names, count) {
  let begun = 0
  const worker = async () => {
    while (begun < count) {
      begun++
      const kind = names[world.below(names.length)]
      await allKinds[kind](world, world.begin(kind))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

/**
 * Waits until no span is open.
 * @param {import('./exchanges/world').World} world
 * @returns {Promise<number>}
 */
async function settle (world) {
  await world.closeIdle()
  const until = Date.now() + MAX_SETTLE_MS
  for (let calm = 0; calm < 3 && Date.now() < until;) { // what a client has sent may still be to come
    gc()
    await wait(20)
    calm = trace.stats().spans.open === 0 ? calm + 1 : 0
  }
  return trace.stats().spans.open
}

/** @returns {Promise<number>} MiB, when all has settled */
async function heapUsed () {
  for (let i = 0; i < 5; i++) {
    await wait(30)
    gc()
  }
  return process.memoryUsage().heapUsed / 2 ** 20
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`)
  process.exit(1)
})
