'use strict'

// Deferring: events missed by listeners that are attached after the call, the order of five ways to defer,
// the ways that starve files and sockets, and the cost. After "Node and process.nextTick" (Andrew Cholakian,
// 2010), which uses it to explain how node-paperboy (Felix Geisendörfer, 2010) works without a start()
// method.
//
//     node bench/articles/05-deferring --answers             prints missed events and the orders
//     node bench/articles/05-deferring --json [--quick]      measures the claims and tables once

const { execFile } = require('node:child_process')
const fs = require('node:fs')
const { promisify } = require('node:util')
const { cleanEnvironment, digits, main, obey, paired, register, start } = require('../common/measure')
const claims = require('./claims.json')
const { ways, allWays, places, MODULE, deferAll, eventsOf } = require('./deferring')

const STARVE_MS = { figures: 200, answers: 30 } // limit for a recursion that starves the others
const PATIENCE_MS = 20_000 // a recursion that does not starve them ends by itself
const AMOUNTS = { full: 300_000, quick: 1_000 } // number of deferrals
const BATCH = 1_000 // deferrals at once

const run = promisify(execFile)

// The children

/**
 * Reads a file while one way calls itself repeatedly, until the file is read or time is up.
 * @param {string} way
 * @param {number} starveMs
 */
function starve (way, starveMs) {
  const limit = /^set/.test(way) ? PATIENCE_MS : starveMs
  return new Promise((resolve) => {
    const began = performance.now()
    let ended = 0
    let back = 0
    const finish = () => { if (ended > 0 && back > 0) resolve({ back, isDuring: back < ended }) }
    fs.readFile(__filename, () => {
      back = performance.now() - began
      finish()
    })
    ways[way](function again () {
      if (back === 0 && performance.now() - began < limit) return ways[way](again)
      ended = performance.now() - began
      finish()
    })
  })
}

/** @type {Record<string, (way: string, amount: number) => Promise<void>>} */
const shapes = {
  async 'many at once' (way, amount) {
    for (let done = 0; done < amount; done += BATCH) {
      await new Promise((resolve) => {
        let remaining = BATCH
        const ran = () => { if (--remaining === 0) resolve(undefined) }
        for (let i = 0; i < BATCH; i++) ways[way](ran)
      })
    }
  },

  'one after another': (way, amount) => new Promise((resolve) => {
    let remaining = amount
    ways[way](function again () {
      if (--remaining === 0) resolve()
      else ways[way](again)
    })
  })
}

/** Prints the cost of all ways and shapes in this process. @param {string} amount */
async function printCosts (amount) {
  const costs = {}
  for (const way of Object.keys(ways)) {
    costs[way] = {}
    for (const shape of Object.keys(shapes)) {
      if (way === 'setTimeout 0' && shape === 'one after another') continue // a millisecond each
      await shapes[shape](way, Number(amount))
      const before = process.cpuUsage()
      await shapes[shape](way, Number(amount))
      const { user, system } = process.cpuUsage(before)
      costs[way][shape] = (user + system) / amount * 100
    }
  }
  console.log(JSON.stringify(costs))
}

/** Runs a role in its own process. @param {string[]} args @param {boolean} traced */
async function child (args, traced) {
  const preload = traced ? ['-r', register] : []
  const env = cleanEnvironment()
  const { stdout } = await run(process.execPath, [...preload, __filename, ...args], { env })
  return JSON.parse(stdout)
}

// The answers

/**
 * Runs a child process with the same options as this one, so it is traced if this one is.
 * @param {string[]} args
 */
async function runAlike (args) {
  const { stdout } = await run(process.execPath, [...process.execArgv, ...args])
  return JSON.parse(stdout)
}

async function answers () {
  for (const [name, page] of [['a page', 'hello'], ['an empty page', ''], ['no page', undefined]]) {
    for (const way of Object.keys(allWays)) {
      console.log(`${name}, ${way}: ${(await eventsOf(allWays[way], page)).join(', ')}`)
    }
  }
  const orders = [['an ES module, at its top', await runAlike(['--input-type=module', '-e', MODULE])]]
  for (const place of Object.keys(places)) orders.push([place, await runAlike([__filename, 'order', place])])
  for (const [place, order] of orders) console.log(`deferred in ${place}: ${order.join(', ')}`)
  for (const way of Object.keys(ways)) {
    const { isDuring } = await starve(way, STARVE_MS.answers)
    console.log(`${way} again and again: a read is back ${isDuring ? 'while it goes on' : 'when it is over'}`)
  }
}

// The figures

/**
 * Measures the CPU ms for 100,000 deferrals, after as many for warm-up.
 * @param {string} way
 * @param {string} shape
 * @param {number} amount
 * @param {boolean} traced
 */
async function costOf (way, shape, amount, traced) {
  const subject = await start(__filename, ['cost', way, shape], { traced })
  try {
    await subject.run(amount)
    return await subject.run(amount) * 100
  } finally {
    await subject.end()
  }
}

/** @param {number} amount */
async function costsTable (amount) {
  const states = [await child(['costs', String(amount)], false), await child(['costs', String(amount)], true)]
  const cell = (costs, way, shape) => costs[way][shape] === undefined ? '–' : digits(costs[way][shape])
  const row = (way) => Object.keys(shapes).flatMap((shape) => states.map((costs) => cell(costs, way, shape)))
  return {
    title: 'CPU ms for 100,000 deferrals, tracing off and on',
    heading: ['way', ...Object.keys(shapes).flatMap((shape) => [`${shape}, off`, 'on'])],
    rows: Object.keys(ways).map((way) => [way, ...row(way)])
  }
}

/** @param {boolean} quick */
async function measure (quick) {
  const amount = AMOUNTS[quick ? 'quick' : 'full']
  const compare = (shape, a, b) =>
    paired((side, traced) => costOf(side === 'a' ? a : b, shape, amount, traced), quick)
  const readBeside = async (way, traced) => (await child(['starve', way], traced)).back
  const recursions = { a: 'setImmediate', b: 'process.nextTick' }
  const reads = await paired((side, traced) => readBeside(recursions[side], traced), quick)
  const [timeout, immediate, starving] = claims
  return {
    claims: [
      { ...timeout, ...await compare('many at once', 'process.nextTick', 'setTimeout 0') },
      { ...immediate, ...await compare('one after another', 'process.nextTick', 'setImmediate') },
      { ...starving, ...reads }
    ],
    tables: [await costsTable(amount)]
  }
}

const roles = {
  order: (place) => places[place](deferAll),
  starve: async (way) => console.log(JSON.stringify(await starve(way, STARVE_MS.figures))),
  cost: (way, shape) => obey({ run: (amount) => shapes[shape](way, amount) }),
  costs: printCosts
}

main({ answers, measure, roles })
