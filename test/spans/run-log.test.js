'use strict'

// The run log is consistent in itself, whatever runs.

const path = require('node:path')
const test = require('ava')
const layout = require('../../lib/core/run-log-words')
const { runServer } = require('../helpers/critical-path')
const { program, root } = require('../helpers/run')
const { faultsOf } = require('../helpers/run-log-faults')
const { mainOf, pathGroups, shadowed } = require('../helpers/shadow-log')
const { patient } = require('../helpers/starved')

const {
  BEGIN, CAME, CLIENT, DISCARDED, END, HELD, ONE_SHOT, RUN, SENT, SERVER, SETTLED_BY_ANSWER, TIMER
} = layout
const ROUNDING = 0.0011 // ms, of the figures of spans

/** Functions that wait in the requests of `pathGroups`. */
const waiting = [
  'answerUpstream', 'askLibrary', 'askWorker', 'awaitTick', 'continueTimers', 'fetchUpstream', 'getUpstream',
  'holdTurn', 'innerStep', 'keepBoundTurn', 'loadRole', 'loadUser', 'nap', 'outerStep', 'queryRemote', 'readByCallback',
  'readConfig', 'restDelayed', 'startTimers', 'takeTurn'
]

for (const engine of ['native', 'js']) {
  patient(test)(`${engine}: the log of the critical paths is consistent, and has all that waits`, async (t) => {
    const env = { LONGSTACK_CAPTURE: engine }
    const { result, shadows } = await shadowed((shadow) => runServer(pathGroups, { ...env, ...shadow }))
    t.deepEqual(shadows.flatMap(faultsOf).slice(0, 3), [])
    const { entries, names } = mainOf(shadows)
    const sites = new Set(entries.filter(({ kind }) => kind === RUN).map(({ chain }) => {
      return /^(?:async )?(?:.*\.)?(\w+) \(/.exec(names.chains[chain]?.at ?? '')?.[1]
    }))
    t.deepEqual(waiting.filter((name) => !sites.has(name)), [])
    for (const record of result.records) {
      const number = Number(Object.keys(names.requests).find((one) => names.requests[one] === record.spanId))
      const begin = entries.find(({ kind, request }) => kind === BEGIN && request === number)
      const end = entries.find(({ kind, request }) => kind === END && request === number)
      const nanos = Number(BigInt(record.endTimeUnixNano) - BigInt(record.startTimeUnixNano))
      t.true(Math.abs(end.time - begin.time - nanos / 1e6) < ROUNDING, record.name)
      t.is(begin.a, { SERVER, CLIENT, INTERNAL: layout.INNER }[record.kind])
      t.is(names.requests[begin.b], record.kind === 'SERVER' ? undefined : record.parentSpanId)
      t.is(end.a, layout[record.status.code], record.name)
    }
    const told = entries.filter(({ kind, a }) => kind === END && a !== DISCARDED)
    t.is(told.length, result.records.length)
    const held = entries.filter(({ kind, b }) => kind === SENT && (b & HELD) !== 0)
    t.true(held.length > 0 && entries.some(({ kind }) => kind === CAME))
    t.true(entries.some(({ kind }) => kind === SETTLED_BY_ANSWER))
  })
}

test('terminated code leaves a log without gaps, and later code is in it', async (t) => {
  const { result, shadows } = await shadowed((env) => program(`
    const http = require('node:http')
    const vm = require('node:vm')
    const made = () => { Promise.resolve().then(() => {}) }
    const code = 'for (;;) { made(); span("outer", () => span("inner", made)) }'
    const sandbox = { made, span: require(${JSON.stringify(root)}).span }
    let turns = 0
    const server = http.createServer(async (request, response) => {
      try { vm.runInNewContext(code, sandbox, { timeout: 1 + turns % 4 }) } catch {}
      await new Promise((resolve) => setTimeout(resolve, 1))
      response.end()
    }).listen(0, '127.0.0.1', () => ask())
    const agent = new http.Agent({ keepAlive: true })
    function ask () {
      if (turns++ === 60) return server.close(() => {}).closeAllConnections()
      http.get({ port: server.address().port, host: '127.0.0.1', agent }, (answer) => {
        answer.resume().on('end', ask)
      })
    }
  `, { env: { ...env, LONGSTACK_SPANS: `${env.SHADOW_LOG}/spans.jsonl` } }))
  t.is(shadows.length, 1, `${result.code} ${result.signal} ${result.stderr}`)
  const [{ entries }] = shadows
  // A span may be terminated before its beginning, or its end, is noted
  const faults = faultsOf(shadows[0]).filter((fault) => !/^(open|it has not begun): /.test(fault))
  t.deepEqual(faults.slice(0, 3), [])
  t.true(entries.every(({ number }, i) => number === entries[0].number + i))
  t.true(entries.at(-1).number > 1000, 'it is full of what was terminated')
  const [last] = entries.filter(({ kind, a }) => kind === BEGIN && a === SERVER).slice(-1)
  const timers = entries.filter(({ kind, flags, request }) => {
    return kind === RUN && request === last.request && (flags & (TIMER | ONE_SHOT)) === TIMER
  })
  t.is(timers[0]?.registered, last.settled, 'the callback goes on in its own run after the termination')
})

test('each thread has its own log', async (t) => {
  const { result, shadows } = await shadowed((env) => program(`
    const { Worker, isMainThread, parentPort } = require('node:worker_threads')
    if (isMainThread) new Worker(__filename).on('message', (m) => console.log(m))
    else setTimeout(() => setImmediate(() => parentPort.postMessage('done')), 5)
  `, { env }))
  t.is(result.stdout, 'done\n', result.stderr)
  t.is(shadows.length, 2)
  for (const { entries, names } of shadows) {
    t.is(entries[0].number, 1)
    t.deepEqual(faultsOf({ entries, names }), [])
  }
  const isTimer = ({ kind, flags }) => kind === RUN && (flags & layout.TIMER) !== 0
  t.deepEqual(shadows.map(({ entries }) => entries.filter(isTimer).length).sort(), [0, 2])
})

test('a log ends with tracing, and a new one does not know earlier runs', async (t) => {
  const { stdout, stderr } = await program(`
    const layout = require(${JSON.stringify(path.join(root, 'lib', 'core', 'run-log-words'))})
    const runLog = require(${JSON.stringify(path.join(root, 'lib', 'core', 'run-log'))})
    const trace = require(${JSON.stringify(root)})
    const countOf = (ring) => ring[layout.COUNT]
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    async function main () {
      const first = runLog.start()
      await turn()
      const same = runLog.start() === first
      const made = turn() // in a run of the first log
      trace.disable()
      const [count, isOn] = [countOf(first), runLog.isOn()]
      trace.enable()
      await turn()
      const second = runLog.start()
      await made
      await turn()
      const words = second
      const runs = Array.from({ length: countOf(second) }, (_, i) => layout.HEADER + i * layout.WORDS)
        .filter((place) => (words[place] & 255) === layout.RUN)
      console.log(JSON.stringify({
        same, isOn, count, countLater: countOf(first), runs: runs.map((place) => words[place + layout.REGISTERED])
      }))
    }
    main()
  `)
  const { same, isOn, count, countLater, runs } = JSON.parse(stdout || `"${stderr}"`)
  t.true(same)
  t.false(isOn)
  t.true(count > 1)
  t.is(countLater, count)
  t.true(runs.length > 2)
  t.true(runs.every((registered) => registered === 0 || registered > count), JSON.stringify(runs))
})
