'use strict'

// Deferring: what the example says of listeners, orders, starving and chains is so, and tracing changes none of its answers.

const path = require('node:path')
const test = require('ava')
const { node, root, register } = require('../helpers/run')
const { sameAnswers, goodClaims } = require('../helpers/examples')

const file = path.join(root, 'examples', '05-deferring.js')
const ways = ['process.nextTick', 'queueMicrotask', 'promise.then', 'setImmediate', 'setTimeout 0']
const starving = ['process.nextTick', 'queueMicrotask', 'promise.then']
const labels = { 'setTimeout 0': 'setTimeout(1)' } // Node makes 1 of 0

/** The ways in the order in which they run, by where they were set. @type {Record<string, string>} */
const orders = {
  'the main script': 'tick then microtask timeout immediate',
  'an ES module, at its top': 'then microtask tick',
  'a callback of fs.stat': 'tick then microtask immediate timeout',
  'a callback of process.nextTick': 'tick then microtask timeout immediate',
  'a promise, so after await': 'then microtask tick timeout immediate',
  'a callback of setImmediate': 'tick then microtask timeout immediate',
  'a callback of setTimeout': 'tick then microtask immediate timeout'
}
const short = { tick: 'process.nextTick', then: 'promise.then', microtask: 'queueMicrotask', timeout: 'setTimeout 0', immediate: 'setImmediate' }
const inOrder = (/** @type {string} */ place) => orders[place].split(' ').map((word) => short[word])

test('the story: what is missed, the orders, who starves whom, and chains that name the way and the caller', async (t) => {
  const { stdout, stderr, code } = await node([file])
  t.is(stderr, '')
  t.is(code, 0)
  const line = (/** @type {string} */ start) => stdout.split('\n').filter((one) => one.startsWith(`${start}  `)).map((one) => one.slice(start.length).trim())

  t.deepEqual(line('at once'), ['nothing'])
  for (const way of [...ways, 'a call of fs.stat']) t.is(line(way)[0], 'before, after 5 characters', way)

  for (const place of Object.keys(orders)) {
    const ranks = ways.map((way) => inOrder(place).indexOf(way) + 1 || '–')
    t.is(line(place)[0].replace(/ +/g, ' '), ranks.join(' '), place)
  }
  t.regex(stdout, /the timer won in (\d|1[0-2]) of 12 processes/)

  for (const way of ways) {
    const [, turns, over, back, when] = /^(\d+) +([\d.]+) ms +([\d.]+) ms +(\w+)$/.exec(line(way)[1])
    if (starving.includes(way)) t.true(Number(turns) > 100 && Number(over) >= 200 && Number(back) >= Number(over) && when === 'after', way)
    else t.true(Number(back) <= Number(over) && when === 'during', way)
  }

  const [bare, traced] = stdout.split('Node alone shows')[1].split('which does not tell who wanted the page.')
  t.regex(bare, /Error: no log for 5 characters/)
  t.false(bare.includes('homePage'))
  t.regex(traced, /at (Object\.)?logLength[^]*?── process\.nextTick · TickObject [^]*?at deliver [^]*?at homePage /)
  for (const way of ways) {
    t.regex(line(way)[2], new RegExp(`^── ${(labels[way] ?? way).replace(/[().]/g, '\\$&')} *── .*deliver < homePage < fail < the main script$`), way)
    for (const cost of line(way)[3].split(/ +/).filter((cell) => cell !== '–')) t.true(Number(cost) > 0, way)
  }
})

test('the answers are the same whatever traces', async (t) => {
  const answers = (await sameAnswers(t, file)).split('\n')
  for (const page of ['a page', 'an empty page', 'no page']) t.true(answers.includes(`${page}, at once: the call is over`))
  for (const way of [...ways, 'a call of fs.stat']) {
    t.true(answers.includes(`a page, ${way}: the call is over, before, after 5 characters`))
    t.true(answers.includes(`an empty page, ${way}: the call is over, error (an empty page)`))
    t.true(answers.includes(`no page, ${way}: the call is over, otherwise`))
  }
  for (const place of Object.keys(orders)) t.true(answers.includes(`deferred in ${place}: ${inOrder(place).join(', ')}`), place)
  for (const way of ways) t.true(answers.includes(`${way} again and again: a read is back ${starving.includes(way) ? 'when it is over' : 'while it goes on'}`), way)
})

test('the figures have the shape that a page of claims reads', async (t) => {
  const { claims, tables } = await goodClaims(t, file)
  t.deepEqual(claims.map((claim) => [claim.id, claim.saidRatio]), [['deferring-timeout', null], ['deferring-immediate', 24], ['deferring-starves', null]])
  const { off, on } = claims[2]
  t.true(off.b >= 200 && on.b >= 200 && off.b > off.a && on.b > on.a, 'the read waits for the end of the ticks')
  t.deepEqual(tables[0].rows.map(([way]) => way), ways)
})

for (const [name, env] of Object.entries({ full: {}, light: { LONGSTACK_MODE: 'light' }, js: { LONGSTACK_CAPTURE: 'js' } })) {
  test(`${name}: the error of a late listener leads to the caller, whatever deferred it`, async (t) => {
    for (const way of ways) {
      const { stdout, stderr, code } = await node(['-r', register, file, 'fail', way], { env })
      t.is(stderr, '')
      t.is(code, 0)
      const { stack, hops } = JSON.parse(stdout)
      // Promises have no hops in light mode, where this Node can keep their hooks off.
      if (name === 'light' && way === 'promise.then' && hops.length === 0) {
        t.true(Number(process.versions.node.split('.')[0]) >= 24)
        continue
      }
      t.deepEqual(hops.map((hop) => hop.label), [labels[way] ?? way])
      t.deepEqual(hops[0].frames.slice(1).map((frame) => frame.functionName), ['deliver', 'homePage', 'fail', undefined], way)
      t.true(stack.includes(`  ── ${hops[0].label} · ${hops[0].type} · `), way)
    }
  })
}
