'use strict'

// The server that never comes back, and the one that is merely slow: how long others wait, and three
// remedies: slices, a pool of worker threads, a cluster. After "Understanding the node.js event loop" (Mikito
// Takada, 2011) and "Understanding node.js" (Felix Geisendörfer, 2010).
//
//     node bench/articles/07-never-comes-back --answers             prints the bytes on the wire for all ways
//     node bench/articles/07-never-comes-back --json [--quick]      measures the claims and tables once

const { setTimeout: delay } = require('node:timers/promises')
const { quartiles, median, digits, register, cleanEnvironment, main } = require('../common/measure')
const claims = require('./claims.json')
const { createClient, get, load, knock, bytes } = require('./clients')
const { start, wayNames } = require('./server')

const LITTLE = 60_000 // limit for counting primes if time does not matter
const FULL = { load: 3_000, pairs: 5, alone: 15, busy: 1000, passes: 2, limit: undefined }
const QUICK = { load: 50, pairs: 1, alone: 2, busy: 100, passes: 1, limit: LITTLE }

/** @typedef {import('./server').Way} Way */
const ways = /** @type {Way[]} */ (Object.keys(wayNames))

/**
 * Prints each way's answers to equal requests, from a child with this process's options; then the output of
 * the endless request.
 */
async function answers () {
  const options = { args: process.execArgv, env: process.env, limit: LITTLE }
  for (const way of ways) {
    const server = await start(way, options)
    for (const path of ['/cheap', '/expensive', '/busy/5']) {
      process.stdout.write(await bytes(server.port, path))
    }
    await server.end()
  }
  const server = await start('atOnce', options)
  await knock(server.port, '/forever', 100)
  await knock(server.port, '/cheap', 100)
  await server.end('SIGKILL')
}

/**
 * @typedef {object} Figures figures of one way, in ms
 * @property {number[]} cheap
 * @property {number[]} expensive
 * @property {number[]} alone a cheap request on an idle server
 * @property {number[]} beside a cheap request beside a busy loop
 * @property {number[]} one an expensive request on an idle server
 * @property {number[]} two two expensive requests, until both are answered
 */

/** @param {Way} way @param {boolean} traced @param {typeof FULL} amounts @returns {Promise<Figures>} */
async function measureWay (way, traced, amounts) {
  const args = traced ? ['-r', register] : []
  const server = await start(way, { args, env: cleanEnvironment(), limit: amounts.limit })
  const [first, second] = [createClient(), createClient()]
  const cheap = () => get(second, server.port, '/cheap')
  const expensive = (client = first) => get(client, server.port, '/expensive')
  const figures = { ...await load(server.port, amounts.load), alone: [], beside: [], one: [], two: [] }
  for (let i = 0; i < amounts.pairs; i++) {
    figures.one.push(await expensive())
    figures.two.push(Math.max(...await Promise.all([expensive(), expensive(second)])))
  }
  if (way === 'atOnce') {
    for (let i = 0; i < amounts.alone; i++) figures.alone.push(await cheap())
    const busy = get(first, server.port, `/busy/${amounts.busy}`)
    await delay(10)
    figures.beside.push(await cheap())
    await busy
  }
  first.destroy()
  second.destroy()
  await server.end()
  return figures
}

/** @typedef {Record<string, Figures>} FiguresByWay */

/** Measures all ways with tracing off and on, in both directions. @param {typeof FULL} amounts */
async function measureWays (amounts) {
  /** @type {Record<'off' | 'on', FiguresByWay>} */
  const figures = { off: {}, on: {} }
  for (let pass = 0; pass < amounts.passes; pass++) {
    for (const way of pass % 2 === 0 ? ways : ways.toReversed()) {
      for (const state of /** @type {const} */ (['off', 'on'])) {
        const measured = await measureWay(way, state === 'on', amounts)
        const before = figures[state][way]
        const join = ([key, values]) => [key, [...before?.[key] ?? [], ...values]]
        figures[state][way] = /** @type {Figures} */ (Object.fromEntries(Object.entries(measured).map(join)))
      }
    }
  }
  return figures
}

const p99 = (/** @type {number[]} */ values) => quartiles(values).p99

/** Figures a and b of each claim. @type {Record<string, (figures: FiguresByWay) => [number, number]>} */
const sides = {
  'busy-loop': ({ atOnce }) => [median(atOnce.alone), median(atOnce.beside)],
  'all-but-your-code': ({ atOnce }) => [median(atOnce.one), median(atOnce.two)],
  'two-in-pool': ({ pool, atOnce }) => [median(pool.two), median(atOnce.two)],
  slices: ({ slices, atOnce }) => [p99(slices.cheap), p99(atOnce.cheap)],
  'slices-price': ({ atOnce, slices }) => [median(atOnce.one), median(slices.one)],
  pool: ({ pool, atOnce }) => [p99(pool.cheap), p99(atOnce.cheap)],
  cluster: ({ cluster, atOnce }) => [p99(cluster.cheap), p99(atOnce.cheap)],
  median: ({ slices, atOnce }) => [median(slices.cheap), median(atOnce.cheap)]
}

/** @param {Record<'off' | 'on', FiguresByWay>} figures */
function tableOf (figures) {
  const rows = ways.flatMap((way) => /** @type {const} */ (['off', 'on']).map((state) => {
    const { cheap, expensive } = figures[state][way]
    const { min, q1, median: middle, mean, q3, p99, max } = quartiles(cheap)
    const values = [min, q1, middle, mean, q3, p99, max, median(expensive)]
    return [`${wayNames[way]}, tracing ${state}`, ...values.map(digits)]
  }))
  const statistics = ['Min.', '1st Qu.', 'Median', 'Mean', '3rd Qu.', 'p99', 'Max.', 'expensive, median']
  const heading = ['the work is done', ...statistics]
  return { title: 'A cheap route beside an expensive one, ms', heading, rows }
}

/** @param {boolean} quick */
async function measure (quick) {
  const figures = await measureWays(quick ? QUICK : FULL)
  const pair = (id, state) => {
    const [a, b] = sides[id](figures[state])
    return { a, b }
  }
  return {
    claims: claims.map((claim) => ({ ...claim, off: pair(claim.id, 'off'), on: pair(claim.id, 'on') })),
    tables: [tableOf(figures)]
  }
}

main({ answers, measure })
