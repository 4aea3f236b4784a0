'use strict'

// Invariants of every recording, even of those that no program could write: the parts of each request add up
// to its duration, none is negative, and nothing throws.

const test = require('ava')
const layout = require('../../lib/core/run-log-words')
const { faultsOf, read } = require('../helpers/span-faults')
const { Log } = require('./recordings')

const { ONE_SHOT, TIMER } = layout

/** @param {number} seed @returns {(below: number) => number} */
function randomOf (seed) {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor(((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32 * below)
  }
}

/** A program of several requests, with all kinds of entries. @param {number} seed @returns {Log} */
function programOf (seed) {
  const random = randomOf(seed)
  const log = new Log(random(3) === 0 ? 2 ** 31 - 20 : 1) // numbers may wrap around
  let time = 1000
  const pass = () => (time += random(4) === 0 ? random(30) : random(10) / 10)
  /** @type {Array<{ run: number, request: number }>} */
  const runs = []
  /** @type {number[]} */
  const open = []
  const none = { run: 0, request: 0 }
  const pick = () => runs[Math.max(0, runs.length - 12) + random(Math.min(runs.length, 12))] ?? none
  const note = (/** @type {number} */ run, /** @type {number} */ request) => runs.push({ run, request })
  for (let i = 0, requests = 0; i < 120; i++) {
    const { run, request } = pick()
    const last = runs[runs.length - 1] ?? none
    const chain = random(20)
    const connection = 80 + random(3)
    const words = { request, registered: run, chain }
    switch (random(13)) {
      case 0: {
        const slept = random(3) * random(20)
        time += slept
        log.poll(pass(), slept)
        break
      }
      case 1:
        open.push(++requests)
        note(log.serve(pass(), requests, { unread: random(5) }), requests)
        break
      case 2:
        if (open.length === 0) break
        log.end(time, open.splice(random(open.length), 1)[0], random(4) === 0 ? 0 : last.run)
        break
      case 3:
        open.push(++requests)
        log.client(requests, last.request, last.run, { a: 2 + random(2) })
        break
      case 4: {
        const timer = log.callback(pass(), { flags: TIMER | random(2) * ONE_SHOT, ...words })
        if (random(2) === 0) log.due(timer, time - random(20))
        note(timer, request)
        break
      }
      case 5: case 6: {
        const came = log.came(pass(), connection, words)
        if (random(2) === 0) log.arrived(came, time - random(20))
        if (random(3) === 0) log.polledBy(came, time, random(20))
        note(came, request)
        for (let each = random(3); each > 0; each--) {
          const maker = pick()
          log.settle(came, maker.run, { request: maker.request, chain, x: random(2) * (time - random(30)) })
        }
        break
      }
      case 7: case 8: case 9:
        note(log.awaited(pass(), { ...words, settled: random(4) === 0 ? pick().run : last.run }), request)
        break
      case 10:
        note(log.step(pass(), { ...words, caller: last.run }), request)
        if (random(2) === 0) log.resume(pass(), last.request, last.run)
        break
      case 11:
        log.sent(connection, last.run, { request: last.request, chain, b: random(8) === 0 ? 1 : 0 })
        break
      case 12:
        note(log.step(pass(), words), request)
    }
  }
  return log
}

/** Entries that mean nothing. @param {number} seed @returns {Uint8Array} */
function noiseOf (seed) {
  const random = randomOf(seed)
  const words = new Int32Array(layout.WORDS * 80)
  const doubles = new Float64Array(words.buffer)
  const times = [NaN, Infinity, -Infinity, 0, -5, 1e300]
  for (let i = 0; i < words.length; i++) words[i] = random(9) === 0 ? random(2 ** 31) * 2 : random(40) - 4
  for (let entry = 0; entry < words.length; entry += layout.WORDS) {
    words[entry] = random(11) | random(256) << layout.KIND_BITS
    doubles[entry / 2 + layout.TIME] = random(20) === 0 ? times[random(times.length)] : entry + random(200)
    doubles[entry / 2 + layout.X] = random(20) === 0 ? times[random(times.length)] : random(50) - 5
  }
  return new Uint8Array(words.buffer)
}

test('random programs: the parts of each request add up', (t) => {
  let requests = 0
  for (let seed = 1; seed <= 2000; seed++) {
    const log = programOf(seed)
    const told = read(log.bytes(), log.first)
    requests += told.spans.length
    const faults = faultsOf(told)
    if (faults.length > 0) return t.fail(`seed ${seed}: ${faults.slice(0, 3).join('\n')}`)
  }
  t.true(requests > 10_000, String(requests))
})

test('recordings may begin anywhere', (t) => {
  for (let seed = 1; seed <= 500; seed++) {
    const log = programOf(seed)
    const skipped = seed % log.entries.length
    const bytes = log.bytes().subarray(skipped * layout.WORDS * 4)
    const faults = faultsOf(read(bytes, (log.first + skipped) | 0))
    if (faults.length > 0) return t.fail(`seed ${seed}: ${faults.slice(0, 3).join('\n')}`)
  }
  t.pass()
})

test('recordings that no program wrote are read', (t) => {
  for (let seed = 1; seed <= 3000; seed++) {
    const faults = faultsOf(read(noiseOf(seed), seed % 50), true)
    if (faults.length > 0) return t.fail(`seed ${seed}: ${faults.slice(0, 3).join('\n')}`)
  }
  t.pass()
})

test('spans are the same whatever the size of the log\'s blocks', (t) => {
  for (let seed = 1; seed <= 300; seed++) {
    const log = programOf(seed)
    const whole = read(log.bytes(), log.first)
    for (const size of [1, 2 + seed % 7, 50]) {
      t.deepEqual(read(log.bytes(), log.first, size).spans, whole.spans)
    }
  }
})

test('figures are the same, or less is known, however few entries are kept', (t) => {
  let [same, less] = [0, 0]
  for (let seed = 1; seed <= 300; seed++) {
    const log = programOf(seed)
    const whole = new Map(read(log.bytes(), log.first).spans.map((span) => [span.request.number, span]))
    for (const size of [96, 128, 192]) {
      for (const { figures, request } of read(log.bytes(), log.first, 20, size).spans) {
        t.is(figures.run + figures.waited + figures.delayed, figures.duration)
        const expected = whole.get(request.number)?.figures
        if (request.droppedUntil > 0) {
          less++
          t.like(figures, { duration: expected?.duration, run: expected?.run }, `seed ${seed}, ${size} entries`)
        } else {
          same++
          t.deepEqual(figures, expected, `seed ${seed}, ${size} entries`)
        }
      }
    }
  }
  t.true(same > 8000 && less > 1000, `${same} ${less}`)
})
