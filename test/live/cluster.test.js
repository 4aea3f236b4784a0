'use strict'

// longstack why on a clustered server, which listens in the primary for its workers.

const test = require('ava')
const { livePrograms, longstack } = require('../helpers/live')
const { patient } = require('../helpers/starved')

const { start } = livePrograms(test)
const live = process.platform === 'win32' ? test.skip : patient(test)

const service = `
  const cluster = require('node:cluster')
  const http = require('node:http')
  if (cluster.isPrimary) {
    cluster.schedulingPolicy = process.env.POLICY === 'none' ? cluster.SCHED_NONE : cluster.SCHED_RR
    const ports = []
    function startWorkers () {
      for (let i = 0; i < 2; i++) {
        cluster.fork().on('message', (port) => { if (ports.push(port) === 2) ask() })
      }
    }
    startWorkers()
    const ask = () => http.get({ port: ports[0], agent: false }, (response) => {
      response.resume().on('end', () => console.log('ready', ports[0]))
    })
  } else {
    const server = http.createServer((request, response) => response.end())
    function serve () { server.listen(0, () => process.send(server.address().port)) }
    serve()
  }
`

/** @param {any} hop */
const functions = ({ frames }) => frames.map((/** @type {any} */ { functionName }) => functionName)

for (const [i, policy] of ['round robin', 'none'].entries()) {
  live(`it names the listener of a cluster's port, policy ${policy}`, async (t) => {
    const { pid, ready: port } = await start(service, { env: { POLICY: policy }, port: 9320 + 10 * i })
    const { stdout, stderr, code } = await longstack('why', '--json', `:${port}`)
    t.is(code, 0, stderr)
    const { processes } = JSON.parse(stdout)
    t.is(processes.length, 3)
    const servers = processes.map((/** @type {any} */ one) =>
      one.threads[0].open.filter((/** @type {any} */ { type }) => type === 'TCPSERVERWRAP'))
    t.deepEqual(servers.map((/** @type {any[]} */ list) => list.length), [1, 1, 1])
    for (const [index, [server]] of servers.entries()) {
      const { what, state, local, opened, origin } = server
      t.deepEqual([state, origin], ['listening', 'registered'])
      t.regex(local, new RegExp(`:${port}$`))
      const isPrimary = processes[index].pid === pid
      t.is(/, listens through the primary$/.test(what), !isPrimary, what)
      t.is(functions(opened[0])[0], isPrimary ? 'startWorkers' : 'serve')
    }
    const workers = servers.slice(1).map(([server]) => server)
    t.true(workers.some(({ idleMs, ageMs }) => idleMs < ageMs), 'the one that got a connection')
  })
}

live('a cluster server opened before tracing is listed with its port', async (t) => {
  const { pid, ready: port } = await start(service.replace(/listen\(0/, 'listen(18137'), { traced: false, port: 9340 })
  const { stdout, code } = await longstack('why', '--no-children', `:${port}`)
  t.is(code, 0)
  t.regex(stdout, new RegExp(`^Process ${pid} `))
  t.regex(stdout, /^TCP server at \[::\]:18137, for the workers of a cluster · TCPSERVERWRAP\n {2}listening/m)
})
