'use strict'

// Measures the readers of the run log: node bench/path.js [REQUESTS] [CONCURRENCY]. Makes a recording of
// REQUESTS (default 10,000) with sixteen queries and some fifty runs each, CONCURRENCY (default 64) of them
// at a time on ten connections, and reads it.

const { criticalPath } = require('../report/path/critical-path')
const { delaysOf } = require('../report/path/delays')
const { readEntries } = require('../report/path/entries')
const { figuresOf } = require('../report/path/figures')
const { queriesOf } = require('../report/path/queries')
const { requestsOf } = require('../report/path/requests')
const { Log } = require('../test/path/recordings')

const QUERIES = 16 // of a request
const CONNECTIONS = 10
const [requests = 10_000, concurrency = 64] = process.argv.slice(2).map(Number)

/** @returns {Log} */
function load () {
  const log = new Log()
  /** @type {Array<{ request: number, run: number, left: number }>} */
  const open = []
  let [time, made, ended] = [1000, 0, 0]
  const pass = () => (time += 0.02)
  for (let i = 0; ended < requests; i++) {
    if (i % 4 === 0) log.poll(time += 0.1, 0.1)
    if (open.length < concurrency && made < requests) {
      made++
      open.push({ request: made, run: log.serve(pass(), made), left: QUERIES })
      continue
    }
    const place = (i * 7919) % open.length
    const { request, run } = open[place]
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

/** @param {string} what @param {() => T} read @template T @returns {T} */
function measured (what, read) {
  const before = process.cpuUsage()
  const result = read()
  const { user, system } = process.cpuUsage(before)
  console.log(`${what.padEnd(16)}${((user + system) / 1000).toFixed(0).padStart(7)} ms of CPU`)
  return result
}

const bytes = load().bytes()
const recording = measured('readEntries', () => readEntries(bytes))
console.log(`${recording.count} entries`)
const all = measured('requestsOf', () => requestsOf(recording))
measured('first query', () => queriesOf(recording, all[0])) // matches those of all requests
const paths = measured('criticalPath', () => all.map((request) => criticalPath(recording, request)))
measured('queriesOf', () => all.map((request) => queriesOf(recording, request)))
measured('delaysOf', () => all.map((request, i) => delaysOf(recording, request, paths[i].waits)))
measured('figuresOf', () => all.map((request, i) => figuresOf(recording, request, paths[i])))
