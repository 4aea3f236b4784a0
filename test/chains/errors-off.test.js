'use strict'

// errors: false: everything is traced, while `.stack` and Error.prepareStackTrace stay as they are without
// longstack. trace.stack(error) and trace.chain(error) return the chain of an error.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { same } = require('../helpers/both')
const { compile, folder, inline, place } = require('../helpers/maps')
const { program, node, register, root, split } = require('../helpers/run')

const off = { LONGSTACK_ERRORS: 'off' }
const none = { hops: (/** @type {number} */ count) => count === 0, env: off }
const prelude = `
  const trace = require(${JSON.stringify(root)})
  const told = {}
  const functions = ({ frames }) => frames.map(({ functionName }) => functionName).join(' < ')
  const names = (error) => trace.chain(error).map((hop) => hop.label + ' | ' + functions(hop) + (hop.origin === 'registered' ? '' : ' · ' + hop.origin))
  process.on('exit', () => console.log(JSON.stringify(told)))
`

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {Parameters<typeof program>[1]} [options]
 */
async function answers (t, source, options = {}) {
  const { stdout, stderr, code } = await program(prelude + source, { env: off, ...options })
  t.is(stderr, '')
  t.is(code, 0)
  return JSON.parse(stdout)
}

const deep = (/** @type {string} */ body) => `setTimeout(function outer () { setTimeout(function inner () { ${body} }, 1) }, 1)`

test('a stack that is read is the same as without longstack', (t) => same(t, `
  const { stack } = Object.getOwnPropertyDescriptor(new Error('x'), 'stack') ?? {}
  ${deep(`
    const error = new TypeError('deep', { cause: new Error('cause') })
    console.log(error, error.stack)
    const holder = {}
    Error.captureStackTrace(holder)
    console.log(holder.stack)
    require('node:fs').readFile('/none', (error) => console.log(error.stack))`)}`, none))

test('an uncaught error is printed without hops', (t) => same(t, deep("throw new Error('uncaught')"), none))

test('an unhandled rejection is printed without hops', (t) => same(t, deep("Promise.reject(new Error('unhandled'))"), none))

test("a program's own formatter is called as Node calls it", (t) => same(t, `
  Error.prepareStackTrace = function (error, sites) { return [this === Error, error.message, sites.length > 0, Error.prepareStackTrace === arguments.callee, arguments.length] }
  ${deep("console.log(new Error('x').stack, new Error('y').stack)")}`, none))

test('Error.prepareStackTrace is never touched, whatever is traced and queried', async (t) => {
  const found = await answers(t, `
    const original = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')
    const isOriginal = () => { const now = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace'); return Object.keys(original).every((key) => original[key] === now[key]) }
    told.turns = []
    function turn (left) {
      told.turns.push(isOriginal())
      trace.stack(new Error('asked')); trace.chain(); trace.stack(); trace.handles(); trace.doctor()
      told.turns.push(isOriginal())
      if (left > 0) setTimeout(turn, 300, left - 1)
    }
    turn(5)`)
  t.deepEqual(found.turns, Array(12).fill(true))
})

test("trace.chain has the creator's chain, whether or not the error was read before", async (t) => {
  const found = await answers(t, `
    setTimeout(function outer () {
      setTimeout(function maker () {
        const [kept, read] = [new Error('kept'), new Error('read')]
        told.text = read.stack
        told.read = names(read)
        told.asked = trace.stack(read)
        setTimeout(function reader () {
          told.kept = names(kept)
          told.whole = trace.stack(kept)
          told.again = trace.stack(kept) === told.whole
          told.own = kept.stack
        }, 2)
      }, 2)
    }, 1)`)
  const mark = process.env.ENGINE === 'js' ? ' · reader' : '' // the maker is known with the native engine
  t.deepEqual(found.read, [`setTimeout(2) | outer${mark}`, `setTimeout(1) | ${mark}`])
  if (mark === '') t.deepEqual(found.kept, found.read)
  for (const [whole, own] of [[found.whole, found.own], [found.asked, found.text]]) {
    t.notRegex(own, /──/)
    t.is(whole.slice(0, own.length), own, 'head and frames')
    t.deepEqual(split(whole).hops.map(({ title }) => title.split(' · ')[0]), ['setTimeout(2)', 'setTimeout(1)'])
  }
  t.true(found.again)
})

test('the chain is known for a rejection\'s reason, an error of Node and one of the main script', async (t) => {
  const found = await answers(t, `
    const atStart = new Error('start')
    setTimeout(async function work () {
      told.start = names(atStart)
      await require('node:timers/promises').setTimeout(1)
      try { await fail() } catch (error) { told.rejected = names(error) }
      async function fail () { throw new Error('rejected') }
      require('node:net').connect(1, '127.0.0.1').on('error', function refused (error) { told.refused = names(error) })
    }, 1)`)
  t.deepEqual(found.start, [])
  t.true(found.rejected.length > 0)
  t.regex(found.rejected.at(-1), /^setTimeout\(1\)/)
  t.regex(found.refused[0], /^net\.connect\(127\.0\.0\.1:1\) \| work$/)
})

test('values that a formatter returns in place of text stay unchanged', async (t) => {
  const found = await answers(t, `
    let calls = 0
    Error.prepareStackTrace = (error, sites) => { calls++; return sites.map(() => 'frame') }
    setTimeout(function maker () {
      const error = new Error('x')
      told.chain = names(error)
      told.stack = error.stack
      told.calls = calls
    }, 1)`)
  t.regex(found.chain[0], /^setTimeout\(1\)/)
  t.true(found.stack.every((/** @type {string} */ frame) => frame === 'frame'))
  t.is(found.calls, 1)
})

test('a formatter may replace itself, throw, be deleted, or be read-only', async (t) => {
  const found = await answers(t, `
    setTimeout(function maker () {
      const other = () => 'other'
      Error.prepareStackTrace = () => { Error.prepareStackTrace = other; return 'first' }
      told.first = trace.stack(new Error('x')).split('\\n')[0]
      told.stays = Error.prepareStackTrace === other
      Error.prepareStackTrace = () => { throw new TypeError('formatter') }
      try { trace.stack(new Error('x')) } catch (error) { delete Error.prepareStackTrace; told.thrown = error.message }
      told.deleted = [trace.stack(new Error('gone')).includes('── setTimeout(1)'), 'prepareStackTrace' in Error]
      Object.defineProperty(Error, 'prepareStackTrace', { value: undefined, writable: false })
      told.fixed = trace.stack(new Error('fixed')).includes('── setTimeout(1)')
    }, 1)`)
  t.deepEqual(found, { first: 'first', stays: true, thrown: 'formatter', deleted: [true, false], fixed: true })
})

test('a second enable() switches errors off and on', async (t) => {
  const found = await answers(t, `
    const original = Error.prepareStackTrace
    trace.enable()
    const look = () => [new Error('x').stack.includes('── setTimeout'), Error.prepareStackTrace === original, trace.stats().errors, trace.doctor().errors]
    setTimeout(async () => {
      const wait = () => new Promise((resolve) => setTimeout(resolve, 5))
      told.on = look(); await wait()
      trace.enable({ errors: false }); told.off = look(); await wait(); told.later = look()
      trace.enable({ errors: true }); told.again = look(); await wait(); told.stays = look()
      trace.disable(); told.disabled = look()
    }, 1)`, { env: {}, preload: false })
  const [hops, bare] = [[true, false, true, true], [false, true, false, false]]
  t.deepEqual(found, { on: hops, off: bare, later: bare, again: hops, stays: hops, disabled: bare })
})

test('doctor() reports it', async (t) => {
  const found = await answers(t, 'told.doctor = trace.doctor()')
  t.like(found.doctor, { errors: false, formatter: 'Node' })
  t.regex(found.doctor.text, /^errors +unchanged$/m)
  t.regex(found.doctor.notes.join('\n'), /^Error stacks are left as Node makes them \(errors: false\); trace\.stack\(error\) and trace\.chain\(error\) include the hops/m)
})

test('it works with the JavaScript engine', async (t) => {
  const found = await answers(t, `
    setTimeout(function maker () {
      const error = new Error('x')
      setTimeout(() => { told.chain = names(error); told.bare = error.stack.includes('──') }, 1)
    }, 1)`, { env: { ...off, LONGSTACK_CAPTURE: 'js' } })
  t.deepEqual(found, { chain: ['setTimeout(1) | '], bare: false })
})

test('handlers and spans still have the chain', async (t) => {
  const found = await answers(t, `
    trace.onError((error) => { told.handled = [error.stack.includes('──'), trace.stack(error).includes('── setTimeout(1)')]; return true })
    trace.on('span', (span) => { told.span = span.attributes['exception.stacktrace'] ?? JSON.stringify(span) })
    setTimeout(() => {
      try { trace.span('work', () => { throw new Error('in a span') }) } catch {}
      throw new Error('escapes')
    }, 1)`)
  t.deepEqual(found.handled, [false, true])
  t.regex(found.span, /── (trace\.span|setTimeout)/)
})

test('frames are mapped in trace.stack, and not in .stack', async (t) => {
  const { code, map, source } = compile({
    after: `
start((error) => setTimeout(() => {
  const trace = require(${JSON.stringify(root)})
  console.log(trace.stack(error) + '\\n====\\n' + error?.stack)
}, 1))`
  })
  const home = folder({ 'app.ts': source, 'app.js': `${code}\n${inline(map)}` })
  t.teardown(() => fs.rmSync(home, { recursive: true }))
  const { stdout, stderr } = await node(['-r', register, path.join(home, 'app.js')], { env: off })
  t.is(stderr, '')
  const [answer, own] = stdout.split('\n====\n')
  t.true(answer.includes(`app.ts:${place('new Error(job.name)')}`), answer)
  t.true(answer.includes(`app.ts:${place('setImmediate(')}`), answer)
  t.notRegex(own, /app\.ts|──/)
})

test('longstack run --no-errors', async (t) => {
  const home = folder({ 'app.js': "setTimeout(() => console.log(new Error('x').stack.includes('──')), 1)" })
  t.teardown(() => fs.rmSync(home, { recursive: true }))
  const file = path.join(home, 'app.js')
  const { stdout, stderr } = await node([path.join(root, 'lib', 'cli', 'main.js'), 'run', '--no-errors', file])
  t.deepEqual([stdout, stderr], ['false\n', ''])
  t.is((await node(['-r', register, file])).stdout, 'true\n')
})
