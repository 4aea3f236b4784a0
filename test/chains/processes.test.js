'use strict'

const test = require('ava')
const path = require('node:path')
const { decodeChain, encodeChain } = require('../../lib/stacks/passed-chain')
const { program, split, register, root } = require('../helpers/run')

const child = path.join(root, 'test', 'fixtures', 'processes', 'child.js')
const preload = { NODE_OPTIONS: `-r ${register}` }

/**
 * Runs a program whose children print a line each.
 * @param {string} source
 * @param {object} [options]
 * @returns {Promise<Record<string, any>>} what they printed, by name
 */
async function children (source, options) {
  const { stdout, stderr, code } = await program(`
    const { exec, execFile, fork, spawn, ChildProcess } = require('node:child_process')
    const child = ${JSON.stringify(child)}
    const print = (error, stdout) => { if (error) throw error; process.stdout.write(stdout) }
    ${source}`, options)
  if (code !== 0 || stderr !== '') throw new Error(`${code}: ${stderr}`)
  return Object.fromEntries(stdout.trim().split('\n').map((line) => JSON.parse(line)).map((told) => [told.name, told]))
}

/** @param {any} told @returns {string[]} label, origin and function of each hop */
const hopsOf = ({ hops }) => hops.map((/** @type {any} */ { label, origin, at }) => `${label} ${origin} ${at}`)

/** @param {any} told */
const pidsOf = ({ hops }) => hops.map((/** @type {any} */ { pid }) => pid)

const own = 'setTimeout(1) registered undefined'

test('a child that runs longstack begins with the chain of its parent', async (t) => {
  const told = await children(`
    function start () { setTimeout(begin, 2) }
    function begin () {
      fork(child, ['fork', 'SECRET'])
      spawn(process.execPath, [...process.execArgv, child, 'spawn'], { stdio: 'inherit' })
      exec('echo | ' + process.execPath + ' ' + child + ' exec', { env: { ...process.env, ...${JSON.stringify(preload)} } }, print)
      const cluster = require('node:cluster')
      cluster.setupPrimary({ exec: child, args: ['cluster'] })
      cluster.fork()
      new (require('node:worker_threads').Worker)(inWorker, { eval: true })
    }
    const inWorker = 'function deep () { require("node:child_process").fork(${child}, ["worker"], { stdio: "inherit" }) }; deep()'
      .replace(${JSON.stringify(child)}, JSON.stringify(child))
    start()`)
  t.deepEqual(Object.keys(told).sort(), ['SECRET', 'cluster', 'exec', 'fork', 'spawn', 'worker'])
  const parent = told.fork.parent
  const rest = ['setTimeout(2) process start']
  t.deepEqual(hopsOf(told.fork), [own, 'fork(child.js) process begin', ...rest])
  t.deepEqual(hopsOf(told.spawn), [own, 'spawn(node child.js) process begin', ...rest])
  t.deepEqual(hopsOf(told.exec), [own, 'child_process.exec process begin', ...rest])
  t.deepEqual(hopsOf(told.cluster), [own, 'cluster.fork(child.js) process begin', ...rest])
  t.deepEqual(hopsOf(told.worker), [own, 'fork(child.js) process deep', 'new Worker process begin', ...rest])
  for (const name of ['fork', 'spawn', 'exec', 'cluster', 'worker']) {
    t.deepEqual(pidsOf(told[name]), [undefined, ...told[name].hops.slice(1).fill(parent)])
  }
  t.is(told.fork.hops[1].line + 1, told.spawn.hops[1].line)
  const { hops } = split(told.fork.stack)
  t.regex(hops[1].title, new RegExp(`^fork\\(child\\.js\\) · [\\d.]+ m?s earlier · in process ${parent} ──$`))
  t.regex(hops[1].frames, /at begin .*program\.cjs:\d+:\d+/)
  t.regex(hops[2].title, /earlier · process ──$/)
  // The main script itself descends from the parent
  const titles = split(told.fork.top).hops.map(({ title }) => title)
  t.true(titles.length === 2 && titles[0].startsWith('fork(child.js)'), told.fork.top)
  // A process between two others keeps its number.
  t.deepEqual(hopsOf(told.SECRET), [own, 'fork(child.js) process inChild', 'setTimeout(1) process undefined',
    'fork(child.js) process begin', ...rest])
  t.deepEqual(pidsOf(told.SECRET), [undefined, told.SECRET.parent, told.SECRET.parent, parent, parent])
  const { title } = split(told.SECRET.stack).hops[3]
  t.true(title.endsWith(`in process ${parent} ──`), title)
})

for (const type of /** @type {const} */ (['cjs', 'mjs'])) {
  test(`--import, ${type}: work started by a child's main script has the chain of its parent`, async (t) => {
    const imported = type === 'cjs' ? "const { fork } = require('node:child_process')" : "import { fork } from 'node:child_process'"
    const file = type === 'cjs' ? '__filename' : 'import.meta.filename'
    const { stdout, stderr } = await program(`
      ${imported}
      if (process.send === undefined) setImmediate(function begin () { fork(${file}) })
      else setTimeout(() => { console.log(new Error('told').stack); process.disconnect() }, 1)
    `, { type, preload: false, args: ['--import', register] })
    t.is(stderr, '')
    const titles = split(stdout).hops.map(({ title }) => title.split(' · ')[0])
    t.deepEqual(titles, ['setTimeout(1)', `fork(program.${type})`, 'setImmediate'])
  })
}

test('a child of the main script has its chain, with a filter', async (t) => {
  const source = "setImmediate(function begin () { fork(child, ['later']) }); fork(child, ['first'])"
  const filtered = await children(source, { env: { LONGSTACK: 'TIMER,IMMEDIATE' } })
  t.deepEqual(hopsOf(filtered.later), [own, 'setImmediate process undefined'])
  t.deepEqual(hopsOf(filtered.first), [own])
})

test('environments are the same with and without longstack', async (t) => {
  const source = `
    const env = { PLAIN: 'a=b', EMPTY: '', NUMBER: 5, UNSET: undefined, NULL: null, OBJECT: { toString: () => 'text' }, LIST: [1, 2] }
    const seen = []
    const proxy = new Proxy({ ...process.env, MORE: '1' }, {
      get: (target, key) => { seen.push(String(key)); return target[key] },
      ownKeys: (target) => { seen.push('keys'); return Reflect.ownKeys(target) }
    })
    const run = (name, flags, options) => spawn(process.execPath, [...flags, child, name], { stdio: 'inherit', ...options })
    run('bare', [], { env })
    run('traced', process.execArgv, { env })
    run('inherited', process.execArgv)
    run('proxy', process.execArgv, { env: proxy })
    run('mine', process.execArgv, { env: { _LONGSTACK_CHAIN: 'mine' } })
    fork(child, ['fork'], { env, execArgv: [] })
    process.on('exit', () => console.log(JSON.stringify({ name: 'seen', seen })))`
  const env = { SOME: 'one', _LONGSTACK_CHAIN: 'theirs' }
  const traced = await children(source, { env })
  const bare = await children(source, { env, preload: false })
  t.deepEqual(Object.keys(traced).sort(), ['bare', 'fork', 'inherited', 'mine', 'proxy', 'seen', 'traced'])
  for (const name of Object.keys(bare)) t.deepEqual(traced[name].env, bare[name].env, name)
  t.deepEqual(traced.seen, bare.seen)
  t.deepEqual(hopsOf(traced.traced), [own, 'spawn(node child.js) process run'])
  t.deepEqual(hopsOf(traced.bare), [])
  t.deepEqual(hopsOf(traced.mine), [own])
  // PWD comes from the shell that starts an emulator
  const without = traced.mine.env.filter((/** @type {string[]} */ [name]) => name !== 'PWD')
  t.deepEqual(without, [['_LONGSTACK_CHAIN', 'mine']])
})

test('methods are Node\'s, and remain so after trace.disable()', async (t) => {
  const source = `
    const keys = (object) => Reflect.ownKeys(object).map(String)
    const look = (one) => [one.spawn === ChildProcess.prototype.spawn, keys(one), keys(one._handle), keys(Object.getPrototypeOf(one._handle))]
    const options = { file: process.execPath, args: ['node', child, 'direct'], envPairs: ['A=1'], stdio: 'inherit' }
    const seen = []
    const early = new ChildProcess()
    if (globalThis[Symbol.for('test')]) seen.push(require(${JSON.stringify(root)}).disable().enabled)
    seen.push(look(early))
    seen.push(look(fork(child, ['fork'])))
    early.spawn(options)
    seen.push(look(early), Object.keys(options), options.envPairs)
    process.on('exit', () => console.log(JSON.stringify({ name: 'seen', seen })))`
  const traced = await children(source)
  const bare = await children(source, { preload: false })
  const disabled = await children(`globalThis[Symbol.for('test')] = true\n${source}`)
  t.deepEqual(traced.seen.seen.slice(1), bare.seen.seen.slice(1))
  t.deepEqual(disabled.seen.seen, [false, ...bare.seen.seen])
  t.deepEqual(hopsOf(disabled.fork), [own])
})

test('a message of the parent has the chain of the place that spawned the child', async (t) => {
  const { stdout, stderr } = await program(`
    const trace = require(${JSON.stringify(root)})
    const chain = () => trace.chain().map(({ label, frames: [frame] }) => label + ' ' + frame?.functionName)
    const child = process.argv[2] === 'child' ? process : undefined
    child?.on('message', () => { child.send(chain()); child.disconnect() })
    if (child === undefined) setTimeout(function begin () {
      const forked = require('node:child_process').fork(__filename, ['child'])
      forked.on('message', (seen) => console.log(JSON.stringify([seen, chain()])))
      setTimeout(function ask () { forked.send('hello') }, 1)
    }, 1)`)
  t.is(stderr, '')
  const timer = 'setTimeout(1) undefined'
  t.deepEqual(JSON.parse(stdout), [['fork(program.cjs) begin', timer], ['child_process.fork begin', timer]])
})

/** @param {number} i @param {object} [more] @returns {any} */
const hop = (i, more) => ({
  asyncId: i,
  triggerAsyncId: 1,
  type: 'Timeout',
  label: `setTimeout(${i})`,
  ageMs: i,
  repeats: 1,
  origin: 'registered',
  frames: [],
  lines: [`    at Object.step [as f] (/app/\u00e4/node_modules/x/${i}.js:3:4)`, '    ... 2 frames in express'],
  ...more
})

test('a chain as text is bounded, and keeps the newest hops', (t) => {
  const text = String(encodeChain(Array.from({ length: 500 }, (_, i) => hop(i)), 7))
  t.true(Buffer.byteLength(text) <= 16_000 && Buffer.byteLength(text) > 15_000)
  const { hops } = /** @type {NonNullable<ReturnType<typeof decodeChain>>} */ (decodeChain(text))
  t.deepEqual(hops[0].lines, ['    at Object.step [as f] (/app/\u00e4/node_modules/x/0.js:3:4)', '    ... 2 frames in express'])
  t.deepEqual({ ...hops[1], lines: [] }, {
    ...hop(1),
    origin: 'process',
    pid: 7,
    lines: [],
    frames: [{
      functionName: 'step',
      fileName: '/app/\u00e4/node_modules/x/1.js',
      lineNumber: 3,
      columnNumber: 4,
      kind: 'module',
      isAsync: false
    }]
  })
  const folded = String(encodeChain([hop(0, { ageMs: NaN, pid: 3, isFolded: true })], 7))
  const [unknown] = /** @type {any} */ (decodeChain(folded)).hops
  t.deepEqual([unknown.ageMs, unknown.pid, unknown.isFolded], [NaN, 3, true])
  t.is(encodeChain([], 7), undefined)
})

test('text that is not a chain is ignored', (t) => {
  const good = String(encodeChain([hop(1)], 7))
  t.truthy(decodeChain(good))
  const wrong = ['', '1', 'null', '{}', '[]', good.slice(1), `${good}x`, good.replace('"longstack":1', '"longstack":2'),
    good.replace('"pid":7', '"pid":"7"'), good.replace('"lines":[', '"lines":[1,'),
    good.replace('"type":"Timeout"', '"type":"a\\nb"'),
    good.replace('"hops":[', '"hops":[null,'), good.replace('Timeout', 'x'.repeat(70_000))]
  for (const text of wrong) t.is(decodeChain(text), undefined, text.slice(0, 60))
})
