'use strict'

// Primes in process.nextTick: what the example says is so, tracing changes none of its answers, and a recursion is one hop
// with the right count.

const { execFileSync } = require('node:child_process')
const path = require('node:path')
const test = require('ava')
const { node, root, register } = require('../helpers/run')
const { sameAnswers, goodClaims } = require('../helpers/examples')

const file = path.join(root, 'examples', '03-primes-in-nexttick.js')
const ways = ['process.nextTick', 'queueMicrotask', 'setImmediate', 'promise.then', 'await']

// Promises pass without a hop in light mode, where this Node can keep their hooks off.
const lightHasPromises = execFileSync(process.execPath, ['-r', register, '-p', 'require("longstack").stats().mode'],
  { cwd: root, env: { ...process.env, LONGSTACK_MODE: 'light' }, encoding: 'utf8' }).trim() === 'full'

/** The counts that a table of recursions must show. @param {string} way @param {string} mode @param {number} turns */
function expected (way, mode, turns) {
  const passes = mode === 'light' && !lightHasPromises && (way === 'promise.then' || way === 'await')
  return passes ? 'no hop' : `1 + ${turns - 1}`
}

test('the story: three forms measured, 30,000 ticks as one hop, counted right in every mode', async (t) => {
  const { stdout, stderr, code } = await node([file])
  t.is(stderr, '')
  t.is(code, 0)

  const forms = ['small closure, sieve beside it', 'large closure, sieve inside', 'no closure, arguments passed'].map((name) => {
    const found = new RegExp(`^${name} +([\\d.]+) µs +([\\d.]+) µs$`, 'm').exec(stdout)
    t.truthy(found, stdout)
    return found.slice(1).map(Number)
  })
  for (const cost of forms.flat()) t.true(cost > 1 && cost < 1_000, stdout)
  const [off, on] = /^large over small +([\d.]+) +([\d.]+)$/m.exec(stdout).slice(1).map(Number)
  t.true(Math.abs(off - forms[1][0] / forms[0][0]) < 0.02 && Math.abs(on - forms[1][1] / forms[0][1]) < 0.02, 'the ratios are those of the figures')

  t.regex(stdout, /Error: the end of 30000 turns\n[^]*?── process\.nextTick × 29999 · TickObject [^]*?at again [^]*?── process\.nextTick · TickObject [^]*?at again .*\n.*at begin /)
  t.is(stdout.match(/ ── /g).length, 2, 'no other hop')
  t.regex(stdout, /one hop with its count, 29999; the first of the 30000 ticks/)
  const [contexts, later] = /tracing held (\d+) contexts .* and (\d+) \(/.exec(stdout).slice(1).map(Number)
  t.true(contexts <= 31_000 && later < 2_100, 'hardly anything outlives a garbage collection; both are estimates')

  for (const way of ways) {
    const cells = new RegExp(`^${way}  (.*)$`, 'm').exec(stdout)[1].trim().split(/ {2,}/)
    t.deepEqual(cells, ['full', 'light', 'js'].map((mode) => expected(way, mode, 30_000)), way)
  }
  t.is(stdout.includes('Light mode lets promises pass'), !lightHasPromises)
})

test('the answers are the same whatever traces', async (t) => {
  const answers = await sameAnswers(t, file)
  const primes = answers.match(/^(hoisted|inline|passed): (\d+) primes in 1500 ticks$/gm).map((line) => /: (\d+)/.exec(line)[1])
  t.is(primes.length, 3)
  t.deepEqual(primes.map(Number), Array(3).fill(primesBelowAll(1_500)))
  for (const way of ways) {
    const immediateFirst = way === 'setImmediate'
    const order = ['an immediate set before', 'the last of 30000 turns']
    t.true(answers.includes(`${way}: ${(immediateFirst ? order : order.reverse()).join(', then ')}\n`), way)
  }
})

/** The primes up to each limit, all limits added up, by trial division. @param {number} most */
function primesBelowAll (most) {
  let sum = 0
  for (let n = 2; n <= most; n++) {
    let divisor = 2
    while (n % divisor !== 0) divisor++
    if (divisor === n) sum += most - n + 1 // it is below so many limits
  }
  return sum
}

test('the figures have the shape that a page of claims reads', async (t) => {
  const { claims, tables } = await goodClaims(t, file)
  t.deepEqual(claims.map((claim) => [claim.id, claim.saidRatio]), [['primes-large-closure', 4.2], ['primes-memory', 1.01]])
  t.deepEqual(tables[0].rows, ways.map((way) => [way, ...['full', 'light', 'js'].map((mode) => expected(way, mode, 3_000))]))
  for (const [way, right, , later] of tables[1].rows) t.true(Number(right) < 7_500 && Number(later) < 2_100, way)
})

for (const [name, env] of Object.entries({ full: {}, light: { LONGSTACK_MODE: 'light' }, js: { LONGSTACK_CAPTURE: 'js' } })) {
  test(`${name}: the count follows the number of turns, two turns too`, async (t) => {
    for (const turns of [2, 65, 1_000]) {
      const { stdout, stderr } = await node(['-r', register, file, 'turns', 'process.nextTick', String(turns)], { env })
      t.is(stderr, '')
      const { hops } = JSON.parse(stdout)
      t.deepEqual(hops.map((hop) => [hop.label, hop.repeats]), [['process.nextTick', turns - 1], ['process.nextTick', 1]], `${turns} turns`)
      t.true(hops[1].frames.some((frame) => frame.functionName === 'begin'), 'the beginning leads to the caller')
    }
  })
}
