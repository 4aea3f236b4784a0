'use strict'

const test = require('ava')
const { OWN_QUESTION, PathLog } = require('../../../lib/spans/critical-path')
const { walkPath } = require('../../../lib/spans/path-walk')

const CALLBACK = 21
const CALLBACK_CHAIN = 31
const START = { idle: 0, others: 0, own: 0 }
const NO_CALLBACK = { callback: 0, callbackChain: 0, cameBy: 0, cameAfter: 0 }

/**
 * @typedef {object} Run counters in ms when it began, and its causes
 * @property {number} [idle]
 * @property {number} [others]
 * @property {number} [own]
 * @property {number} [registered]
 * @property {number} [settled]
 * @property {number} [settler]
 * @property {number} [site]
 * @property {number} [cameBy] when what it waited for had come; default with its cause
 * @property {number} [cameAfter]
 */

/** Makes a log of runs, numbered from 1. @param {Run[]} runs */
function logOf (runs) {
  const log = new PathLog()
  for (const run of runs) {
    const { idle = 0, others = 0, own = 0, registered = 0, settled = 0, settler = 0, site = 0 } = run
    const { cameBy = 0, cameAfter = cameBy } = run
    const callback = { callbackId: CALLBACK, callbackChain: CALLBACK_CHAIN }
    const moment = { idle, busy: others + own, ...callback, cameBy, cameAfter }
    log.add(moment, own, registered, settled, settler, site)
  }
  return log
}

/**
 * Walks the path of a span that began with run 1, at zero.
 * @param {Run[]} runs
 * @param {number} last
 * @param {{ idle?: number, others?: number, own?: number }} end
 */
function pathOf (runs, last, { idle = 0, others = 0, own = 0 }) {
  const log = logOf(runs)
  const end = { idle, others, own, ...NO_CALLBACK }
  return walked({ log, first: 1, last, count: log.count, start: START, end, ownRun: own })
}

/** Walks a path. @param {Record<string, any>} section */
function walked ({ log, first, last, count, start, end, ownRun }) {
  const { waits, ran, beside } = walkPath({
    log,
    firstRun: first,
    lastRun: last,
    runCount: count,
    idleAtStart: start.idle,
    busyAtStart: start.others + start.own,
    ownAtStart: start.own,
    endState: end,
    run: ownRun
  })
  return { waits: /** @type {any[]} */ (waits), ran: /** @type {any[]} */ (ran), beside }
}

/** Adds up a figure. @param {any[]} parts @param {string} name */
const sum = (parts, name) => parts.reduce((total, part) => total + part[name], 0)

test('a wait lies between the run that registered it and the one that it ended with', (t) => {
  const { waits } = pathOf([{ idle: 0 }, { idle: 10, registered: 1, site: 7 }], 2, { idle: 10 })
  const ending = { callback: CALLBACK, callbackChain: CALLBACK_CHAIN, settler: 0 }
  const question = { sent: 0, unsent: 0, beside: 0 }
  const late = { delayed: 0, delayedMax: 0, cameAfter: 0, cameBy: 0, until: 10, own: 0, ownLate: 0 }
  t.deepEqual(waits, [{ ms: 10, ...late, site: 7, proven: true, ...ending, ...question }])
})

test('for an answer: asked by the request, for nobody, for another one', (t) => {
  const answered = (/** @type {number} */ sent) => {
    const log = logOf([{ idle: 0 }, { idle: 10, registered: 1, site: 7 }])
    log.setSent(2, sent)
    const end = { idle: 10, others: 0, own: 0, ...NO_CALLBACK }
    const { waits: [wait] } = walked({ log, first: 1, last: 2, count: 2, start: START, end, ownRun: 0 })
    return [wait.sent, wait.unsent]
  }
  t.deepEqual(answered(NaN), [0, 0])
  t.deepEqual(answered(OWN_QUESTION), [1, 0])
  t.deepEqual(answered(Infinity), [0, 10], 'a turn')
  t.deepEqual(answered(6), [1, 6], 'a turn, and then the answer')
  t.deepEqual(answered(0), [0, 0], 'what was sent before may have been anything')
})

test('runs beside a wait are those after which the loop waited on', (t) => {
  const log = logOf([{ idle: 0 }, { idle: 0, registered: 1 }])
  const moment = { idle: 4, busy: 0, callbackId: 99, callbackChain: CALLBACK_CHAIN, cameBy: 0, cameAfter: 0 }
  log.add(moment, 0, 1, 0, 0, 5)
  log.add({ ...moment, idle: 10, callbackId: CALLBACK }, 0, 1, 0, 0, 7)
  const end = { idle: 10, others: 0, own: 0, ...NO_CALLBACK }
  const { waits } = walked({ log, first: 1, last: 4, count: 4, start: START, end, ownRun: 0 })
  t.deepEqual(waits.map(({ ms, beside }) => [ms, beside]), [[10, 1]])
})

test('a log knows on which connections something was sent, and since which run', (t) => {
  const log = logOf([{}])
  t.false(log.hasSent(8, 0))
  for (let run = 1; run <= 20; run++) log.noteSent(run * 2, run)
  log.noteSent(40, 21)
  t.true(log.hasSent(40, 21))
  t.false(log.hasSent(40, 22))
  t.true(log.hasSent(26, 13))
  t.false(log.hasSent(24, 1), 'only the last eight are known')
})

test('waits one after another, newest first', (t) => {
  const runs = [{ idle: 0 }, { idle: 10, registered: 1, site: 7 }, { idle: 15, registered: 2, site: 8 }]
  t.deepEqual(pathOf(runs, 3, { idle: 15 }).waits.map(({ ms, site }) => [ms, site]), [[5, 8], [10, 7]])
})

test('what is not on the path is no wait', (t) => {
  const runs = [{ idle: 0 }, { idle: 5, registered: 1, site: 8 }, { idle: 10, registered: 1, site: 9 }]
  t.deepEqual(pathOf(runs, 3, { idle: 10 }).waits.map(({ ms, site }) => [ms, site]), [[10, 9]])
})

test('a continuation leads to the run that settled what it awaited', (t) => {
  const { waits } = pathOf([
    { idle: 0 },
    { idle: 4, registered: 1, site: 5 },
    { idle: 6, registered: 1, settled: 2, site: 6 }
  ], 3, { idle: 6 })
  t.deepEqual(waits.map(({ ms, site }) => [ms, site]), [[2, 6], [4, 5]])
})

test('where a run of another request settled it, its span is named', (t) => {
  const { waits } = pathOf([{ idle: 0 }, { idle: 10, registered: 1, settler: 99, site: 7 }], 2, { idle: 10 })
  t.is(waits[0].settler, 99)
})

test('a run that was registered elsewhere ends a wait of which only the order is known', (t) => {
  const { waits } = pathOf([{ idle: 0, site: 3 }, { idle: 10, registered: 0, site: 7 }], 2, { idle: 10 })
  t.deepEqual(waits.map(({ ms, site, proven }) => [ms, site, proven]), [[10, 3, false]])
})

test('a span that ends in no run of its own waited until then', (t) => {
  const { waits } = pathOf([{ idle: 0, site: 3 }], 0, { idle: 12 })
  t.deepEqual(waits.map(({ ms, site, proven }) => [ms, site, proven]), [[12, 3, false]])
})

test('a span without any run has one wait, without a site', (t) => {
  const { waits, ran, beside } = pathOf([], 0, { idle: 12, others: 3 })
  t.deepEqual(waits.map(({ ms, delayed, site, proven }) => [ms, delayed, site, proven]), [[12, 3, 0, false]])
  t.deepEqual([ran, beside], [[], 0])
})

test('what the loop waited before the first run is a wait without a site', (t) => {
  const { waits } = pathOf([{ idle: 3, others: 2, site: 7 }], 1, { idle: 3, others: 2 })
  t.deepEqual(waits.map(({ ms, delayed, site, proven }) => [ms, delayed, site, proven]), [[3, 2, 0, false]])
})

test('what the loop waited in the last run, which no hook reported, is a wait', (t) => {
  const { waits } = pathOf([{ idle: 0 }, { idle: 3, registered: 1, site: 7 }], 2, { idle: 9 })
  t.deepEqual(waits.map(({ ms, site, proven }) => [ms, site, proven]), [[6, 7, false], [3, 7, true]])
})

test('others that ran between cause and effect delayed the wait, also where the loop did not wait', (t) => {
  const runs = [
    { others: 5 },
    { idle: 10, others: 25, registered: 1, site: 7 },
    { idle: 10, others: 40, registered: 2, site: 8 }
  ]
  const { waits } = pathOf(runs, 3, { idle: 10, others: 41 })
  const expected = [[0, 15, 8], [10, 20, 7], [0, 5, 0]]
  t.deepEqual(waits.map(({ ms, delayed, site }) => [ms, delayed, site]), expected)
})

test('own code is told by the site that led to it, that of the first run by none', (t) => {
  const runs = [
    {},
    { own: 3, idle: 10, registered: 1, site: 7 },
    { own: 8, idle: 15, registered: 2, site: 8 }
  ]
  const { ran, beside } = pathOf(runs, 3, { own: 10, idle: 15 })
  t.deepEqual(ran, [{ ms: 2, site: 8 }, { ms: 5, site: 7 }, { ms: 3, site: 0 }])
  t.is(beside, 0)
})

test('own code of runs that are not on the path ran beside', (t) => {
  const runs = [
    {},
    { own: 3, idle: 5, registered: 1, site: 8 },
    { own: 7, idle: 10, registered: 1, site: 9 },
    { own: 8, idle: 10, registered: 2, site: 5 }
  ]
  const { ran, beside } = pathOf(runs, 3, { own: 14, idle: 10 })
  t.deepEqual(ran, [{ ms: 1, site: 9 }, { ms: 3, site: 0 }])
  t.is(beside, 4 + 6)
})

test('the site of a run that another request registered is not told', (t) => {
  const { ran } = pathOf([{}, { own: 2, idle: 5, site: 8 }], 2, { own: 6, idle: 5 })
  t.deepEqual(ran, [{ ms: 4, site: 0 }, { ms: 2, site: 0 }])
})

test('a span inside of another counts from its own start', (t) => {
  const log = logOf([{}, { own: 4, idle: 8, others: 5, registered: 1, site: 7 }])
  const start = { idle: 2, others: 1, own: 3 }
  const end = { idle: 8, others: 5, own: 9, ...NO_CALLBACK }
  const { waits } = walked({ log, first: 2, last: 2, count: 2, start, end, ownRun: 6 })
  t.deepEqual(waits.map(({ ms, delayed, site }) => [ms, delayed, site]), [[6, 4, 0]])
})

test('the parts of random programs add up, also where old runs are forgotten', (t) => {
  let state = 7
  const random = (/** @type {number} */ max) => (state = (state * 48271) % 0x7fffffff) % max
  for (let round = 0; round < 300; round++) {
    const now = { idle: random(5), others: random(5), own: random(5) }
    const advance = () => {
      for (const name of /** @type {const} */ (['idle', 'others', 'own'])) now[name] += random(4)
    }
    const runs = Array.from({ length: 1 + random(round < 285 ? 60 : 1500) }, (_, i) => {
      advance()
      const registered = Math.max(0, i - random(20))
      return { ...now, registered, settled: random(2) * Math.max(0, i - random(10)), site: 1 + random(5) }
    })
    const last = random(3) === 0 ? 0 : Math.max(1, runs.length - random(3))
    if (last === 0) advance()
    else now.own += random(9)
    const { waits, ran, beside } = pathOf(runs, last, now)
    const text = `round ${round}, run ${last} of ${runs.length}`
    t.is(sum(ran, 'ms') + beside, now.own, text)
    t.is(sum(waits, 'ms'), now.idle, text)
    t.true(sum(waits, 'delayed') <= now.others, text)
    if (last === 0) t.is(sum(waits, 'delayed'), now.others, text)
  }
})

/** @param {any[]} waits */
const figures = (waits) => waits.map(({ ms, delayed, delayedMax }) => [ms, delayed, delayedMax])

test('others that ran while an answer was on its way delayed nobody', (t) => {
  const runs = [{}, { idle: 50, others: 110, registered: 1, cameBy: 150 }]
  t.deepEqual(figures(pathOf(runs, 2, { idle: 50, others: 110 }).waits), [[150, 10, 10]])
})

test('what came before it was asked for was there at once', (t) => {
  const runs = [{ others: 20 }, { others: 30, registered: 1, cameBy: 5 }]
  t.deepEqual(figures(pathOf(runs, 2, { others: 30 }).waits), [[0, 10, 10], [0, 20, 20]])
})

test('where it came between two polls, the delay is a range', (t) => {
  const runs = [{}, { idle: 20, others: 100, registered: 1, cameAfter: 24, cameBy: 108 }]
  t.deepEqual(figures(pathOf(runs, 2, { idle: 20, others: 100 }).waits), [[108, 12, 96]])
})

test('what the request itself ran when the answer had come is no delay', (t) => {
  const runs = [
    {},
    { idle: 10, own: 0, registered: 1 },
    { idle: 10, own: 30, others: 15, registered: 1, cameBy: 20 }
  ]
  const { waits, ran, beside } = pathOf(runs, 3, { idle: 10, own: 30, others: 15 })
  t.deepEqual(figures(waits), [[10, 15, 15]], 'it came 10 ms after the run began, which lasted for 30')
  t.deepEqual([sum(ran, 'ms'), beside], [0, 30])
})

test('code of the request outside of a span inside of it: a wait until the answer had come, then a delay', (t) => {
  const log = logOf([{}, { idle: 20, own: 80, registered: 1, cameBy: 70 }])
  const end = { idle: 20, others: 0, own: 80, ...NO_CALLBACK }
  const { waits } = walked({ log, first: 1, last: 2, count: 2, start: START, end, ownRun: 0 })
  t.deepEqual(waits.map(({ ms, delayed }) => Math.round(ms + delayed)), [100])
})
