'use strict'

// Records that are kept past the ring (lib/context/records.js): which are given up where there are too many.

const test = require('ava')
const records = require('../../lib/context/records')

const { CHAIN, FLAGS, LIVE, MASK, ONE_SHOT, REF, SHIFT, resources } = records
const KEPT = 1 << 16

/** @param {number} id @param {number} flags */
function keep (id, flags) {
  const at = (id & MASK) << SHIFT
  resources[at + REF] = id << 1
  resources[at + CHAIN] = id
  resources[at + FLAGS] = flags
  records.keep(resources, at)
  resources[at + REF] = -1
}

const chainOf = (/** @type {number} */ id) => records.readWord(id << 1, CHAIN)

test.beforeEach(() => records.clear())

test.serial('the oldest is given up, each time one comes', (t) => {
  const lost = records.lostCount()
  for (let id = 1; id <= 3 * KEPT; id++) keep(id, LIVE)
  t.is(records.lostCount() - lost, 2 * KEPT)
  t.is(chainOf(2 * KEPT), 0)
  t.is(chainOf(2 * KEPT + 1), 2 * KEPT + 1)
  t.is(chainOf(3 * KEPT), 3 * KEPT)
})

test.serial('what has run is given up before what may still run', (t) => {
  const lost = records.lostCount()
  keep(1, LIVE)
  for (let id = 2; id <= 8 * KEPT; id++) {
    keep(id, LIVE | ONE_SHOT)
    records.ended(id << 1)
  }
  t.is(records.lostCount(), lost)
  t.is(chainOf(1), 1)
  t.is(chainOf(8 * KEPT), 8 * KEPT, 'the newest that ran stay')
  t.is(chainOf(KEPT), 0)
})

test.serial('one that is kept again has its new words', (t) => {
  keep(1, LIVE)
  keep(1, LIVE | ONE_SHOT)
  t.is(records.readWord(2, FLAGS), LIVE | ONE_SHOT)
})
