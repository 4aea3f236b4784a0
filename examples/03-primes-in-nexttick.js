'use strict'

// Primes in process.nextTick: each callback sieves the primes below a limit, the next one below a limit less by one. Once
// the whole sieve stands inside the closure that nextTick is given, made anew for every tick; once it is a function beside
// it. Then what tracing makes of a recursion of 30,000 ticks: one hop with a count.
//
//     node examples/03-primes-in-nexttick.js               the story in some ten seconds
//     node examples/03-primes-in-nexttick.js --answers     the sums and the order, nothing else
//     node examples/03-primes-in-nexttick.js --json        the figures (--quick: few and rough)
//
// From "You Did What?!? Understanding Node Optimizations" (Trevor Norris, 2013), whose large closure took 4.2 times as long.
//
// This file is all of it: the story (no arguments), the sieves (`sieve FORM TICKS`) and the recursions (`turns WAY TURNS`).

const { execFile } = require('node:child_process')
const { setImmediate: turn } = require('node:timers/promises')
const { promisify } = require('node:util')
const v8 = require('node:v8')
const vm = require('node:vm')
const trace = require('longstack')
const { cleanEnvironment, digits, median, paired, register, table } = require('./common/measure')

const TICKS = { full: 30_000, story: 8_000, quick: 2_000, answers: 1_500 }
const TURNS = 30_000
const ROUNDS = 3 // of the story
const ARTICLE = 'You Did What?!? Understanding Node Optimizations (Trevor Norris, 2013)'

const run = promisify(execFile)

// The three forms. Each calls `done` with the number of primes that all ticks found together.

/** @param {number} limit */
function sieve (limit) {
  const crossed = Buffer.alloc((limit >> 3) + 1) // a bit for each number
  const primes = []
  for (let n = 2; n <= limit; n++) {
    if (crossed[n >> 3] & (1 << (n & 7))) continue
    primes.push(n)
    for (let m = n * n; m <= limit; m += n) crossed[m >> 3] |= 1 << (m & 7)
  }
  return primes.length
}

/** A small closure for each tick, the sieve beside it. */
function hoisted (limit, done, found = 0) {
  process.nextTick(function tick () {
    found += sieve(limit)
    if (limit === 0) done(found)
    else hoisted(limit - 1, done, found)
  })
}

/** A large closure for each tick, the sieve inside. */
function inline (limit, done, found = 0) {
  process.nextTick(function tick () {
    const crossed = Buffer.alloc((limit >> 3) + 1)
    const primes = []
    for (let n = 2; n <= limit; n++) {
      if (crossed[n >> 3] & (1 << (n & 7))) continue
      primes.push(n)
      for (let m = n * n; m <= limit; m += n) crossed[m >> 3] |= 1 << (m & 7)
    }
    found += primes.length
    if (limit === 0) done(found)
    else inline(limit - 1, done, found)
  })
}

/** No closure at all: nextTick passes the arguments on. */
function passed (limit, done, found = 0) {
  process.nextTick(tickOfPassed, limit, done, found)
}

function tickOfPassed (limit, done, found) {
  found += sieve(limit)
  if (limit === 0) done(found)
  else passed(limit - 1, done, found)
}

/** @type {Record<string, { name: string, start: typeof hoisted }>} */
const forms = {
  hoisted: { name: 'small closure, sieve beside it', start: hoisted },
  inline: { name: 'large closure, sieve inside', start: inline },
  passed: { name: 'no closure, arguments passed', start: passed }
}

// The recursions: each turn starts the next. The first is started by `begin`, the others by themselves.

/** @type {Record<string, (left: number, done: () => void) => void>} */
const ways = {
  'process.nextTick': function again (left, done) {
    if (left === 0) return done()
    process.nextTick(again, left - 1, done)
  },
  queueMicrotask: function again (left, done) {
    if (left === 0) return done()
    queueMicrotask(() => again(left - 1, done))
  },
  setImmediate: function again (left, done) {
    if (left === 0) return done()
    setImmediate(again, left - 1, done)
  },
  'promise.then': function again (left, done) {
    if (left === 0) return done()
    Promise.resolve().then(() => again(left - 1, done))
  },
  await: async function again (left, done) {
    while (left-- > 0) await undefined
    done()
  }
}

function begin (way, turns, done) {
  const again = ways[way]
  again(turns, done)
}

/** Waits until garbage is gone. */
async function collect () {
  v8.setFlagsFromString('--expose-gc')
  const gc = vm.runInNewContext('gc')
  for (let i = 0; i < 4; i++) {
    await turn()
    gc()
  }
}

// The children. Each says its figures as one line of JSON.

/** Sieves once: what it cost, and what the process grew to. */
function sieveOnce (form, ticks) {
  const began = process.cpuUsage()
  forms[form].start(ticks, (found) => {
    const { user, system } = process.cpuUsage(began)
    console.log(JSON.stringify({ found, cpu: (user + system) / ticks, maxRss: process.resourceUsage().maxRSS / 1024 }))
  })
}

/** A recursion: the hops of the error at its end, and what tracing holds of it. */
function recur (way, turns) {
  begin(way, turns, async function end () {
    const error = new Error(`the end of ${turns} turns`)
    const told = { stack: error.stack, hops: trace.chain(error), right: held() }
    await collect()
    console.log(JSON.stringify({ ...told, later: held() }))
  })
}

/** What tracing holds of contexts now. */
function held () {
  const { contexts, contextBytes } = trace.stats()
  return { contexts, bytes: contextBytes }
}

/**
 * This file once more, in a process of its own.
 * @param {string[]} args
 * @param {{ traced?: boolean, env?: Record<string, string> }} how
 */
async function child (args, { traced = false, env = {} }) {
  const preload = traced ? ['-r', register] : []
  const { stdout } = await run(process.execPath, [...preload, __filename, ...args], { env: { ...cleanEnvironment(), ...env }, maxBuffer: 2 ** 24 })
  return JSON.parse(stdout)
}

// The modes and engines of the table. Light mode is another one only where Node can keep promise hooks off.

/** @type {Record<string, Record<string, string>>} */
const modes = {
  full: {},
  light: { LONGSTACK_MODE: 'light' },
  'full, engine js': { LONGSTACK_CAPTURE: 'js' }
}

/** The turns that each hop of a recursion counts, the oldest first. */
function counted ({ hops }) {
  const mine = hops.filter((hop) => hop.frames.some((frame) => frame.functionName === 'again'))
  if (mine.length === 0) return 'no hop'
  return mine.map((hop) => hop.repeats).reverse().join(' + ')
}

async function countedEverywhere (turns) {
  const rows = []
  for (const way of Object.keys(ways)) {
    const row = [way]
    for (const env of Object.values(modes)) row.push(counted(await child(['turns', way, String(turns)], { traced: true, env })))
    rows.push(row)
  }
  return {
    title: `Turns that the chain counts, of ${turns}: the first, which the caller began, and those that a turn began`,
    heading: ['recursion of', ...Object.keys(modes)],
    rows
  }
}

// The answers.

async function answers () {
  for (const [form, { start }] of Object.entries(forms)) {
    console.log(`${form}: ${await new Promise((resolve) => start(TICKS.answers, resolve))} primes in ${TICKS.answers} ticks`)
  }
  for (const way of Object.keys(ways)) console.log(`${way}: ${(await orderOf(way)).join(', then ')}`)
}

/** What runs first: a recursion's last turn or an immediate that was set before its first one? */
async function orderOf (way) {
  const order = []
  const immediate = new Promise((resolve) => setImmediate(() => resolve(order.push('an immediate set before'))))
  const last = new Promise((resolve) => begin(way, TURNS, () => resolve(order.push(`the last of ${TURNS} turns`))))
  await Promise.all([immediate, last])
  return order
}

// The figures.

/** @param {boolean} quick */
async function measured (quick) {
  const ticks = quick ? TICKS.quick : TICKS.full
  const memory = { off: { a: 0, b: 0 }, on: { a: 0, b: 0 } }
  const time = await paired(async (which, traced) => {
    const { cpu, maxRss } = await child(['sieve', which === 'a' ? 'hoisted' : 'inline', String(ticks)], { traced })
    const state = memory[traced ? 'on' : 'off']
    state[which] = Math.max(state[which], maxRss)
    return cpu
  }, quick)
  const turns = quick ? TURNS / 10 : TURNS
  const held = []
  for (const way of ['process.nextTick', 'setImmediate', 'promise.then']) held.push([way, await child(['turns', way, String(turns)], { traced: true })])
  return {
    claims: [{
      id: 'primes-large-closure',
      article: ARTICLE,
      said: 'With the whole sieve inside the closure that nextTick is given, 30,000 ticks took 19.58 s instead of 4.64 s.',
      saidRatio: 4.2,
      a: 'small closure',
      b: 'large closure',
      unit: 'CPU µs a tick',
      off: time.off,
      on: time.on,
      means: 'the cost of a tick with the sieve inside its closure over one with the sieve beside it',
      why: {
        'as said': 'What is left comes from the loop: its limit is a variable of the function around the closure, read anew at each comparison (on Node 20 a copy of the limit inside ' +
          'the closure ends the difference). V8 no longer starts over with each new closure: --trace-opt shows that it optimises the code once for all closures made in one place.',
        'no difference': 'V8 keeps what it learns, and the optimised code, with the place that makes the closures: --trace-opt shows the sieve optimised once in either form, ' +
          'not once for each closure.'
      }
    }, {
      id: 'primes-memory',
      article: ARTICLE,
      said: 'The large closure took 51,040 kB at most, the small one 50,540 kB: no difference worth a word.',
      saidRatio: 1.01,
      saidSame: true,
      a: 'small closure',
      b: 'large closure',
      unit: 'MiB resident at most',
      off: memory.off,
      on: memory.on,
      means: 'the most memory that the process had with the large closure over that with the small one',
      why: {
        'no difference': 'As then. A closure is a few words whatever its code is, and each is garbage after its tick; buffers and arrays of the sieve outweigh it.',
        'as said': 'It is not the closure that decides, but when the collector runs. On Node 26 a process of either form ends at one of two sizes, some 8 MiB apart; an option that ' +
          'only prints what is collected (--trace-gc) was seen to swap them.',
        'other way round': 'It is not the closure that decides, but when the collector runs. On Node 26 a process of either form ends at one of two sizes, some 8 MiB apart; an option ' +
          'that only prints what is collected (--trace-gc) was seen to swap them.'
      }
    }],
    tables: [
      await countedEverywhere(turns),
      {
        title: `What tracing holds of a recursion of ${turns} turns`,
        heading: ['recursion of', 'contexts right after (estimates)', 'MiB right after', 'contexts after a collection', 'KiB after a collection'],
        rows: held.map(([way, { right, later }]) =>
          [way, String(right.contexts), (right.bytes / 2 ** 20).toFixed(1), String(later.contexts), (later.bytes / 2 ** 10).toFixed(1)])
      }
    ]
  }
}

// The story.

async function story () {
  console.log(`${TICKS.story} callbacks of process.nextTick sieve the primes below a limit that goes down by one each time.`)
  console.log('The sieve stands in the closure that nextTick is given, or beside it. CPU time of a tick:\n')
  await compareForms()

  const told = await child(['turns', 'process.nextTick', String(TURNS)], { traced: true })
  console.log(`\nA recursion of ${TURNS} ticks ends in an error. Traced, its stack is\n`)
  console.log(told.stack.split('\n').map((line) => `  ${line}`).join('\n'))
  const [hop, first] = told.hops
  console.log(`\nThe recursion is one hop with its count, ${hop.repeats}; the first of the ${hop.repeats + first.repeats} ticks is told apart, for it leads to the caller.`)
  console.log(`Of the ticks tracing held ${told.right.contexts} contexts (${(told.right.bytes / 2 ** 20).toFixed(1)} MiB) when the last one ran, ` +
    `and ${told.later.contexts} (${(told.later.bytes / 2 ** 10).toFixed(1)} KiB) after a garbage collection, by its own estimate.`)

  const { title, heading, rows } = await countedEverywhere(TURNS)
  console.log(`\n${title}:\n`)
  console.log(table(heading, rows))
  console.log(`\n${whatModesMean(rows)}`)
}

async function compareForms () {
  /** @type {Record<string, { off: number[], on: number[] }>} */
  const cpu = {}
  for (const form of Object.keys(forms)) cpu[form] = { off: [], on: [] }
  for (let round = 0; round < ROUNDS; round++) {
    for (const form of Object.keys(forms)) {
      for (const state of /** @type {const} */ (['off', 'on'])) cpu[form][state].push((await child(['sieve', form, String(TICKS.story)], { traced: state === 'on' })).cpu)
    }
  }
  const middle = (form, state) => median(cpu[form][state])
  const rows = Object.keys(forms).map((form) => [forms[form].name, `${digits(middle(form, 'off'))} µs`, `${digits(middle(form, 'on'))} µs`])
  const [off, on] = ['off', 'on'].map((state) => middle('inline', state) / middle('hoisted', state))
  console.log(table(['', 'tracing off', 'tracing on'], [...rows, ['large over small', off.toFixed(2), on.toFixed(2)]]))
  console.log(`\n${whatFormsMean(off)}`)
}

/** @param {number} ratio of large to small */
function whatFormsMean (ratio) {
  const today = `"${ARTICLE}" had 4.2 for large over small.\nToday V8 optimises the code once for all closures that are made in one place. What is left with tracing off`
  if (ratio > 1.15) return `${today}\nis more than the usual noise, 15 %. What of it shows in every run comes from the sieve's loop: it reads its limit out of the function around it.`
  return `${today}\nis noise, usually 15 %, on a busy machine up to half: which of the forms one writes hardly matters.`
}

/** @param {string[][]} rows */
function whatModesMean (rows) {
  const columns = 'The columns are modes: LONGSTACK_MODE=full, LONGSTACK_MODE=light, and full with LONGSTACK_CAPTURE=js.\n'
  return columns + (rows.some((row) => row[2] === 'no hop')
    ? 'Light mode lets promises pass without a hop, everything else is counted as in full.'
    : 'This Node cannot keep promise hooks off, so light mode counts what full mode counts.')
}

const [command, ...rest] = process.argv.slice(2)
if (command === 'sieve') sieveOnce(rest[0], Number(rest[1]))
else if (command === 'turns') recur(rest[0], Number(rest[1]))
else if (command === '--answers') answers()
else if (command === '--json') measured(rest.includes('--quick')).then((figures) => console.log(JSON.stringify(figures, null, 2)))
else story()
