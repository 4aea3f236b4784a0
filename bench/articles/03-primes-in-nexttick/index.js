'use strict'

// Primes in process.nextTick: the cost of a large closure per tick compared with a small one, and the chain
// of a recursion: one hop with a count. After "You Did What?!? Understanding Node Optimizations" (Trevor
// Norris, 2013).
//
//     node bench/articles/03-primes-in-nexttick --answers             prints the sums and the order
//     node bench/articles/03-primes-in-nexttick --json [--quick]      measures the claims and tables once

const { execFile } = require('node:child_process')
const { setImmediate: nextIteration } = require('node:timers/promises')
const { promisify } = require('node:util')
const v8 = require('node:v8')
const vm = require('node:vm')
const { cleanEnvironment, main, paired, register } = require('../common/measure')
const claims = require('./claims.json')
const { forms, ways, begin } = require('./ticks')

const TICKS = { full: 30_000, quick: 500, answers: 500 }
const LENGTH = { full: 30_000, quick: 500, answers: 1_000 } // lengths of a recursion

/** The engines of the table. */
const engines = { native: {}, js: { LONGSTACK_CAPTURE: 'js' } }

const run = promisify(execFile)

/**
 * Runs a role in its own process.
 * @param {string[]} args
 * @param {{ traced?: boolean, env?: Record<string, string> }} options
 */
async function child (args, { traced = false, env = {} }) {
  const preload = traced ? ['-r', register] : []
  const options = { env: { ...cleanEnvironment(), ...env }, maxBuffer: 2 ** 24 }
  const { stdout } = await run(process.execPath, [...preload, __filename, ...args], options)
  return JSON.parse(stdout)
}

// The children. Each prints its figures as one line of JSON

/** Sieves once; prints the cost and the peak size of the process. */
function sieveOnce (form, ticks) {
  const before = process.cpuUsage()
  forms[form](Number(ticks), () => {
    const { user, system } = process.cpuUsage(before)
    const { maxRSS } = process.resourceUsage()
    console.log(JSON.stringify({ cpu: (user + system) / ticks, maxRss: maxRSS / 1024 }))
  })
}

/** A recursion; prints the hops of the error at its end, and the memory held by tracing. */
function recur (way, length) {
  const trace = require('../../..')
  const held = () => {
    const { contexts, contextBytes } = trace.stats()
    return { contexts, bytes: contextBytes }
  }
  begin(way, Number(length), async function end () {
    const hops = trace.chain(new Error(`the end of ${length} callbacks`))
    const right = held()
    await collectGarbage()
    console.log(JSON.stringify({ hops, right, later: held() }))
  })
}

async function collectGarbage () {
  v8.setFlagsFromString('--expose-gc')
  const collect = vm.runInNewContext('gc')
  for (let i = 0; i < 4; i++) {
    await nextIteration()
    collect()
  }
}

// The answers

async function answers () {
  for (const [form, start] of Object.entries(forms)) {
    const count = await new Promise((resolve) => start(TICKS.answers, resolve))
    console.log(`${form}: ${count} primes in ${TICKS.answers} ticks`)
  }
  for (const way of Object.keys(ways)) console.log(`${way}: ${(await orderOf(way)).join(', then ')}`)
}

/**
 * Returns the order of the last callback of a recursion and an immediate set before its first callback.
 */
async function orderOf (way) {
  const order = []
  const note = (name, resolve) => () => resolve(order.push(name))
  await Promise.all([
    new Promise((resolve) => setImmediate(note('an immediate set before', resolve))),
    new Promise((resolve) => begin(way, LENGTH.answers, note('the last callback', resolve)))
  ])
  return order
}

// The figures

/** Formats the number of callbacks per recursive hop, oldest hop first. */
function formatCounts ({ hops }) {
  const recursive = hops.filter((hop) => hop.frames.some((frame) => frame.functionName === 'again'))
  if (recursive.length === 0) return 'no hop'
  return recursive.map((hop) => hop.repeats).reverse().join(' + ')
}

/** @param {number} length */
async function countsTable (length) {
  const rows = []
  for (const way of Object.keys(ways)) {
    const row = [way]
    for (const env of Object.values(engines)) {
      row.push(formatCounts(await child(['recur', way, String(length)], { traced: true, env })))
    }
    rows.push(row)
  }
  return {
    title: `Callbacks that the chain counts, of ${length}: the first, set by the caller, and the others`,
    heading: ['recursion of', ...Object.keys(engines)],
    rows
  }
}

/** @param {number} length */
async function contextsTable (length) {
  const rows = []
  for (const way of ['process.nextTick', 'setImmediate', 'promise.then']) {
    const { right, later } = await child(['recur', way, String(length)], { traced: true })
    const rightAfter = [String(right.contexts), (right.bytes / 2 ** 20).toFixed(1)]
    rows.push([way, ...rightAfter, String(later.contexts), (later.bytes / 2 ** 10).toFixed(1)])
  }
  const contexts = ['contexts right after (estimates)', 'MiB right after']
  const collected = ['contexts after a collection', 'KiB after a collection']
  return {
    title: `What tracing holds of a recursion of ${length} callbacks`,
    heading: ['recursion of', ...contexts, ...collected],
    rows
  }
}

/** @param {boolean} quick */
async function measure (quick) {
  const amount = quick ? 'quick' : 'full'
  const memory = { off: { a: 0, b: 0 }, on: { a: 0, b: 0 } }
  const time = await paired(async (side, traced) => {
    const form = side === 'a' ? 'hoisted' : 'inline'
    const { cpu, maxRss } = await child(['sieve', form, String(TICKS[amount])], { traced })
    const state = memory[traced ? 'on' : 'off']
    state[side] = Math.max(state[side], maxRss)
    return cpu
  }, quick)
  const [closure, size] = claims
  return {
    claims: [{ ...closure, ...time }, { ...size, ...memory }],
    tables: [await countsTable(LENGTH[amount]), await contextsTable(LENGTH[amount])]
  }
}

main({ answers, measure, roles: { sieve: sieveOnce, recur } })
