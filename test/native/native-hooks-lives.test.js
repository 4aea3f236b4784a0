'use strict'

// Native hooks and lifetimes: threads, environments and libraries that end before their
// callers.

const { target } = require('../../lib/platform')
const { able, answers } = require('../helpers/addons')

able('every thread counts its own events, by the same type numbers', async (t) => {
  const [reports] = await answers(t, `
    counter.start(trace.nativeHooks().api)
    if (isMainThread) {
      make('COMMON', 3)
      const worker = new Worker(__filename, { workerData: 1 })
      worker.on('message', (report) => tell([report.COMMON.made, counter.report().COMMON.made]))
    } else {
      make('OTHER')
      make('COMMON', 5)
      require('node:worker_threads').parentPort.postMessage(counter.report())
    }
  `)
  t.deepEqual(reports, [5, 3])
})

able('another thread\'s API is rejected, even while its thread runs', async (t) => {
  const [[message, code]] = await answers(t, `
    if (isMainThread) {
      const worker = new Worker(__filename, { workerData: trace.nativeHooks().api })
      worker.on('message', tell)
    } else {
      try {
        counter.start(workerData)
      } catch (error) {
        require('node:worker_threads').parentPort.postMessage([error.message, torture.run(tortures.indexOf('count'), workerData)])
      }
    }
  `)
  t.regex(message, /of another thread/)
  t.is(code, 2)
})

able('workers end, or are terminated, while their hooks are registered and called', async (t) => {
  const [ends, [made]] = await answers(t, `
    counter.start(trace.nativeHooks().api)
    if (isMainThread) {
      const ends = []
      const one = (left) => {
        if (left === 0) {
          tell(ends)
          make('LAST', 2)
          return tell([counter.report().LAST.made])
        }
        const worker = new Worker(__filename, { workerData: left })
        worker.on('exit', (code) => { ends.push(code); one(left - 1) })
        if (left % 2 === 0) worker.on('message', () => worker.terminate())
      }
      one(8)
    } else if (workerData % 2 === 0) {
      require('node:worker_threads').parentPort.postMessage('')
      const loop = () => { make('LOOP', 1000); setImmediate(loop) }
      loop()
    } else {
      setTimeout(() => process.exit(3), 5)
      setInterval(() => make('LOOP', 100), 1)
    }
  `)
  t.deepEqual(ends, [1, 3, 1, 3, 1, 3, 1, 3])
  t.is(made, 2)
})

able('an addon that outlives longstack in its environment learns that it has ended', async (t) => {
  // Loaded before longstack, its own end comes after that of longstack's addon.
  const [found] = await answers(t, `
    if (isMainThread) {
      const worker = new Worker(__filename, { workerData: 1 })
      worker.on('exit', () => tell(torture.end()))
    } else {
      run('count')
      make()
      if (torture.seen()[0] !== 1) throw new Error('not called')
    }
  `, { preload: false })
  t.is(found, 1)
})

able('an unloaded library stays mapped while its hooks are registered, at most until its environment ends', async (t) => {
  const [[added, refs, kept, called, isThere]] = await answers(t, `
    const fs = require('node:fs')
    const mapped = () => fs.readFileSync('/proc/self/maps', 'utf8').includes('plain.node')
    if (isMainThread) {
      if (mapped()) throw new Error('mapped too early')
      const worker = new Worker(__filename, { workerData: 1 })
      let told
      worker.on('message', (message) => { told = message })
      worker.on('exit', () => tell([...told, mapped()]))
    } else {
      const added = run('plain', plain)
      make('MINE', 7)
      const called = torture.seen()[0]
      const dropped = run('dropOther')
      require('node:worker_threads').parentPort.postMessage([added, dropped, mapped(), called])
    }
  `)
  const stays = target().startsWith('linuxmusl') // musl unloads no library
  t.deepEqual([added, refs, kept, called, isThere], [0, 0, true, 7, stays])
})

able('handled errors that escape callbacks leave the counter right', async (t) => {
  const [[runs, ms, counted]] = await answers(t, `
    let counted = 0
    trace.hook({ after ({ type }) { if (type === 'Immediate') counted++ } })
    counter.start(trace.nativeHooks().api)
    process.on('uncaughtException', () => {})
    let turns = 0
    const failing = () => {
      if (++turns < 20) setImmediate(failing)
      else setImmediate(() => { const { runs, ms } = counter.report().Immediate; tell([runs, ms, counted]) })
      throw new Error('escapes')
    }
    setImmediate(failing)
  `)
  t.true(runs >= 20)
  t.is(runs, counted)
  t.true(ms >= 0 && ms < 10_000)
})

able('an address that is no API is rejected', async (t) => {
  const [messages] = await answers(t, `
    tell([[], [1], ['x'], [undefined], [0n], [-1n], [1n << 70n]].map((args) => {
      try { counter.start(...args) } catch (error) { return error.message }
    }))
  `)
  t.deepEqual(messages, Array(7).fill('start() takes trace.nativeHooks().api'))
})

able('if addons are forbidden, the reason is given, with a code', async (t) => {
  const [[name, code, message]] = await answers(t, `
    try { trace.nativeHooks() } catch (error) { tell([error.name, error.code, error.message]) }
  `, { args: ['--no-addons'], addons: false })
  t.deepEqual([name, code], ['TypeError', 'LONGSTACK_ERR_NOT_AVAILABLE'])
  t.regex(message, /^trace\.nativeHooks is not available: --no-addons forbids addons\.$/)
})
