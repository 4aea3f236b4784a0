'use strict'

// Intervals that outlive their requests, and their record in spans files.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { folder } = require('../helpers/span-files')
const { program } = require('../helpers/run')
const { recordsOf: recordsIn } = require('../helpers/records')

const server = `
const http = require('node:http')
const once = require('node:events').once
/** @type {any[]} */
const kept = []
const handlers = {
  '/leak': () => { kept.push(setInterval(function beat () {}, 5), setTimeout(() => {}, 60_000)) },
  '/clean' (request, response) { response.on('finish', clearInterval.bind(null, setInterval(() => {}, 5))) },
  '/cleared': () => { const timer = setInterval(() => {}, 5); setTimeout(() => clearInterval(timer), 20) },
  '/open': (request, response) => { response.write('x'); kept.push(setInterval(() => {}, 5)) }
}
const server = http.createServer(function answer (request, response) {
  handlers[request.url](request, response)
  if (request.url !== '/open') setTimeout(() => response.end(), 45)
})
setInterval(function ofNoRequest () {}, 5)
server.listen(0, '127.0.0.1', async () => {
  const get = (path) => fetch('http://127.0.0.1:' + server.address().port + path)
  const all = ['/leak', '/leak', '/clean', '/cleared', '/leak'].map(async (path) => (await get(path)).text())
  const held = await get('/open') // a response that is collected would be aborted
  await Promise.all(all)
  setTimeout(() => end(held), 100)
})
`

/**
 * Runs a server, and returns the records of intervals that it wrote.
 * @param {import('ava').ExecutionContext} t
 * @param {{ end?: string, spans?: string, env?: Record<string, string> }} [options]
 */
async function recordsOf (t, { end = 'process.exit()', spans = '', env = {} } = {}) {
  const file = path.join(folder(t), 'spans.jsonl')
  const source = `${server}\nfunction end () { ${end} }`
  const result = await program(source, { env: { LONGSTACK_SPANS: `${file}${spans}`, ...env } })
  t.is(result.stderr, '')
  t.is(result.code, 0)
  const records = recordsIn(fs.readFileSync(file, 'utf8'))
  return records.filter((record) => record.attributes['longstack.open_intervals'] !== undefined)
}

test('a record at exit lists intervals that outlived their requests', async (t) => {
  const [record, ...more] = await recordsOf(t)
  t.deepEqual(more, [])
  const { name, kind, startTimeUnixNano, endTimeUnixNano, attributes, resource } = record
  t.is(`${name}, ${kind}`, 'open intervals, INTERNAL')
  t.is(startTimeUnixNano, endTimeUnixNano)
  t.true(Math.abs(Number(startTimeUnixNano) / 1e6 - Date.now()) < 120_000)
  t.true(resource['process.pid'] > 0)
  const { 'longstack.open_intervals': [group, ...others] } = attributes
  t.deepEqual(others, [], 'neither those that were cleared, nor of an open request, nor of none')
  t.regex(group.at, /^\/leak \(.*program\.cjs:7:\d+\)$|^Object\.\/leak /)
  t.is(group.label, 'setInterval(5)')
  t.is(group.count, 3)
  t.deepEqual(group.requests, { 'GET /leak': 3 })
  t.true(group.oldest_ms >= 100)
})

test('the record is written even if an output has a sample or a threshold', async (t) => {
  const [record] = await recordsOf(t, { spans: ';sample=0.001' })
  t.is(record.attributes['longstack.open_intervals'][0].count, 3)
  t.deepEqual(await recordsOf(t, { spans: ';slower=100' }), [])
})

test('intervals cleared before the end leave no record, and keep no process alive', async (t) => {
  const end = `for (const timer of kept) clearInterval(timer)
    process.removeAllListeners()
    clearInterval(kept.pop()); server.closeAllConnections(); server.close(); setTimeout(process.exit, 50)`
  t.deepEqual(await recordsOf(t, { end }), [])
})
