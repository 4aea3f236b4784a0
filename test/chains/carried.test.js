'use strict'

// Resources older than the ring of records (lib/core/records.js) run with their chain, repeatedly. Resources
// that never run, or no longer run, leave nothing behind.

const test = require('ava')
const { program, root } = require('../helpers/run')

const setUp = `
  const trace = require(${JSON.stringify(root)})
  const { AsyncResource } = require('node:async_hooks')
  const older = require(${JSON.stringify(`${root}/lib/core/older-records`)})
  const RING = 1 << 15
  const goRound = (then) => {
    for (let i = 0; i < RING; i++) new AsyncResource('OTHER')
    setImmediate(then)
  }
`

for (const filter of ['', 'TIMER']) {
  test(`an old AsyncResource runs with its chain, filter: ${filter || 'none'}`, async (t) => {
    const { stdout, stderr } = await program(`${setUp}
      const hops = (target) => trace.chain(target).map(({ type, frames }) => type + ' ' + frames[0].functionName)
      let resource
      setTimeout(function first () {
        (function makeJob () { resource = new AsyncResource('JOB') })()
        goRound(function later () {
          const asked = hops(resource)
          const runs = [1, 2].map(() => resource.runInAsyncScope(() => hops()))
          resource.runInAsyncScope(() => setTimeout(function child () {
            console.log(JSON.stringify({ asked, runs, child: hops() }))
          }))
        })
      }, 1)
    `, { env: filter === '' ? {} : { LONGSTACK: filter } })
    t.is(stderr, '')
    const { asked, runs, child } = JSON.parse(stdout)
    const timer = asked.at(-1)
    t.true(timer.startsWith('Timeout '))
    t.deepEqual(asked, filter === '' ? ['JOB makeJob', timer] : [timer])
    t.deepEqual(runs, [asked, asked])
    t.deepEqual(child.slice(1), asked)
  })
}

test('neither resources that never run nor those that ran are kept', async (t) => {
  const { stdout, stderr } = await program(`${setUp}
    const kept = older.countKept
    AsyncResource.bind(() => {})
    goRound(() => {
      const unused = kept()
      for (let i = 0; i < RING; i++) new AsyncResource('USED').runInAsyncScope(() => {})
      goRound(() => console.log(unused < 100, kept() < 100))
    })
  `)
  t.is(stderr, '')
  t.is(stdout.trim(), 'true true')
})

test('a span is kept while it is open, and not afterwards', async (t) => {
  const { stdout, stderr } = await program(`${setUp}
    let close
    const open = trace.span('open', {}, () => new Promise((resolve) => { close = resolve }))
    const before = older.countKept()
    goRound(async () => {
      const during = older.countKept() - before
      for (let i = 0; i < 100; i++) trace.span('short', {}, () => {})
      close()
      await open
      goRound(() => console.log(during >= 1, older.countLive() - before < 10))
    })
  `, { env: { LONGSTACK_SPANS: '/dev/null' } })
  t.is(stderr, '')
  t.is(stdout.trim(), 'true true')
})

test('a crypto job older than the ring runs with its chain; a job that ran at once is not kept', async (t) => {
  const { stdout, stderr } = await program(`${setUp}
    const crypto = require('node:crypto')
    const hops = () => trace.chain().map(({ type, frames }) => type + ' ' + frames[0].functionName)
    ;(function start () {
      crypto.randomBytes(8, function made () { console.log(JSON.stringify(hops())) })
      for (let i = 0; i < 1000; i++) crypto.randomBytes(8)
    })()
    goRound(() => console.log(older.countKept() < 100))
  `)
  t.is(stderr, '')
  const lines = stdout.trim().split('\n').map((line) => JSON.parse(line))
  const chain = /** @type {string[]} */ (lines.find(Array.isArray))
  t.is(chain[0], 'RANDOMBYTESREQUEST start')
  t.true(lines.includes(true))
})

for (const forgets of [false, true]) {
  const title = forgets ? 'whose kept record was given up' : 'that is older than the ring'
  test(`requests of a connection ${title} arrive through its parser`, async (t) => {
    const { stdout, stderr } = await program(`${setUp}
      const http = require('node:http')
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
      const server = http.createServer((request, response) => {
        const body = []
        request.on('data', () => body.push(trace.chain().map(({ type }) => type)))
        request.on('end', () => response.end(JSON.stringify(body)))
      })
      const ask = (then) => {
        const options = { port: server.address().port, agent, method: 'POST' }
        http.request(options, (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (chunk) => { text += chunk })
          response.on('end', () => { console.log(text); setImmediate(then) })
        }).end('body')
      }
      server.listen(0, () => ask(() => goRound(() => {
        if (${forgets}) older.clear()
        ask(() => { agent.destroy(); server.close() })
      })))
    `)
    t.is(stderr, '')
    const [first, second] = stdout.trim().split('\n').map((line) => JSON.parse(line))
    t.is(first.length, 1)
    t.true(first[0].includes('HTTPINCOMINGMESSAGE'))
    t.deepEqual(second, first)
  })
}

test('closed connections are not kept as records that may still run', async (t) => {
  const { stdout, stderr } = await program(`${setUp}
    const http = require('node:http')
    const server = http.createServer((request, response) => response.end())
    let count = 0
    const ask = () => {
      if (count++ === 100) {
        server.close()
        return goRound(() => console.log(older.countLive()))
      }
      http.get({ port: server.address().port, agent: false }, (response) => response.resume().on('close', ask))
    }
    server.listen(0, ask)
  `)
  t.is(stderr, '')
  t.true(Number(stdout) < 20, stdout)
})

test('a promise settled when it is older than the ring is not kept as a record that may still run', async (t) => {
  const { stdout, stderr } = await program(`${setUp}
    const resolvers = []
    const promises = Array.from({ length: 200 }, () => new Promise((resolve) => resolvers.push(resolve)))
    for (let i = 0; i < 2 * RING; i++) Promise.resolve()
    const before = older.countLive()
    for (const resolve of resolvers) resolve(promises.length)
    console.log(before >= 200, older.countLive() < 20)
  `)
  t.is(stderr, '')
  t.is(stdout.trim(), 'true true')
})
