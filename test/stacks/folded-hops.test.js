'use strict'

// Neighbouring hops without code of the program are one line of a text and count once toward `depth`; the
// request of a chain is always printed; data has every hop.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, register, root } = require('../helpers/run')

const STEPS = 20

/** A stack of middleware: each layer awaits the next one. */
const layers = `
  const { setTimeout } = require('node:timers/promises')
  const call = async (layer, inner) => {
    await setTimeout(1)
    return await inner()
  }
  const functions = []
  for (let i = 0; i < ${STEPS}; i++) {
    // Each layer is a function of its own, or loops would be folded before
    functions.push(new Function('wait', 'return async function layer' + i + ' (next) { await wait(1); return next().then((x) => x) }\\n//# sourceURL=' + __dirname + '/layer' + i + '.js')(setTimeout))
  }
  exports.send = (last) => functions.reduceRight((next, layer) => () => layer(next), last)()
  exports.fail = async () => { await setTimeout(1); throw new Error('no such key') }
`

const app = `
  const http = require('node:http')
  const trace = require(${JSON.stringify(root)})
  const sdk = require('sdk')
  const pause = () => new Promise((resolve) => setTimeout(resolve, 1))
  async function readAvatar () {
    await pause()
    return await sdk.send(sdk.fail)
  }
  const server = http.createServer(function handle (request, response) {
    readAvatar().catch(function failed (error) {
      response.end(JSON.stringify({ stack: error.stack, chain: trace.chain(error), printed: require('node:util').inspect(trace.chain(error)) }))
    })
  }).listen(0, '127.0.0.1', async () => {
    const answer = await fetch('http://127.0.0.1:' + server.address().port + '/avatar')
    console.log(await answer.text())
    server.close()
    process.exit()
  })
`

/** @param {import('ava').ExecutionContext} t @param {Record<string, string>} [env] */
async function told (t, env) {
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'longstack-folded-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  fs.mkdirSync(path.join(folder, 'node_modules', 'sdk'), { recursive: true })
  fs.writeFileSync(path.join(folder, 'node_modules', 'sdk', 'index.js'), layers)
  fs.writeFileSync(path.join(folder, 'app.js'), app)
  const { stdout, stderr } = await node(['-r', register, path.join(folder, 'app.js')], { env })
  t.is(stderr, '')
  return JSON.parse(stdout)
}

const FOLDED = /^ {4}\.\.\. (\d+) hops in sdk$/m

test('hops of a package are one line, and count little toward the depth', async (t) => {
  const { stack, chain, printed } = await told(t)
  t.regex(stack, FOLDED)
  t.true(Number(FOLDED.exec(stack)?.[1]) > 16, stack)
  t.is(stack.match(/^ {4}\.\.\. \d+ hops/gm)?.length, 1, stack)
  t.regex(stack, /\n {4}at handle .*\n {2}── GET \/avatar · [^]*$/)
  t.true(stack.split('\n').length < 35, stack)
  t.true(chain.length > STEPS, 'data have every hop')
  t.false(chain.some((/** @type {any} */ { type }) => type === 'PACKAGES'))
  t.is(chain.filter((/** @type {any} */ { frames }) => frames.some((/** @type {any} */ { kind }) => kind === 'module')).length >= STEPS, true)
  t.deepEqual(Object.keys(chain[3]), ['asyncId', 'triggerAsyncId', 'type', 'label', 'ageMs', 'repeats', 'origin', 'frames'])
  t.regex(printed, FOLDED, 'printed as text, data are folded as well')
})

test('the request is always printed, however small the depth', async (t) => {
  const { stack, chain } = await told(t, { LONGSTACK_DEPTH: '1' })
  t.regex(stack, /\n {4}\.\.\. \d+ more hops\n {2}── GET \/avatar · [^\n]*$/)
  t.is(stack.split('\n').filter((/** @type {string} */ line) => line.startsWith('  ──')).length, 2)
  t.true(chain.length > STEPS)
})

test('hops that `hide` shows are not folded, nor any with `internals`', async (t) => {
  const { stack } = await told(t, { LONGSTACK_HIDE: '/no such file/' })
  t.notRegex(stack, / hops in /)
  t.regex(stack, /\n {4}\.\.\. \d+ more hops\n {2}── GET \/avatar · [^\n]*$/)
  const { stack: whole } = await told(t, { LONGSTACK_INTERNALS: '1' })
  t.notRegex(whole, / hops in | more hops/)
  t.is(whole.match(/^ {2}── /gm)?.length, 16)
})

const terminated = `
  const http = require('node:http')
  const server = http.createServer((request, response) => {
    response.writeHead(200, { 'content-length': 1000 })
    response.write('x')
    setTimeout(() => response.destroy(), 10)
  })
  async function download (url) {
    const response = await fetch(url)
    return await response.text()
  }
  server.listen(0, '127.0.0.1', function listening () {
    setTimeout(function later () {
      setImmediate(function soon () {
        setTimeout(async function work () {
          await download('http://127.0.0.1:' + server.address().port).catch(({ stack }) => console.log(stack))
          process.exit()
        }, 3)
      })
    }, 5)
  })
`

test('hops that were printed above are one line', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-folded-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  fs.writeFileSync(path.join(folder, 'app.js'), terminated)
  const { stdout } = await node(['-r', register, path.join(folder, 'app.js')])
  t.is(stdout.match(/^ {2}── setImmediate · /gm)?.length, 1, stdout)
  t.regex(stdout, /\n {2}── awaited by [^]*\n {4}\.\.\. \d hops as above\n$/)
})
