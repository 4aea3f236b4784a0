'use strict'

// Parts of a hop text that are left out for people but included in data and with `internals`: Express in
// front of a package that keeps one connection to a database.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { inherited, node, program, register, split } = require('../helpers/run')

const pool = `
  const net = require('node:net')
  let connection
  const waiting = []
  function connect (port) {
    connection = net.connect(port, '127.0.0.1')
    connection.on('data', function answered (data) {
      const { resolve, reject } = waiting.shift()
      if (String(data) === 'no') reject(new Error('no such table'))
      else resolve(String(data))
    })
  }
  exports.query = (port, text) => send(port, text).catch(function again (error) { // as pg-pool does
    Error.captureStackTrace(error)
    throw error
  })
  function send (port, text) {
    if (connection === undefined) connect(port)
    return new Promise(function ask (resolve, reject) {
      waiting.push({ resolve, reject })
      connection.write(text)
    })
  }
  exports.end = () => connection.destroy()
`

const app = `
  const net = require('node:net')
  const express = require(${JSON.stringify(require.resolve('express'))})
  const trace = require(${JSON.stringify(path.join(__dirname, '..', '..'))})
  const pool = require('database')
  const database = net.createServer((socket) => socket.on('data', (text) => socket.write(String(text) === 'bad' ? 'no' : 'yes')))
  const query = (text) => pool.query(database.address().port, text)
  async function load (text) {
    return await query(text)
  }
  const server = express()
    .get('/orders', async function getOrders (request, response) { response.send(await load('orders')) })
    .get('/bad', async function getBad (request, response) {
      response.send(await load('bad'))
    })
    .use(function failed (error, request, response, next) {
      response.json({ stack: error.stack, chain: trace.chain(error).map((hop) => ({ type: hop.type, label: hop.label, files: hop.frames.map((frame) => frame.fileName) })) })
    })
    .listen(0, '127.0.0.1', async function main () {
      await new Promise((resolve) => database.listen(0, '127.0.0.1', resolve))
      const base = 'http://127.0.0.1:' + server.address().port
      const told = []
      for (const url of process.argv.slice(2)) told.push(await (await fetch(base + url)).text())
      console.log(told.at(-1))
      process.exit()
    })
`

/** @param {import('ava').ExecutionContext} t @param {Record<string, string>} files */
function folderWith (t, files) {
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'longstack-short-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
    fs.writeFileSync(path.join(folder, name), text)
  }
  return folder
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string[]} urls asked for one after another
 * @param {Record<string, string>} [env]
 * @returns {Promise<{ stack: string, chain: Array<{ type: string, label: string, files: string[] }> }>}
 */
async function answer (t, urls, env) {
  const folder = folderWith(t, { 'node_modules/database/index.js': pool, 'app.js': app })
  const { stdout, stderr } = await node(['-r', register, path.join(folder, 'app.js'), ...urls], { env })
  t.is(stderr, '')
  return JSON.parse(stdout)
}

test('GET /bad of Express: own frames, packages as one line, the request last', async (t) => {
  const { stack, chain } = await answer(t, ['/bad'])
  const [first, ...hops] = stack.slice(stack.indexOf('  ──')).split('\n')
  t.regex(first, /^ {2}── [^·]+ · \d+ m?s earlier ──$/)
  t.regex(hops.at(-1), /^ {2}── GET \/bad · \d+ m?s earlier ──$/)
  t.true(stack.split('\n').length <= 12, stack)
  t.true(stack.includes(' in router, express\n'), stack)
  t.false(hops.some((line) => line.includes('node_modules')), stack)
  for (const name of ['load', 'getBad']) t.is(stack.split(new RegExp(`\\b${name}\\b`)).length, 3, `${name}: by V8, and as above`)
  t.true(chain.some(({ label, files }) => label.startsWith('server.listen') && files.length > 0), 'data have it all')
  t.true(chain.some(({ type }) => type === 'HTTPINCOMINGMESSAGE'))
  t.true(chain[0].files.some((file) => file.includes('node_modules')))
})

test('on another request\'s connection, each chain ends at its own request', async (t) => {
  const { stack } = await answer(t, ['/orders', '/bad'])
  t.regex(stack, /\n {2}── GET \/bad [^\n]*──/)
  t.false(stack.includes('server.listen'), stack)
  t.false(/ · [A-Z]{4}/.test(stack), stack)
  t.false(stack.slice(stack.indexOf('  ──')).includes('node_modules'), stack)
})

test('internals shows everything', async (t) => {
  const { stack } = await answer(t, ['/bad'], { LONGSTACK_INTERNALS: '1', LONGSTACK_FRAMES: '40' })
  const hops = stack.slice(stack.indexOf('  ──'))
  t.regex(hops, /node_modules.express/)
  t.regex(hops, / · HTTPINCOMINGMESSAGE · [^]*── server\.listen[^]* · TCPSERVERWRAP · /)
  t.false(/ as above: | frames? in /.test(hops), hops)
})

test('hide folds what it names, and packages stay', async (t) => {
  const { stack } = await answer(t, ['/bad'], { LONGSTACK_HIDE: 'app\\.js$', LONGSTACK_FRAMES: '40' })
  const hops = stack.slice(stack.indexOf('  ──'))
  t.regex(hops, /\n {4}\.\.\. \d+ frames? in app\.js\n/)
  t.regex(hops, /at .*node_modules.database/)
})

test('frames that V8 prints as "at async" are not repeated, and no function is missing', async (t) => {
  const { stdout } = await program(`
    const { setTimeout: sleep } = require('node:timers/promises')
    async function inner () { await sleep(2); throw new Error('inner') }
    function plain () { return inner() }
    async function middle () { await plain() }
    async function main () { await sleep(1); await middle() }
    function start () { return main() }
    start().catch((error) => console.log(error.stack))`)
  const { head, hops } = split(stdout)
  t.regex(head, /at inner .*\n {4}at async middle .*\n {4}at async main /)
  const [first, second] = hops.map(({ frames }) => frames)
  t.regex(first, /^ {4}at inner .*\n {4}at plain .*\n {4}\.\.\. as above: middle, main\n$/)
  t.regex(second, /^ {4}at start .*\n {4}at Object\.<anonymous> /)
})

test('a promise made by catch has the same name after V8 has optimized the call', async (t) => {
  const { stdout } = await program(`
    const trace = require(${JSON.stringify(path.join(__dirname, '..', '..'))})
    const labels = new Set()
    const query = () => Promise.reject(new Error('x')).catch(() => {})
    async function main () {
      for (let i = 0; i < 8000; i++) {
        const promise = query()
        labels.add(trace.chain(promise)[0].label)
        await promise
      }
      console.log([...labels].join())
    }
    main()`)
  t.is(stdout, 'promise.then\n')
})

test('npm is one line', (t) => {
  const folder = folderWith(t, {
    'package.json': '{ "scripts": { "start": "node app.js" } }',
    'app.js': 'setTimeout(function later () { console.log(new Error("x").stack) }, 1)'
  })
  const env = { ...inherited, NODE_OPTIONS: `-r ${register}`, npm_config_update_notifier: 'false' }
  const { status, stdout } = spawnSync('npm', ['run', '--silent', 'start'], { cwd: folder, env, encoding: 'utf8', shell: process.platform === 'win32' })
  if (status !== 0) return t.pass('npm does not run here')
  t.regex(stdout, /── setTimeout\(1\) .*\n {4}at Object\.<anonymous> .*\n {4}\.\.\. \d+ hops? in npm\n$/)
})
