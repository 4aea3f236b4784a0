'use strict'

// Spans of programs that run on a scripted clock: hooks report what happens at exact times.

const test = require('ava')
const { CHAIN, RUN } = require('../../../lib/core/records')
const { LoopTime } = require('../../../lib/spans/loop-time')
const { walkPath } = require('../../../lib/spans/path-walk')
const { Span } = require('../../../lib/spans/span')

/** An event loop with a clock that stands still between the calls of its methods. */
function scriptedLoop () {
  let time = 1000
  let polled = 2 ** 30 // more than libuv counts in this process: only what the script says is a wait
  const loop = new LoopTime(() => 'Timeout', () => time)
  loop.start(time)
  loop.polled = polled
  const words = new Int32Array(16)
  return {
    loop,
    /** @param {number} ms in which JavaScript runs */
    run: (ms) => { time += ms },
    /** @param {number} ms in which the loop waits */
    wait (ms) {
      time += ms
      polled += ms
      loop.addWait(time, polled)
      loop.arrivals.polled(time - loop.zero, ms)
    },
    /** Begins a request. */
    open () {
      loop.accountUntil(time)
      const span = new Span({
        name: 'GET /',
        kind: 'SERVER',
        traceId: undefined,
        parentSpanId: undefined,
        sampled: true,
        parent: undefined,
        start: time,
        origin: 0,
        loop
      })
      loop.switchTo(span.seq, time)
      loop.beginFirstRun()
      return span
    },
    /**
     * Enters a callback, the first one of an iteration.
     * @param {Span} span
     * @param {number} registered run of it
     * @param {number} chain of the registration
     * @param {boolean} [mayHavePolled] else it comes after another one of the same poll
     * @returns {number} its run
     */
    enter (span, registered, chain, mayHavePolled = true) {
      loop.mayHavePolled = mayHavePolled
      loop.enterCallback(span.seq, time, 21, chain, words, 0)
      words[RUN] = registered
      words[CHAIN] = chain
      return loop.beginRun(0, words, 0, time, true)
    },
    /** @param {Span} span @param {number} run in which it ends */
    close (span, run) {
      loop.accountUntil(time)
      span.finish(time, loop, run)
      const parts = walkPath(span)
      loop.leave(span)
      span.release()
      return { ...parts, duration: span.end - span.start, own: span.run }
    }
  }
}

/** Adds up a figure. @param {any[]} parts @param {string} name */
const sum = (parts, name) => parts.reduce((total, part) => total + part[name], 0)

test('others that run while an answer is on its way delay nobody', (t) => {
  const { run, wait, open, enter, close } = scriptedLoop()
  const first = open()
  run(3)
  const second = open()
  run(20)
  wait(10)
  const effect = enter(first, 1, 71)
  run(7)
  const { waits, ran, beside, duration } = close(first, effect)
  t.deepEqual(waits.map(({ ms, delayed, site }) => [ms, delayed, site]), [[30, 0, 71]])
  t.deepEqual(ran, [{ ms: 7, site: 71 }, { ms: 3, site: 0 }])
  t.deepEqual([beside, duration], [0, 40])
  t.deepEqual(close(second, 1).ran, [{ ms: 20, site: 0 }])
})

test('others that ran before a callback that came with the same poll, or since, may have delayed it', (t) => {
  const { run, wait, open, enter, close } = scriptedLoop()
  const [first, second] = [open(), open()]
  wait(10)
  const other = enter(first, 1, 71)
  run(20)
  const effect = enter(second, 1, 72, false)
  run(2)
  const { waits } = close(second, effect)
  t.deepEqual(waits.map(({ ms, delayed, delayedMax }) => [ms, delayed, delayedMax]), [[30, 0, 20]])
  close(first, other)
})

test('callbacks one after another without a wait are told apart where each takes long', (t) => {
  const { run, open, enter, close } = scriptedLoop()
  const span = open()
  run(2)
  const second = enter(span, 1, 71)
  run(4)
  const third = enter(span, second, 72)
  run(8)
  t.deepEqual(close(span, third).ran, [{ ms: 8, site: 72 }, { ms: 4, site: 71 }, { ms: 2, site: 0 }])
})

test('a callback that nothing on the path led to ran beside', (t) => {
  const { run, wait, open, enter, close } = scriptedLoop()
  const span = open()
  run(1)
  wait(5)
  enter(span, 1, 71) // a heartbeat
  run(4)
  wait(5)
  const answer = enter(span, 1, 72)
  run(2)
  const { waits, ran, beside } = close(span, answer)
  t.deepEqual(waits.map(({ ms, site }) => [ms, site]), [[10, 72]])
  t.deepEqual(ran, [{ ms: 2, site: 72 }, { ms: 1, site: 0 }])
  t.is(beside, 4)
})

test('what runs, waits and is delayed in random programs adds up', (t) => {
  let state = 11
  const random = (/** @type {number} */ max) => (state = (state * 48271) % 0x7fffffff) % max
  for (let round = 0; round < 200; round++) {
    const { run, wait, open, enter, close } = scriptedLoop()
    const requests = Array.from({ length: 1 + random(4) }, () => {
      const span = open()
      run(random(5))
      return { span, last: 1 }
    })
    for (let step = random(60); step > 0; step--) {
      const request = requests[random(requests.length)]
      if (random(2) === 0) wait(1 + random(9))
      request.last = enter(request.span, 1 + random(request.last), 1 + random(6))
      run(random(5))
    }
    for (const { span, last } of requests) {
      enter(span, last, 7)
      const { waits, ran, beside, own, duration } = close(span, span.log.count)
      const [waited, delayed] = [sum(waits, 'ms'), sum(waits, 'delayed')]
      const text = `round ${round}`
      const isEqual = (/** @type {number} */ a, /** @type {number} */ b) => Math.abs(a - b) < 0.01
      t.true(isEqual(own + delayed + waited, duration), `${own} + ${delayed} + ${waited} = ${duration}: ${text}`)
      t.true(isEqual(sum(ran, 'ms') + beside, own), `${sum(ran, 'ms')} + ${beside} = ${own}: ${text}`)
      t.true(sum(waits, 'delayedMax') >= delayed, text)
    }
  }
})
