'use strict'

const { setTimeout: wait } = require('node:timers/promises')
const test = require('ava')
const { Watched } = require('../../../lib/top/watched')

test('late figures are returned by the next poll, not replaced by newer ones', async (t) => {
  let reads = 0
  /** @type {(value?: unknown) => void} */
  let respond = () => {}
  const thread = {
    pid: process.pid,
    facts: { threadId: 0, tracing: 'on' },

    /** @param {string} name */
    async call (name) {
      if (name !== 'readTop') return {}
      const number = ++reads
      if (number === 1) await new Promise((resolve) => { respond = resolve }) // its event loop is blocked
      return { number }
    },

    close () {}
  }
  const watched = new Watched(String(process.pid), /** @type {any} */ ({ intervalMs: 20 }))
  const asked = { processes: [{ pid: process.pid, threads: [thread] }], refused: [] }
  watched.watch({ pids: [process.pid], others: [] }, /** @type {any} */ (asked), false)
  const poll = async () => /** @type {any} */ ((await watched.poll())[0]?.figures)?.number
  const keptAlive = setInterval(() => {}, 1000) // the pauses of a poll do not
  t.teardown(() => clearInterval(keptAlive))
  t.is(await poll(), undefined) // the first query starts the figures
  t.is(await poll(), undefined)
  t.is(reads, 1)
  respond()
  await wait(1)
  t.is(await poll(), 1)
  t.is(await poll(), 2)
  await watched.close()
})
