'use strict'

// Spans compared with the times reported by the other end of a connection (fixtures/truths): owners of
// queries, and arrival of answers.

const path = require('node:path')
const test = require('ava')
const { node, register, root } = require('../helpers/run')
const { timesOf } = require('../helpers/spans')
const { patient } = require('../helpers/starved')

const KERNEL = 5 // ms: its clock has 4
const TIMER = 1 // ms by which a timer may be early
const timed = patient(test)

/** @param {string} name of a case @returns {Promise<{ records: any[], late: Record<string, number> }>} */
async function truthOf (name) {
  const file = path.join(root, 'test', 'fixtures', 'truths', 'cases.js')
  const { code, stdout, stderr } = await node(['-r', register, file, name])
  if (code !== 0 || stderr !== '') throw new Error(`${code}: ${stderr}`)
  return JSON.parse(stdout)
}

/** @param {any[]} records @param {string} route @returns {any} the span of its server */
function served (records, route) {
  const found = records.filter(({ kind, attributes }) => kind === 'SERVER' && attributes['url.path'] === route)
  if (found.length !== 1) throw new Error(`${found.length} requests are of ${route}`)
  return found[0]
}

/** @param {any} record @returns {any[]} */
const queriesOf = ({ attributes }) => attributes['longstack.asked'] ?? []

const text = (/** @type {unknown} */ value) => JSON.stringify(value)

timed('a queue that hands a connection on in ticks: each request has its own queries', async (t) => {
  const { records } = await truthOf('turns')
  let end = 0
  for (const name of ['a', 'b', 'c']) {
    const record = served(records, `/${name}`)
    const start = Number(BigInt(record.startTimeUnixNano)) / 1e6
    const queries = queriesOf(record)
    t.is(queries.length, 3, text(queries))
    for (const query of queries) {
      t.true(query.ms >= 20 - TIMER && query.unanswered === undefined, text(queries))
      t.true(start + query.start > end - TIMER, 'one after another')
      t.regex(query.at, /other-end\.js/)
      end = start + query.start + query.ms
    }
  }
})

timed('commands of several requests in one write: each has its query', async (t) => {
  const { records } = await truthOf('batch')
  for (const name of ['a', 'b', 'c', 'd']) {
    const queries = queriesOf(served(records, `/${name}`))
    t.is(queries.length, 1, text(queries))
    t.true(queries[0].ms >= 30 - TIMER && queries[0].unanswered === undefined, text(queries))
  }
})

timed('two responses arrive while the loop is blocked: a range includes the truth', async (t) => {
  const { records, late } = await truthOf('pipelined')
  for (const name of ['fast', 'slow']) {
    const { delayed, most, run } = timesOf(served(records, `/${name}`))
    const isIn = delayed < late[name] + KERNEL && most > late[name] - run - KERNEL
    t.true(isIn, text([late, delayed, most, run]))
  }
  t.true(late.fast > late.slow + 100, text(late))
})

timed('a response on a kept-alive connection has the kernel\'s arrival time', async (t) => {
  const { records, late } = await truthOf('agent')
  const record = served(records, '/a')
  const { delayed, most, run } = timesOf(record)
  t.is(most, delayed)
  t.true(Math.abs(delayed - late.a) < KERNEL + run, text([late, delayed, run]))
  t.deepEqual(queriesOf(record), [], 'a request of HTTP is no query')
})

timed('a query started before a shorter sleep, and awaited after it, is the wait', async (t) => {
  const { records } = await truthOf('begun')
  const { run, waits } = timesOf(served(records, '/a'))
  t.deepEqual(waits.filter((/** @type {any} */ { until }) => until === 'TIMER'), [], text(waits))
  t.regex(waits[0].until, /^TCP /)
  t.true(waits[0].ms >= 60 - TIMER - run, text(waits))
})
