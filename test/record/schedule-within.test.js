'use strict'

// longstack's own work with a deadline (core/loop-iterations.js): when it runs, its effects on the program,
// and its time in the run log.

const path = require('node:path')
const test = require('ava')
const { RESUME, POLL, RUN } = require('../../lib/core/run-log-words')
const { loadBinding } = require('../../lib/stacks/binding')
const { recorded } = require('../helpers/record-log')
const { program, root } = require('../helpers/run')
const { faultsOf } = require('../helpers/run-log-faults')

const isNative = process.env.ENGINE !== 'js' && loadBinding().binding !== undefined
const whereNative = isNative ? test : test.skip
const core = path.join(root, 'lib', 'core')
const ROUNDING = 0.01 // ms

const prelude = `
  const loop = require(${JSON.stringify(path.join(core, 'loop-iterations'))})
  const { now } = require(${JSON.stringify(path.join(core, 'clock'))})
  const guard = require(${JSON.stringify(path.join(core, 'guard'))})
  const { Worker, isMainThread, parentPort, workerData } = require('node:worker_threads')
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const work = (ms) => { const end = now() + ms; while (now() < end); }
  const tell = (value) => isMainThread ? console.log(JSON.stringify(value)) : parentPort.postMessage(value)
`

/** @param {string} source of all threads @returns {string} that it runs in a worker, which tells the same */
const inWorker = (source) => `
  if (!isMainThread) {
    ${source}
  } else {
    new Worker(__filename).on('message', tell)
  }`

const anyThread = [['main thread', (source) => source], ['worker', inWorker]]
for (const [thread, where] of /** @type {Array<[string, (source: string) => string]>} */ (anyThread)) {
  test(`${thread}: it runs once, as own work, while the loop sleeps or is busy; errors are dropped`, async (t) => {
    const { stdout, stderr } = await program(prelude + where(`
      const { executionAsyncId } = require('node:async_hooks')
      const ran = []
      const one = () => { ran.push('one', guard.inOwnWork) }
      const other = () => { ran.push('other'); throw new Error('no') }
      ;(async () => {
        for (let i = 0; i < 3; i++) loop.scheduleWithin(other, 30)
        loop.scheduleWithin(one, 60_000)            // with the other
        while (ran.length === 0) await wait(500)
        ran.push('awake')
        loop.scheduleWithin(one, 20)
        while (ran.length === 4) await new Promise(setImmediate)
        ran.push('spun')
        loop.scheduleWithin(() => { loop.scheduleWithin(one, 1) }, 1)
        while (ran.length === 7) await wait(100)
        tell(ran)
      })()`))
    t.is(stderr, '')
    t.deepEqual(JSON.parse(stdout), ['other', 'one', true, 'awake', 'one', true, 'spun', 'one', true])
  })

  test(`${thread}: a later deadline changes nothing, an earlier one does`, async (t) => {
    const { stdout } = await program(prelude + where(`
      let ran = 0
      const one = () => { ran++ }
      const begun = now()
      loop.scheduleWithin(one, 100)
      const again = setInterval(() => loop.scheduleWithin(one, 100), 10)
      setTimeout(() => {
        clearInterval(again)
        loop.scheduleWithin(one, 60_000)
        loop.scheduleWithin(() => tell([ran, now() - begun]), 10)
        setTimeout(() => {}, 200)
      }, 1000)`))
    const [ran, ms] = JSON.parse(stdout)
    t.true(ran >= 2 && ran <= 12, String(ran))
    t.true(ms < 30_000)
  })

  test(`${thread}: it keeps nothing alive`, async (t) => {
    const { stdout, code } = await program(prelude + where(`
      loop.scheduleWithin(() => tell('ran'), 60_000)
      setTimeout(() => tell('end'), 20)`), { timeout: 30_000 })
    t.deepEqual([stdout, code], ['"end"\n', 0])
  })
}

whereNative('it is invisible to async_hooks and to the lists of active resources and handles', async (t) => {
  const { stdout } = await program(`${prelude}
    const { createHook } = require('node:async_hooks')
    const seen = []
    createHook({ init: (id, type) => seen.push(type), before: () => seen.push('before') }).enable()
    const active = () => JSON.stringify([process.getActiveResourcesInfo(), process._getActiveHandles().length])
    let ran = 0
    const since = active()
    loop.scheduleWithin(() => { ran++; work(5) }, 20)
    const isSame = since === active()
    setTimeout(() => tell([ran, isSame, seen]), 500)`)
  t.deepEqual(JSON.parse(stdout), [1, true, ['Timeout', 'before']])
})

test('work of another context runs in its own', async (t) => {
  const { stdout, stderr } = await program(`${prelude}
    const vm = require('node:vm')
    const context = vm.createContext({ loop, tell })
    const foreign = vm.runInContext('(() => { tell(Object.getPrototypeOf(foreign) === Function.prototype) })', context)
    context.foreign = foreign
    vm.runInContext('loop.scheduleWithin(foreign, 10)', context)
    setTimeout(() => {}, 500)`)
  t.deepEqual([stdout, stderr], ['true\n', ''])
})

test('workers end, or are terminated, before it is due', async (t) => {
  const { stdout, stderr, code } = await program(`${prelude}
    if (isMainThread) {
      let ended = 0
      const one = (left) => {
        if (left === 0) return tell(ended)
        const worker = new Worker(__filename, { workerData: left })
        worker.on('message', () => { if (left % 3 === 0) worker.terminate() })
        worker.on('exit', () => { ended++; one(left - 1) })
      }
      one(12)
    } else {
      const again = () => loop.scheduleWithin(again, 1)
      loop.scheduleWithin(workerData % 2 === 0 ? again : () => {}, workerData % 4 * 20)
      parentPort.postMessage('')
      setTimeout(() => workerData % 3 === 1 && process.exit(), 40)
    }`)
  t.deepEqual([stdout, stderr, code], ['12\n', '', 0])
})

test('tracing is disabled before it is due', async (t) => {
  const { stdout, stderr } = await program(`${prelude}
    const trace = require(${JSON.stringify(root)})
    let ran = 0
    loop.scheduleWithin(() => { ran++ }, 50)
    setTimeout(() => { trace.disable(); setTimeout(() => tell(ran), 200) }, 5)`)
  t.deepEqual([stdout, stderr], ['1\n', ''])
})

/**
 * Returns the entries of a program that has own work done, and when that began and ended.
 * @param {string} source
 */
async function logged (source) {
  const own = 'const own = (ms) => () => { const begin = now(); work(ms); tell([begin, now()]) }'
  const run = (env) => program(`${prelude}${own}\n${source}`, { env: { ...env, TAKE_MS: '0' } })
  const { result, logs: [log] } = await recorded(run)
  const [[begin, end], idle] = result.stdout.trim().split('\n').map((line) => JSON.parse(line))
  const entries = log.entries.filter(({ kind }) => [POLL, RESUME, RUN].includes(kind))
  return { entries, log, begin, end, idle }
}

whereNative('the log has both sleeps, and neither a callback nor a sleep between them', async (t) => {
  const { begin, end, entries, log, idle } = await logged(`
    setTimeout(() => {
      loop.scheduleWithin(own(30), 60)
      setTimeout(() => { tell(performance.nodeTiming.idleTime) }, 250)
    }, 20)`)
  t.deepEqual(faultsOf(log), [])
  const last = entries.findIndex(({ kind, time }) => kind === POLL && time > end)
  const [before, pause, after] = entries.slice(last - 2, last + 1)
  t.is(before.kind, POLL)
  t.like(pause, { kind: RESUME, registered: 0 })
  t.is(entries[last + 1].kind, RUN)
  t.true(before.time <= begin + ROUNDING && before.x > 0)
  t.true(after.time - after.x >= end - ROUNDING, 'the work is no sleep')
  const slept = entries.reduce((sum, { kind, x }) => sum + (kind === POLL ? x : 0), 0)
  t.true(Math.abs(slept - idle) < 5, `${slept} of ${idle} ms`)
})

whereNative('own work is not part of the callback before it', async (t) => {
  const { begin, end, entries, log } = await logged(`
    setTimeout(() => { loop.scheduleWithin(own(30), 5); work(20) }, 20)
    setTimeout(() => {}, 250)`)
  t.deepEqual(faultsOf(log), [])
  const last = entries.findIndex(({ kind, time }) => kind === POLL && time > end)
  const pause = entries[last - 1]
  t.like(pause, { kind: RESUME, registered: 0 })
  t.true(pause.time <= begin + ROUNDING)
  t.true(entries[last].time - entries[last].x >= end - ROUNDING)
})
