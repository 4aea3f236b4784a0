'use strict'

// Measures the reader of the run log: node bench/path.js [REQUESTS] [CONCURRENCY]. Creates recordings of
// REQUESTS (default 10,000) with CONCURRENCY (default 64) concurrent ones: with sixteen queries and some
// fifty runs each on ten connections, and without queries. Reads them in blocks like `longstack report`, and
// in batches of 150 requests like a worker does every 50 ms.

const { SpanReader } = require('../report/path/window')
const { Log } = require('../test/path/recordings')

const CONNECTIONS = 10
const ENTRY = 48 // bytes
const [requests = 10_000, concurrency = 64] = process.argv.slice(2).map(Number)

/** @param {number} queries per request @returns {Log} */
function load (queries) {
  const log = new Log()
  /** @type {Array<{ request: number, run: number, left: number }>} */
  const open = []
  let [time, made, ended] = [1000, 0, 0]
  const pass = () => (time += 0.02)
  for (let i = 0; ended < requests; i++) {
    if (i % 4 === 0) log.poll(time += 0.1, 0.1)
    if (open.length < concurrency && made < requests) {
      made++
      open.push({ request: made, run: log.serve(pass(), made), left: queries })
      continue
    }
    const place = (i * 7919) % open.length
    const { request, run } = open[place]
    if (queries === 0) {
      log.end(pass(), request, log.step(pass(), { request, registered: run }))
      open.splice(place, 1)
      ended++
      continue
    }
    const connection = 100 + request % CONNECTIONS
    log.sent(connection, run, { request })
    const answer = log.came(pass(), connection, { request, registered: run })
    log.settle(answer, run, { request })
    const first = log.awaited(pass(), { request, registered: run, settled: answer })
    open[place].run = log.awaited(pass(), { request, registered: first, settled: first })
    if (--open[place].left > 0) continue
    log.end(time, request, open[place].run)
    open.splice(place, 1)
    ended++
  }
  return log
}

/**
 * Reads a recording in blocks.
 * @param {string} what
 * @param {Uint8Array} bytes
 * @param {number} size entries per block
 */
function measure (what, bytes, size) {
  const reader = new SpanReader()
  const count = bytes.length / ENTRY
  const before = process.cpuUsage()
  let spans = 0
  for (let from = 0; from < count; from += size) {
    const entries = bytes.subarray(from * ENTRY, Math.min(count, from + size) * ENTRY)
    reader.push({ first: 1 + from, entries, isLast: from + size >= count })
    spans += reader.ended().length
  }
  const { user, system } = process.cpuUsage(before)
  const us = user + system
  const figures = `${(us / count).toFixed(3)} us per entry, ${(us / spans).toFixed(1)} per span`
  console.log(`${what.padEnd(20)}${count} entries, ${spans} spans: ${figures}`)
}

for (const queries of [16, 0]) {
  const bytes = load(queries).bytes()
  const perRequest = bytes.length / ENTRY / requests
  const shape = queries === 0 ? 'hello' : `${queries} queries`
  for (let round = 0; round < 2; round++) {
    measure(`${shape}, blocks`, bytes, 64 * 1024 / ENTRY | 0)
    measure(`${shape}, batches`, bytes, Math.round(150 * perRequest))
  }
}
