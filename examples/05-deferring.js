'use strict'

// Deferring: deliver() returns a delegate and works later, so that what is attached to the delegate after the call is in time.
// Six ways to do that later: what is missed, in what order they run, which of them starves files and sockets, what they
// cost, and whether an error in a late listener still tells who called.
//
//     node examples/05-deferring.js               the story in some ten seconds
//     node examples/05-deferring.js --answers     what was missed, and the orders; nothing else
//     node examples/05-deferring.js --json        the figures (--quick: few and rough)
//
// From "Node and process.nextTick" (Andrew Cholakian, 2010), which explains so how node-paperboy (Felix Geisendörfer, 2010)
// gets along without a start() method.
//
// This file is all of it: the story (no arguments) and its children: the orders (`order PLACE`), the recursions (`starve WAY`),
// the errors (`fail WAY`) and the prices (`price WAY SHAPE`, `prices TIMES`).

const { execFile } = require('node:child_process')
const fs = require('node:fs')
const { promisify } = require('node:util')
const trace = require('longstack')
const { cleanEnvironment, digits, obey, paired, register, start, table } = require('./common/measure')

const ARTICLE = 'Node and process.nextTick (Andrew Cholakian, 2010)'
const FAST_FUTURE = 'fast-future, read me (David Björklund, 2014)'
const WORK_MS = 3 // so long the program goes on after it has deferred: a timer of 0, which is one of 1 ms, is due then
const STARVE_MS = 200 // so long a recursion goes on that starves the others; it needs an end
const PATIENCE_MS = 20_000 // one that does not starve them ends by itself
const LAUNCHES = 12 // of a process that shows the race of timers and immediates
const TIMES = { full: 300_000, story: 50_000, quick: 10_000 } // to defer
const BATCH = 1_000 // deferred at once

const run = promisify(execFile)

// The ways.

/** @type {Record<string, (fn: () => void) => void>} */
const ways = {
  'process.nextTick': (fn) => process.nextTick(fn),
  queueMicrotask: (fn) => queueMicrotask(fn),
  'promise.then': (fn) => { Promise.resolve().then(fn) },
  setImmediate: (fn) => { setImmediate(fn) },
  'setTimeout 0': (fn) => { setTimeout(fn, 0) }
}

/** @type {typeof ways} */
const all = { 'at once': (fn) => fn(), ...ways, 'a call of fs.stat': (fn) => fs.stat(__filename, () => fn()) }

/**
 * Delivers a page: a delegate, to which the caller attaches what shall happen.
 * @param {(fn: () => void) => void} defer how the work is put off
 * @param {string | undefined} page
 */
function deliver (defer, page) {
  const delegate = {
    before: attach('before'),
    after: attach('after'),
    error: attach('error'),
    otherwise: attach('otherwise')
  }
  /** @type {Record<string, (argument?: any) => void>} */
  const attached = {}
  function attach (name) {
    return (listener) => {
      attached[name] = listener
      return delegate
    }
  }
  const tell = (name, argument) => attached[name]?.(argument)
  defer(function work () {
    if (page === undefined) return tell('otherwise')
    if (page === '') return tell('error', new Error('an empty page'))
    tell('before')
    tell('after', page.length)
  })
  return delegate
}

/** What a caller hears who attaches the listeners after the call. @param {(fn: () => void) => void} defer @param {string} [page] */
async function heard (defer, page) {
  const heard = []
  await new Promise((resolve) => {
    const delegate = deliver((fn) => defer(() => {
      fn()
      setImmediate(resolve)
    }), page)
    heard.push('the call is over')
    delegate
      .before(() => heard.push('before'))
      .after((length) => heard.push(`after ${length} characters`))
      .error((error) => heard.push(`error (${error.message})`))
      .otherwise(() => heard.push('otherwise'))
  })
  return heard
}

// The orders.

/** Keeps the processor for some ms. */
function work (ms) {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** Defers in all ways in one turn, the slowest first, and says in which order they ran. */
function deferAll () {
  const order = []
  for (const way of Object.keys(ways).reverse()) ways[way](() => order.push(way))
  process.once('exit', () => console.log(JSON.stringify(order)))
  work(WORK_MS)
}

/** @type {Record<string, (fn: () => void) => void>} */
const places = {
  'the main script': (fn) => fn(),
  'a callback of fs.stat': (fn) => fs.stat(__filename, () => fn()),
  'a callback of process.nextTick': (fn) => process.nextTick(fn),
  'a promise, so after await': (fn) => { Promise.resolve().then(fn) },
  'a callback of setImmediate': (fn) => { setImmediate(fn) },
  'a callback of setTimeout': (fn) => { setTimeout(fn, 0) }
}

// An ES module is evaluated inside a promise. When its timers run depends on how that Node loads it.
const MODULE = `
  const ways = { 'process.nextTick': process.nextTick, queueMicrotask, 'promise.then': (fn) => Promise.resolve().then(fn) }
  const order = []
  for (const way of Object.keys(ways).reverse()) ways[way](() => order.push(way))
  process.once('exit', () => console.log(JSON.stringify(order)))`

/** @returns {Promise<Array<[string, string[]]>>} for each place the ways in their order */
async function orders () {
  const list = []
  for (const place of Object.keys(places)) list.push([place, await alike([__filename, 'order', place])])
  list.splice(1, 0, ['an ES module, at its top', await alike(['--input-type=module', '-e', MODULE])])
  return list
}

/** A process like this one, traced if this one is. @param {string[]} args */
async function alike (args) {
  const { stdout } = await run(process.execPath, [...process.execArgv, ...args])
  return JSON.parse(stdout)
}

// Starving.

/** What becomes of a read while one way calls itself again and again, until the read is back or the time is over. @param {string} way */
function starve (way) {
  const limit = /^set/.test(way) ? PATIENCE_MS : STARVE_MS
  return new Promise((resolve) => {
    const began = performance.now()
    let turns = 0
    let over = 0
    let back = 0
    const finish = () => { if (over > 0 && back > 0) resolve({ turns, over, back, first: back < over }) }
    fs.readFile(__filename, () => {
      back = performance.now() - began
      finish()
    })
    ways[way](function again () {
      turns++
      if (back === 0 && performance.now() - began < limit) return ways[way](again)
      over = performance.now() - began
      finish()
    })
  })
}

// Errors.

/** A caller whose late listener fails. */
function homePage (way) {
  deliver(ways[way], 'hello').after(function logLength (length) { throw new Error(`no log for ${length} characters`) })
}

/** The error that escapes, with its chain. @param {string} way */
function fail (way) {
  process.once('uncaughtException', (error) => console.log(JSON.stringify({ stack: error.stack, hops: trace.chain(error) })))
  homePage(way)
}

// The price.

/** @type {Record<string, (way: string, times: number) => Promise<void>>} */
const shapes = {
  async 'many at once' (way, times) {
    for (let done = 0; done < times; done += BATCH) {
      await new Promise((resolve) => {
        let left = BATCH
        const ran = () => { if (--left === 0) resolve(undefined) }
        for (let i = 0; i < BATCH; i++) ways[way](ran)
      })
    }
  },

  'one after another': (way, times) => new Promise((resolve) => {
    let left = times
    ways[way](function again () {
      if (--left === 0) resolve()
      else ways[way](again)
    })
  })
}

/** CPU ms for 100,000 deferrals, after as many to warm up. @param {string} way @param {string} shape @param {number} times @param {boolean} traced */
async function priceOf (way, shape, times, traced) {
  const child = await start(__filename, ['price', way, shape], { traced })
  try {
    await child.run(times)
    return await child.run(times) * 100
  } finally {
    await child.end()
  }
}

/** The same for all ways and shapes in this process. @param {number} times */
async function prices (times) {
  const costs = {}
  for (const way of Object.keys(ways)) {
    costs[way] = {}
    for (const shape of Object.keys(shapes)) {
      if (way === 'setTimeout 0' && shape === 'one after another') continue // a millisecond each
      await shapes[shape](way, times)
      const began = process.cpuUsage()
      await shapes[shape](way, times)
      const { user, system } = process.cpuUsage(began)
      costs[way][shape] = (user + system) / times * 100
    }
  }
  console.log(JSON.stringify(costs))
}

/** @param {number} times */
async function priceList (times) {
  const [off, on] = [await child(['prices', String(times)], false), await child(['prices', String(times)], true)]
  const cell = (costs, way, shape) => costs[way][shape] === undefined ? '–' : digits(costs[way][shape])
  return {
    title: 'CPU ms for 100,000 deferrals, tracing off and on',
    heading: ['way', ...Object.keys(shapes).flatMap((shape) => [`${shape}, off`, 'on'])],
    rows: Object.keys(ways).map((way) => [way, ...Object.keys(shapes).flatMap((shape) => [off, on].map((costs) => cell(costs, way, shape)))])
  }
}

/** This file once more, in a process of its own. @param {string[]} args @param {boolean} traced */
async function child (args, traced) {
  const { stdout } = await run(process.execPath, [...(traced ? ['-r', register] : []), __filename, ...args], { env: cleanEnvironment() })
  return JSON.parse(stdout)
}

// The answers.

async function answers () {
  for (const [name, page] of [['a page', 'hello'], ['an empty page', ''], ['no page', undefined]]) {
    for (const way of Object.keys(all)) console.log(`${name}, ${way}: ${(await heard(all[way], page)).join(', ')}`)
  }
  for (const [place, order] of await orders()) console.log(`deferred in ${place}: ${order.join(', ')}`)
  for (const way of Object.keys(ways)) console.log(`${way} again and again: a read is back ${(await starve(way)).first ? 'while it goes on' : 'when it is over'}`)
}

// The figures.

/** @param {boolean} quick */
async function measured (quick) {
  const times = quick ? TIMES.quick : TIMES.full
  const versus = (shape, a, b) => paired((which, traced) => priceOf(which === 'a' ? a : b, shape, times, traced), quick)
  const timers = await versus('many at once', 'process.nextTick', 'setTimeout 0')
  const immediates = await versus('one after another', 'process.nextTick', 'setImmediate')
  const reads = await paired(async (which, traced) => (await child(['starve', which === 'a' ? 'setImmediate' : 'process.nextTick'], traced)).back, quick)
  return {
    claims: [{
      id: 'deferring-timeout',
      article: ARTICLE,
      said: 'nextTick defers as setTimeout 0 does, but more efficiently; no figure.',
      saidRatio: null,
      a: 'process.nextTick',
      b: 'setTimeout 0',
      unit: `CPU ms for 100,000 deferrals, ${BATCH} at once`,
      off: timers.off,
      on: timers.on,
      means: 'the cost of deferring with a timer of 0 over deferring with nextTick',
      why: {
        'as said': 'A tick is an entry in a queue that is emptied before Node goes back to the loop. A timer is a larger object in a list for its duration, and waits for a ' +
          'millisecond and a turn of the loop: setTimeout 0 means 1. Traced, both also pay for a context and a stack, and the timer for being remembered as open.'
      }
    }, {
      id: 'deferring-immediate',
      article: FAST_FUTURE,
      said: 'The same work took 2317 ms with setImmediate and 96 ms mostly with nextTick.',
      saidRatio: 24,
      a: 'process.nextTick',
      b: 'setImmediate',
      unit: 'CPU ms for 100,000 deferrals, one after another',
      off: immediates.off,
      on: immediates.on,
      means: 'the cost of deferring with setImmediate over deferring with nextTick, where each starts the next',
      why: {
        'as said': 'An immediate set by an immediate waits for the next turn of the loop, and each asks the system for events: 30,000 immediates take 30,000 turns, 30,000 ticks none. ' +
          'The work here is only the deferring, that of the article is unknown: the direction is the same, the factors need not agree. A process here knows one way alone, ' +
          'and is measured the second time; later times are cheaper, as those in the table below are, where one process goes through all ways.'
      }
    }, {
      id: 'deferring-starves',
      article: FAST_FUTURE,
      said: 'A recursion of nextTick starves the loop, one of setImmediate does not; no figure.',
      saidRatio: null,
      a: 'setImmediate again and again',
      b: 'process.nextTick again and again',
      unit: 'ms until a file that was asked for before is there',
      off: reads.off,
      on: reads.on,
      means: `how much longer a read takes beside a recursion of nextTick, which ends itself after ${STARVE_MS} ms, than beside one of setImmediate`,
      why: {
        'as said': 'Node goes back to the loop only when no tick and no microtask is left. The read waits for the end of the recursion, however late that is.'
      }
    }],
    tables: [await priceList(times)]
  }
}

// The story.

async function story () {
  console.log('deliver() returns a delegate. When the call is over, the caller attaches listeners to it: before, after (which is told how long the page is), error')
  console.log('and otherwise. Which of them hear of a page, by how deliver puts its work off:\n')
  const rows = []
  for (const way of Object.keys(all)) rows.push([way, (await heard(all[way], 'hello')).slice(1).join(', ') || 'nothing'])
  console.log(rows.map(([way, what]) => `${way.padEnd(18)}  ${what}`).join('\n'))
  console.log('\nWhat is done at once is over before anybody listens. Every way to defer is in time, and so is work that begins with an asynchronous call.')

  await tellOrders()
  await tellStarving()
  await tellErrors()

  const { title, heading, rows: costs } = await priceList(TIMES.story)
  console.log(`\n${title}:\n\n${table(heading, costs)}`)
  console.log(`\nMany at once: ${BATCH} are set, and when all have run the next ${BATCH}. One after another: each sets the next; no timers (–), which take a millisecond each.
"${ARTICLE}" called nextTick the cheaper setTimeout 0: with tracing off, many at once, a timer costs ${digits(costs[4][1] / costs[0][1])} ticks here.
Traced, each way also pays for a context and a stack, a timer for being remembered as open. Immediates one after another pay for turns of the loop: these let files come.`)
}

async function tellOrders () {
  const names = Object.keys(ways)
  console.log(`\nAll are set in one turn, in this order: ${[...names].reverse().join(', ')}.\nThen the program works for ${WORK_MS} ms. The order in which they run:\n`)
  console.log(table(['set in', ...names], (await orders()).map(([place, order]) => [place, ...names.map((way) => String(order.indexOf(way) + 1 || '–'))])))
  let timers = 0
  const race = "setTimeout(() => order.push('setTimeout'), 0); setImmediate(() => order.push('setImmediate'))"
  for (let i = 0; i < LAUNCHES; i++) {
    if ((await alike(['-e', `const order = []; ${race}; process.once('exit', () => console.log(JSON.stringify(order)))`]))[0] === 'setTimeout') timers++
  }
  console.log('\npromise.then and queueMicrotask share one queue: what was set first, here promise.then, runs first. – is not tried: Nodes differ in how they load a module.')
  console.log('Ticks go before microtasks, but inside of a promise, which an ES module is too, the microtasks are emptied first. An immediate comes before')
  console.log(`a timer that is set in a callback of file, socket or timer. From the main script they race: without the ${WORK_MS} ms the timer won in ${timers} of ${LAUNCHES} processes.`)
}

async function tellStarving () {
  console.log(`\nA file is asked for, then one way calls itself again and again until the file is there; ticks and microtasks stop after ${STARVE_MS} ms:\n`)
  const rows = []
  for (const way of Object.keys(ways)) {
    const { turns, over, back, first } = await child(['starve', way], false)
    rows.push([way, String(turns), `${digits(over)} ms`, `${digits(back)} ms`, first ? 'during' : 'after'])
  }
  console.log(`${table(['', 'turns', 'calls over after', 'file there after', 'so it came'], rows)}\n
Ticks and microtasks starve the loop until they stop: the file comes after the calls. Immediates and timers let it come during them.`)
}

async function tellErrors () {
  console.log(`\nA listener that was attached late throws. Node alone shows\n\n${indented((await child(['fail', 'process.nextTick'], false)).stack)}`)
  console.log('\nwhich does not tell who wanted the page. Traced:\n')
  const rows = []
  for (const way of Object.keys(ways)) {
    const { stack, hops } = await child(['fail', way], true)
    if (rows.length === 0) console.log(`${indented(stack)}\n\nand all ways in short:\n`)
    rows.push([way, hops[0].label, hops[0].frames.map((frame) => frame.functionName ?? 'the main script').join(' < ')])
  }
  const [wide, label] = [0, 1].map((column) => Math.max(...rows.map((row) => row[column].length)))
  console.log(rows.map(([way, hop, frames]) => `${way.padEnd(wide)}  ── ${hop.padEnd(label)} ──  ${frames}`).join('\n'))
  console.log('\nThe hop (──) names the way, and its frames lead to the caller: homePage. It says setTimeout(1), for Node makes 1 ms of 0.')
}

/** @param {string} text */
const indented = (text) => text.split('\n').map((line) => `  ${line}`).join('\n')

const [command, ...rest] = process.argv.slice(2)
if (command === 'order') places[rest[0]](deferAll)
else if (command === 'starve') starve(rest[0]).then((told) => console.log(JSON.stringify(told)))
else if (command === 'fail') fail(rest[0])
else if (command === 'price') obey({ run: (times) => shapes[rest[1]](rest[0], times) })
else if (command === 'prices') prices(Number(rest[0]))
else if (command === '--answers') answers()
else if (command === '--json') measured(rest.includes('--quick')).then((figures) => console.log(JSON.stringify(figures, null, 2)))
else story()
