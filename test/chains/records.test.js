'use strict'

// Records kept beyond the ring (lib/core/records.js), and the eviction order if there are too many.

const test = require('ava')
const records = require('../../lib/core/records')
const { idAt } = require('../../lib/core/record-ids')
const { loadBinding } = require('../../lib/stacks/binding')
const { program, root } = require('../helpers/run')

const { CHAIN, FLAGS, IDS, LIVE, MASK, ONE_SHOT, REF, SHIFT, SIZE, promises, resources } = records
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

test.serial('a full table drops the oldest record for each new one', (t) => {
  const lost = records.lostCount()
  for (let id = 1; id <= 3 * KEPT; id++) keep(id, LIVE)
  t.is(records.lostCount() - lost, 2 * KEPT)
  t.is(chainOf(2 * KEPT), 0)
  t.is(chainOf(2 * KEPT + 1), 2 * KEPT + 1)
  t.is(chainOf(3 * KEPT), 3 * KEPT)
})

test.serial('records that have run are dropped before those that may still run', (t) => {
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

test.serial('a record that is kept again has its new words', (t) => {
  keep(1, LIVE)
  keep(1, LIVE | ONE_SHOT)
  t.is(records.readWord(2, FLAGS), LIVE | ONE_SHOT)
})

test.serial('two resources with one reference are distinguished by their ids', (t) => {
  const ids = [5, 5 + 2 ** 31, 5 + 3 * 2 ** 31]
  for (const [i, id] of ids.entries()) {
    const at = (id & MASK) << SHIFT
    records.ids[at >> IDS] = id
    records.ids[(at >> IDS) + 1] = id - 1
    resources[at + REF] = id << 1
    resources[at + CHAIN] = 10 + i
    resources[at + FLAGS] = LIVE
    records.keep(resources, at)
    records.ids[at >> IDS] = 0
    resources[at + REF] = -1
  }
  const chains = ids.map((id) => {
    const record = records.findResource(id)
    return record && [record.words[record.offset + CHAIN], idAt(record.words, record.offset)]
  })
  t.deepEqual(chains, ids.map((id, i) => [10 + i, id]))
  t.is(records.readWord(5 << 1, CHAIN), 12, 'by the reference the newest')
})

test.serial('promise numbers are reused, except those of kept records', (t) => {
  const number = 7 * SIZE + 100
  const at = (number & MASK) << SHIFT
  promises[at + REF] = number << 1 | 1
  promises[at + FLAGS] = LIVE
  records.keep(promises, at)
  t.is(records.makeRoom(7 * SIZE), 7 * SIZE + 1, 'none was given before')
  t.is(records.makeRoom(0), 1)
  t.is(records.makeRoom(6 * SIZE), 6 * SIZE + 1)
  t.is(records.makeRoom(7 * SIZE), 8 * SIZE + 1)
})

for (const engine of loadBinding().failure === undefined ? ['native', 'js'] : ['js']) {
  test(`timers and files are known even if the ring wraps soon after, ${engine}`, async (t) => {
    const { stdout, stderr } = await program(`
      const fs = require('node:fs/promises')
      const trace = require(${JSON.stringify(root)})
      const tell = (name) => console.log(name + ': ' + trace.chain().map(({ label }) => label).join(' < '))
      setImmediate(async function flow () {
        const file = await fs.open(__filename)
        setTimeout(() => tell('timer'), 1)
        setTimeout(() => tell('later'), 500)
        let count = 0
        process.nextTick(function again () {
          if (count++ < ${3 * SIZE}) return process.nextTick(again)
          console.log('file: ' + trace.why(file).opened.map(({ label }) => label).join(' < '))
          file.close()
        })
      })`, { env: { LONGSTACK_CAPTURE: engine } })
    t.is(stderr, '')
    t.deepEqual(stdout.trim().split('\n'), [
      'file: fs.promises.open < setImmediate', 'timer: setTimeout(1) < await < setImmediate',
      'later: setTimeout(500) < await < setImmediate'
    ])
  })
}
