'use strict'

// What an error costs that is thrown, caught and read: node bench/errors.js [--json] [NODE…] prints µs once
// warm and the ms of the first one in a process, bare and with longstack, in a chain of two timers.

const { spawnSync } = require('node:child_process')
const path = require('node:path')
const { median } = require('./median')

const PROCESSES = 7
const ROUNDS = 60
const ERRORS = 100 // a round: shorter than a slice of the scheduler
const WARM = 10_000

/** @type {Record<string, string>} the functions that fail: what V8 tells of their frames differs */
const kinds = {
  sloppy: 'setTimeout(function outer () { setTimeout(function inner () { done(measure(fail)) }, 2) }, 2)',
  strict: "'use strict'; setTimeout(() => setTimeout(() => done(measure(fail)), 2), 2)",
  async: `'use strict'
    const pause = () => new Promise((resolve) => setTimeout(resolve, 2))
    ;(async () => { await pause(); await pause(); done(measure(fail)) })()`
}

/** @param {string} kind */
function source (kind) {
  return `(function () {
    const fail = (n) => { try { throw new Error('x' + n) } catch (error) { return error.stack.length } }
    function measure (work) {
      const began = performance.now()
      work(0)
      const first = performance.now() - began
      for (let i = 0; i < ${WARM}; i++) work(i)
      let best = Infinity
      for (let round = 0; round < ${ROUNDS}; round++) {
        const start = performance.now()
        for (let i = 0; i < ${ERRORS}; i++) work(i)
        best = Math.min(best, performance.now() - start)
      }
      return { first, warm: best / ${ERRORS} * 1000 }
    }
    const done = (figures) => console.log(JSON.stringify(figures))
    ;(function () { ${kinds[kind]} })()
  })()`
}

/**
 * @param {string} node
 * @param {string[]} args
 * @param {string} kind
 * @returns {{ first: number, warm: number }} ms and µs
 */
function once (node, args, kind) {
  const { stdout, stderr, status } = spawnSync(node, [...args, '-e', source(kind)], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${node} ended with ${status}: ${stderr}`)
  return JSON.parse(stdout)
}

/** @param {string} node */
function measure (node) {
  const register = path.join(__dirname, '..', 'lib', 'register.js')
  return Object.keys(kinds).map((kind) => {
    /** @type {Record<string, { first: number[], warm: number[] }>} */
    const runs = { bare: { first: [], warm: [] }, longstack: { first: [], warm: [] } }
    for (let i = 0; i < PROCESSES; i++) {
      for (const subject of Object.keys(runs)) {
        const { first, warm } = once(node, subject === 'bare' ? [] : ['-r', register], kind)
        runs[subject].first.push(first)
        runs[subject].warm.push(warm)
      }
    }
    const { bare, longstack } = runs
    const least = Math.min(...longstack.first)
    return {
      kind,
      warm: { bare: Math.min(...bare.warm), longstack: Math.min(...longstack.warm) },
      first: { bare: median(bare.first), longstack: median(longstack.first), least }
    }
  })
}

const given = process.argv.slice(2)
const nodes = given.filter((arg) => arg !== '--json')
const results = (nodes.length > 0 ? nodes : [process.execPath]).map((node) => ({
  version: spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim(),
  figures: measure(node)
}))

if (given.includes('--json')) {
  console.log(JSON.stringify(results, undefined, 2))
} else {
  for (const { version, figures } of results) {
    console.log(`${version}: an error thrown, caught and read in a chain of two timers`)
    for (const { kind, warm, first } of figures) {
      const us = [warm.bare, warm.longstack, warm.longstack - warm.bare]
      const [bare, long, more] = us.map((value) => value.toFixed(1))
      console.log(`  ${kind.padEnd(7)} warm ${bare} µs bare, ${long} with longstack (+${more})`)
      const [bareMs, longMs, least] = [first.bare, first.longstack, first.least].map((ms) => ms.toFixed(2))
      console.log(`          first ${bareMs} ms bare, ${longMs} with longstack, at least ${least}`)
    }
  }
}
