'use strict'

// trace.profile: its counts for programs with known chains, and nothing left behind.

const test = require('ava')
const { program, root } = require('../helpers/run')

/** Functions of the programs below: a promise for later, and work for the CPU. */
const parts = `
  const trace = require(${JSON.stringify(root)})
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  function spin (ms) { const end = performance.now() + ms; while (performance.now() < end); }
  const print = (value) => console.log(JSON.stringify(value))
`

/**
 * Runs a program that prints JSON.
 * @param {string} source
 * @param {Parameters<typeof program>[1]} [options]
 */
async function resultOf (source, options) {
  const { stdout, stderr, code } = await program(parts + source, options)
  if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`)
  return JSON.parse(stdout)
}

/** @typedef {import('../../lib/profile/profile').ProfileChain} ProfileChain */
/** @typedef {import('../../lib/profile/path-tree').PathNode} PathNode */

/** @param {Array<Record<string, any>>} list @param {string} figure */
const sumOf = (list, figure) => list.reduce((sum, entry) => sum + entry[figure], 0)

/**
 * Finds chains by their innermost frame.
 * @param {any} profile
 * @param {string} name
 * @param {string} [label]
 */
const chainsOf = ({ chains }, name, label) => chains.filter((/** @type {ProfileChain} */ chain) =>
  chain.frames[0]?.startsWith(`${name} (`) && (label === undefined || chain.label === label))

const known = `
  async function poll () { await sleep(40); spin(15) }
  async function main () { for (let i = 0; i < 10; i++) await poll() }
  trace.profile({ seconds: 60 }).then(print)
  setImmediate(function begin () { main() })
`

test('callbacks, their run and wait times, and CPU samples are counted under their chain', async (t) => {
  const profile = await resultOf(known)
  const polls = chainsOf(profile, 'poll', 'await')
  const sum = (/** @type {string} */ figure) => sumOf(polls, figure)
  t.is(sum('count'), 10)
  t.is(sum('waits'), 10)
  t.true(sum('ranMs') >= 150 && sum('waitedMs') >= 300, JSON.stringify(polls))
  t.true(sum('waitedMs') < 1000 * profile.seconds - sum('ranMs') + 50, 'a wait ends where its callback begins')
  t.true(Math.abs(profile.ranMs + profile.idleMs - profile.seconds * 1000) < 1, 'every moment is one of both')
  t.true(profile.idleMs >= 300)
  t.true(polls.every((/** @type {any} */ { kind, type }) => kind === 'PROMISE' && type === 'PROMISE'))
  /** @param {string[]} frames @param {string} name */
  const has = (frames, name) => frames.some((frame) => frame.startsWith(name))
  const spinning = profile.samples.filter((/** @type {any} */ { frames }) => has(frames, 'spin ('))
  const inPoll = spinning.filter((/** @type {any} */ { chain }) => polls.includes(profile.chains[chain]))
  t.true(sumOf(spinning, 'ms') > 60, 'samples of what used the CPU')
  t.true(sumOf(inPoll, 'ms') > 0.95 * sumOf(spinning, 'ms'), 'in the chain that ran it')
  t.true(has(spinning[0].frames, 'poll ('))
})

test('a wait begins at the end of the callback that registered it', async (t) => {
  const { chains } = await resultOf(`
    async function soon () { await null }
    trace.profile({ seconds: 60, samples: false }).then(print)
    setTimeout(function long () { soon(); spin(100) }, 1)
  `)
  t.true(sumOf(chainsOf({ chains }, 'soon', 'await'), 'waitedMs') < 50, JSON.stringify(chains))
})

test('the profile is one tree in which each node is the sum of its children', async (t) => {
  const { tree, chains } = await resultOf(known)
  t.is(tree.kind, 'root')
  /** @param {PathNode} node @param {string[]} path */
  function check (node, path) {
    const sum = sumOf(node.children, 'ms')
    const isLeaf = node.children.length === 0 || node.kind === 'ran'
    t.true(isLeaf ? sum <= node.ms + 0.01 : Math.abs(sum - node.ms) < 0.01, `${path.join(' > ')}: ${sum} of ${node.ms}`)
    for (const child of node.children) check(child, [...path, child.name])
  }
  check(tree, [])
  const total = sumOf(chains, 'ranMs') + sumOf(chains, 'waitedMs')
  t.true(Math.abs(total - tree.ms) < 0.01)
  t.true(JSON.stringify(tree).includes('"name":"begin'), 'the callback that began it')
})

test('requests have their route, even if a framework knows it late', async (t) => {
  const { chains, tree } = await resultOf(`
    const express = require(${JSON.stringify(require.resolve('express'))})
    const http = require('node:http')
    const app = express()
    app.get('/users/:id', async function user (request, response) { await sleep(100); response.end('x') })
    const server = http.createServer(app).listen(0, '127.0.0.1', async () => {
      const profile = trace.profile({ seconds: 60, samples: false })
      for (let i = 0; i < 5; i++) await fetch('http://127.0.0.1:' + server.address().port + '/users/' + i).then((answer) => answer.text())
      server.close()
      server.closeAllConnections()
      trace.disable()
      print(await profile)
    })
  `)
  const [user] = chainsOf({ chains }, 'user', 'await')
  t.is(user.route, 'GET /users/:id')
  t.is(user.count, 5)
  t.true(user.waitedMs >= 350, 'timers count from the begin of an iteration of the loop')
  const routes = tree.children.filter((/** @type {any} */ { kind }) => kind === 'route')
  t.deepEqual(routes.map((/** @type {any} */ { name, count }) => [name, count]), [['GET /users/:id', 5]])
})

for (const [name, env, lacking] of /** @type {const} */ ([
  ['with the engine in JavaScript', { LONGSTACK_CAPTURE: 'js' }, /^$/],
  ['with a filter', { LONGSTACK: 'TIMER' }, /The filter TIMER leaves resources out/]
])) {
  test(`it works ${name}, and says what is missing`, async (t) => {
    const profile = await resultOf(`
      function tick () { spin(5) }
      trace.profile({ seconds: 60 }).then(print)
      for (let i = 1; i <= 4; i++) setTimeout(tick, 100 * i) // the wait begins when this is over
    `, { env })
    const [timer] = profile.chains.filter((/** @type {any} */ { type }) => type === 'Timeout')
    t.is(timer.count, 4)
    t.true(timer.ranMs >= 20 && timer.waitedMs >= 700, JSON.stringify(timer))
    t.regex(profile.lacks.join(' '), lacking)
  })
}

test('it runs in workers and ES modules, and ends if nothing is left to do', async (t) => {
  const { stdout } = await program(`
    import { profile } from ${JSON.stringify(`file://${root}/lib/esm.mjs`)}
    import { Worker } from 'node:worker_threads'
    const source = \`
      const { parentPort } = require('node:worker_threads')
      require(${JSON.stringify(root)}).profile({ seconds: 60 }).then((profile) => parentPort.postMessage(profile))
      setTimeout(function later () {}, 30)
    \`
    new Worker(source, { eval: true }).on('message', async (inWorker) => {
      const started = profile({ seconds: 60, samples: false })
      setTimeout(function outside () {}, 30)
      console.log(JSON.stringify([inWorker, await started]))
    })
  `, { type: 'mjs' })
  const [inWorker, outside] = JSON.parse(stdout)
  t.true(inWorker.threadId > 0 && outside.threadId === 0)
  t.true(inWorker.seconds < 30 && outside.seconds < 30)
  for (const { chains } of [inWorker, outside]) {
    t.true(chains.some((/** @type {any} */ { label, waitedMs }) => label === 'setTimeout(30)' && waitedMs >= 25))
  }
})

test('wrong options, a second profile, and disabled tracing are errors', async (t) => {
  const codes = await resultOf(`
    const code = (promise) => promise.then(() => 'none', (error) => error.code + ' ' + error.message)
    const first = trace.profile({ seconds: 0.05 })
    Promise.all([
      trace.profile({ seconds: 1 }), trace.profile({ seconds: 0 }), trace.profile({ seconds: 1801 }),
      trace.profile({ samples: 'no' }), trace.profile({ secnds: 1 }), trace.profile(null)
    ].map(code)).then(async (codes) => {
      await first
      const again = await code(trace.profile({ seconds: 0.01 }))
      trace.disable()
      print([...codes, again, await code(trace.profile())])
    })
    setTimeout(() => {}, 200)
  `)
  const expected = ['PROFILE_RUNS', 'INVALID_PROFILE', 'INVALID_PROFILE', 'INVALID_PROFILE', 'UNKNOWN_PROFILE_OPTION', 'INVALID_PROFILE', 'none', 'NOT_ENABLED']
  for (const [index, code] of expected.entries()) t.true(codes[index].includes(code), codes[index])
  t.regex(codes[4], /Did you mean "seconds"\?/)
})

test('nothing is left behind', async (t) => {
  const [before, during, after] = await resultOf(`
    const channels = require('node:diagnostics_channel')
    const { ATTENTION, current } = require(${JSON.stringify(`${root}/lib/core/current.js`)})
    const state = () => [
      current[ATTENTION], process.listenerCount('beforeExit'), channels.hasSubscribers('http.server.response.finish'),
      require('node:inspector').url() ?? 'closed', process.getActiveResourcesInfo().length
    ]
    setTimeout(async () => {
      const states = [state()]
      const profile = trace.profile({ seconds: 0.05 })
      states.push(state())
      await profile
      states.push(state())
      print(states)
    }, 50)
    setTimeout(() => {}, 300)
  `)
  t.deepEqual(after.slice(0, 4), before.slice(0, 4))
  t.true(after[4] <= before[4], 'nothing keeps the process alive')
  t.notDeepEqual(during, before)
})
