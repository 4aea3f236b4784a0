'use strict'

// Every form of the report, for the spans of a real service.

const test = require('ava')
const fs = require('node:fs')
const path = require('node:path')
const { node, root } = require('../helpers/run')
const { folder, longstack, main, report } = require('../helpers/span-files')
const { processTrace } = require('../helpers/trace-processor')

const program = path.join(root, 'test', 'fixtures', 'report', 'service.js')
const lineOf = (/** @type {string} */ text) =>
  fs.readFileSync(program, 'utf8').split('\n').findIndex((line) => line.includes(text)) + 1

/** @type {string} */
let spans

test.before(async (t) => {
  const directory = folder(/** @type {any} */ ({ teardown: () => {} }))
  spans = path.join(directory, 'spans.jsonl')
  const { code, stderr } = await node([main, 'run', '--spans', spans, '--blocked', '15', program])
  t.is(code, 0, stderr)
})

test.after.always(() => fs.rmSync(path.dirname(spans), { recursive: true, force: true }))

/** @param {string[]} args */
function run (...args) {
  return longstack(['report', spans, ...args], { env: { COLUMNS: '100' } })
}

test('the text names the await sites of the routes, what failed, and the blocker', async (t) => {
  const { stdout, code } = await run()
  t.is(code, 0)
  t.regex(stdout, /^\d+ spans in 1 file, .* UTC \([\d.]+ m?s\)\n/)
  const [, share] = /^GET \/report {2}24 spans(?:.*\n){2,3}? +([\d.]+) % {2}at query \(service\.js:\d+\)/m.exec(stdout) ?? []
  t.true(Number(share) > 5, stdout) // some 70 where nothing else runs
  t.true(stdout.includes(`at query (service.js:${lineOf('await answer')})`))
  t.regex(stdout, /until TCP \S*:\d+/)
  t.regex(stdout, /^GET \/user {2}12 spans.*12 errors/m)
  t.regex(stdout, new RegExp(`^What failed\\n(?:.*\\n)*? {2}12 × Error: user 7 not found at (?:Object\\.)?user .*\\(service\\.js:${lineOf('not found')}\\)$`, 'm'))
  t.regex(stdout, /^Blockers\n/m)
})

test('the tree has queries below their route, and adds up', async (t) => {
  const { stdout } = await run('--tree', '--route', 'GET /report')
  const rows = stdout.split('\n').map((line) => /^ *([\d.]+) % +\S+ \S+ ( +)(.*)/.exec(line)).filter((match) => match !== null)
  t.is(rows[0][3].split(' ×')[0], 'GET /report')
  const top = rows.slice(1).filter(([, , indent]) => indent.length === rows[1][2].length)
  const sum = top.reduce((total, [, share]) => total + Number(share), 0)
  t.true(Math.abs(sum - 100) < 1, `${sum}\n${stdout}`)
  t.regex(stdout, /░ waited: TCP \S*:\d+ × \d+/)
})

test('Perfetto reads the trace: one event loop, waits named by their sites', async (t) => {
  const to = path.join(folder(t), 'trace.json')
  t.is((await run('--trace', to)).code, 0)
  const { errors, slices, threads } = processTrace(JSON.parse(fs.readFileSync(to, 'utf8')).traceEvents)
  t.deepEqual(errors, [])
  t.is([...threads.values()].filter((name) => name === 'event loop').length, 1)
  const waits = slices.filter(({ cat }) => cat === 'wait').map(({ name }) => name)
  const known = [`query (service.js:${lineOf('await answer')}) until TCP`, `query (service.js:${lineOf('waiting.push')}) until GET`]
  t.true(known.some((site) => waits.some((name) => name.startsWith(`waited at ${site}`))), JSON.stringify(waits))
  t.true(slices.some(({ cat, name }) => cat === 'run' && /^GET \/\w+ after query \(service\.js:\d+\)/.test(name)))
})

test('limits and Markdown of the same run twice show no change', async (t) => {
  const same = await run('--compare', spans, '--markdown', '--fail-if', 'rate > +1 %', '--fail-if', 'count > +1 %')
  t.is(same.code, 0)
  t.regex(same.stdout, /^### longstack report: no limit exceeded$/m)
  t.notRegex(same.stdout, /changed most/)
  const { code, model } = await report([spans, '--fail-if', 'GET /user: errors >= 100 %', '--fail-if', 'GET /report: p50 < 12 ms'])
  t.is(code, 3)
  t.deepEqual(model.limits.map((/** @type {any} */ { expression, state }) => [expression, state]), [
    ['GET /user: errors >= 100 %', 'exceeded'], ['GET /report: p50 < 12 ms', 'unchecked']
  ])
})
