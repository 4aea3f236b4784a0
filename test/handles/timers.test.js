'use strict'

// Pending timers have no entry: queries find them in Node's own lists, and their records are stored on the
// timers themselves.

const test = require('ava')
const { program, root } = require('../helpers/run')
const { functions, reports } = require('../helpers/reports')

const OTHERS = 40_000 // resources after which no record is left in the ring

/** Makes so many others that the records of all before are overwritten. */
const outlive = `for (let i = 0; i < ${OTHERS}; i++) process.nextTick(() => {})`

test('timers whose records are overwritten are listed with their chain, delay and age', async (t) => {
  const { told, stderr, code } = await reports(`
    const delays = Array.from({ length: 400 }, (_, i) => 1e5 + i)
    function poll () {}
    setImmediate(function later () {
      for (const delay of delays) setTimeout(poll, delay)
      setTimeout(poll, 2e5 + 0.5)
      const cleared = [setTimeout(poll, 3e5), setTimeout(poll, 1e5)]
      require('node:timers/promises').setTimeout(4e5)
      const first = setTimeout(poll, 5e5)
      ${outlive}
      setTimeout(() => {
        cleared.forEach(clearTimeout)
        const all = trace.handles(['TIMER'])
        const hops = all.map((one) => one.opened.map(({ type, frames }) => type + ' ' + frames.map(({ functionName }) => functionName)).join(' < '))
        say('all', {
          delays: all.map(({ what }) => Number(/[\\d.]+/.exec(what)[0])).sort((a, b) => a - b),
          hops: [...new Set(hops)],
          ages: all.every(({ ageMs }) => ageMs > 40 && ageMs < 60_000),
          ids: new Set(all.map(({ asyncId }) => asyncId)).size,
          handles: trace.stats().handles
        })
        ask('one', first)
        process.exit()
      }, 50)
    })`)
  t.is(stderr, '')
  t.is(code, 0)
  const { delays, hops, ages, ids, handles } = told.all
  t.deepEqual(delays, [...Array.from({ length: 400 }, (_, i) => 1e5 + i), 2e5, 4e5, 5e5])
  t.true(hops.length > 0 && hops.every((/** @type {string} */ hop) => /^Timeout later\b.* < Immediate/.test(hop)), String(hops))
  t.true(ages)
  t.is(ids, 403)
  t.true(handles >= 403 && handles <= 405, String(handles))
  t.is(told.one.why.opened[0].detail ?? told.one.why.opened[0].label, 'setTimeout(500000)')
  t.is(told.one.why.state, 'pending')
})

test('intervals have their count and last run, and are listed in their own callback', async (t) => {
  const { told, stderr, code } = await reports(`
    let runs = 0
    const timer = setInterval(function beat () {
      // The list of this delay is empty now, and Node gives it up
      clearTimeout(setTimeout(() => {}, 20))
      if (++runs === 2) {
        list('inside', ['TIMER'])
        ${outlive}
      }
      if (runs !== 4) return
      say('chain', { hop: trace.chain()[0] })
      setTimeout(() => { list('outside', ['TIMER']); ask('one', timer); clearInterval(timer); list('cleared', ['TIMER']); ask('over', timer) }, 5)
    }, 20)`)
  t.is(stderr, '')
  t.is(code, 0)
  for (const name of ['inside', 'outside']) {
    t.deepEqual(told[name].all.filter((/** @type {any} */ one) => /every 20 ms/.test(one.what)).length, 1, name)
  }
  t.like(told.chain.hop, { label: 'setInterval(20)', repeats: 4 })
  t.is(told.one.why.state, 'pending')
  t.true(told.one.why.idleMs < told.one.why.ageMs - 50, JSON.stringify(told.one.why))
  t.deepEqual(told.cleared.all.filter((/** @type {any} */ one) => /every/.test(one.what)), [])
  t.is(told.over.why.state, 'closed')
})

test('a refreshed timer that had fired has its new opener; a pending one keeps its own', async (t) => {
  const { told, stderr } = await reports(`
    let over, kept
    function make () { over = setTimeout(() => {}, 1); kept = setTimeout(() => {}, 1e6) }
    function refresh () { over.refresh(); kept.refresh(); kept.unref(); kept.ref() }
    make()
    setTimeout(() => {
      refresh()
      ${outlive}
      ask('kept', kept); ask('over', over)
      say('listed', { all: trace.handles(['TIMER']).map(({ asyncId }) => asyncId) })
      setTimeout(() => { ask('again', over); process.exit() }, 10)
    }, 20)`)
  t.is(stderr, '')
  const maker = (/** @type {string} */ name) => functions(told[name].why.opened.slice(0, 1))
  t.true(maker('kept').includes('make'))
  t.true(maker('over').includes('refresh'))
  t.deepEqual(told.listed.all.sort(), [told.kept.why.asyncId, told.over.why.asyncId].sort())
  t.is(told.again.why.state, 'closed')
})

test('a filter without timers lists none; earlier timers have no opener', async (t) => {
  const { told } = await reports(`
    setTimeout(() => {}, 1e6)
    setTimeout(() => { list('none'); process.exit() }, 20)`, { env: { LONGSTACK: '*,-TIMER' } })
  t.deepEqual(told.none.all, [])
  const { stdout } = await program(`
    const early = [setTimeout(() => {}, 1e6), setTimeout(() => {}, 1e5)]
    const trace = require(${JSON.stringify(root)}).enable()
    const known = setTimeout(() => {}, 1e6)
    setTimeout(() => {
      console.log(trace.handles(['TIMER']).length, trace.why(early[0]).origin, trace.why(known).origin)
      process.exit()
    }, 5)`, { preload: false })
  t.is(stdout, '1 early registered\n')
})

/** Tells how many bytes of the heap a pending timer takes. */
const bytes = `
  const COUNT = 50_000
  const used = () => { gc(); gc(); const { heapUsed, external } = process.memoryUsage(); return heapUsed + external }
  const make = (count) => { for (let i = 0; i < count; i++) setTimeout(() => {}, 1e6 + i % 50) }
  make(1000)
  setTimeout(() => {
    const before = used()
    make(COUNT)
    setTimeout(() => { console.log((used() - before) / COUNT); process.exit() }, 100)
  }, 100)`

test('a pending timer costs at most 200 bytes', async (t) => {
  const [bare, traced] = await Promise.all([false, true].map(async (preload) => {
    const { stdout } = await program(bytes, { preload, args: ['--expose-gc'] })
    return Number(stdout)
  }))
  t.true(bare > 100 && traced - bare <= 200, `${bare} bytes, ${traced} traced`)
})
