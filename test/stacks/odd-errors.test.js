'use strict'

// Unusual errors and limits: a program sees the same with and without
// longstack.

const path = require('node:path')
const test = require('ava')
const { same } = require('../helpers/both')
const { program, root } = require('../helpers/run')

const some = { hops: (/** @type {number} */ count) => count > 0 }
const none = { hops: (/** @type {number} */ count) => count === 0 }

/** Runs the body two timers deep. @param {string} body */
const deep = (body) => `setTimeout(() => setTimeout(() => { ${body} }, 1), 1)`

for (const [name, set] of Object.entries({
  0: 'Error.stackTraceLimit = 0',
  deleted: 'delete Error.stackTraceLimit',
  "'x'": "Error.stackTraceLimit = 'x'",
  NaN: 'Error.stackTraceLimit = NaN',
  '-1': 'Error.stackTraceLimit = -1',
  undefined: 'Error.stackTraceLimit = undefined',
  'an accessor': `Object.defineProperty(Error, 'stackTraceLimit', {
    get () { console.log('get'); return 5 }, set () { console.log('set') }, configurable: true, enumerable: true
  })`
})) {
  test(`a stackTraceLimit that is ${name}`, (t) => same(t, `
    ${set}
    ${deep(`
      const error = new Error('x')
      console.log(typeof error.stack, error.stack, Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit'))
      setTimeout(() => console.log(Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit'), Object.keys(Error)), 1)`)}`, none))
}

for (const value of ['1', '3', '200', 'Infinity']) {
  test(`a stackTraceLimit of ${value}`, (t) => same(t, `
    Error.stackTraceLimit = ${value}
    const dig = (n) => n === 0 ? new Error('x') : dig(n - 1)
    ${deep("console.log(dig(50).stack, Error.stackTraceLimit); console.log(Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit'))")}`, Number(value) < 10 ? none : some))
}

test('a lowered stackTraceLimit also limits the frames of hops', async (t) => {
  const { stdout, stderr } = await program(`
    const lines = (limit) => {
      Error.stackTraceLimit = limit
      const { stack } = new Error('x')
      Error.stackTraceLimit = 10
      return stack.split('\\n').slice(1)
    }
    const one = () => setTimeout(function two () {
      setTimeout(() => console.log(JSON.stringify([1, 2, 3, 4, 5, 9, 10, 50].map(lines))), 1)
    }, 1)
    one()`)
  for (const [i, lines] of JSON.parse(stdout).entries()) {
    const limit = [1, 2, 3, 4, 5, 9, 10, 50][i]
    const frames = lines.filter((/** @type {string} */ line) => line.startsWith('    at ')).length
    if (limit < 10) t.true(frames <= limit, stderr)
    t.is(lines.length > frames, limit > 5, lines.join('\n')) // V8's own frames are five
    t.notRegex(lines.at(-1), /──/)
  }
})

test('a stackTraceLimit that cannot be written', (t) => same(t, `
  Object.defineProperty(Error, 'stackTraceLimit', { value: 9, writable: false, configurable: false })
  ${deep("console.log(new Error('x').stack)")}`, some))

const fixed = (/** @type {string} */ more) => `Object.defineProperty(Error, 'stackTraceLimit', { value: 4, writable: false, ${more} })`
const dug = `
  const dig = (n) => n === 0 ? new Error('x') : dig(n - 1)
  const show = () => console.log(dig(1).stack, dig(9).stack, Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit'))
  const caught = () => Promise.reject(new Error('rejected')).catch((error) => console.log(error.stack))
  setTimeout(() => { show(); caught(); setTimeout(show, 1) }, 1)`
const early = { NODE_OPTIONS: `-r ${path.join(__dirname, '..', 'fixtures', 'read-only-limit.js')}` }

test('a stackTraceLimit that is read-only before longstack is enabled', (t) => same(t, dug, { env: early }))
test('a stackTraceLimit that is made read-only later', (t) => same(t, `${fixed('')}; ${dug}`))
test('a stackTraceLimit that is made read-only for good', (t) => same(t, `${fixed('configurable: false')}; ${dug}`))
test('a stackTraceLimit that is read-only, in the JavaScript engine', (t) => same(t, `${fixed('')}; ${dug}`, { env: { LONGSTACK_CAPTURE: 'js' } }))

test('with a read-only stackTraceLimit, hops have all their frames', async (t) => {
  const { stdout, stderr } = await program(`${fixed('')}
    const trace = require(${JSON.stringify(root)})
    const arm = (n) => n === 0 ? setTimeout(() => console.log(trace.chain()[0].frames.length, Error.stackTraceLimit), 1) : arm(n - 1)
    arm(7)`)
  t.is(stderr, '')
  t.is(stdout, '9 4\n')
})

test('frozen and sealed errors', (t) => same(t, `
  ${deep(`
    const a = Object.freeze(new Error('a')), b = Object.seal(new TypeError('b')), c = Object.preventExtensions(new Error('c'))
    console.log(a.stack, b.stack, c.stack, Object.isFrozen(a))`)}`, some))

test('keys, symbols and descriptors of an error', (t) => same(t, `
  ${deep(`
    const error = new Error('x', { cause: 1 })
    error.code = 'E'
    error.stack
    console.log(Reflect.ownKeys(error), Object.keys(error), JSON.stringify(error), Object.getOwnPropertyNames(Object.getOwnPropertyDescriptor(error, 'stack')))
    error.stack = 'mine'
    console.log(error.stack)`)}`, none))

test('errors of vm contexts', (t) => same(t, `
  const vm = require('node:vm')
  const context = vm.createContext({ console, setTimeout })
  vm.runInContext("function make () { return new Error('inside') }", context, 'inside.js')
  vm.runInContext("Error.prepareStackTrace = (error, sites) => [error.message, sites.length > 0]", vm.createContext({}), 'other.js')
  ${deep(`
    console.log(context.make().stack)
    const other = vm.createContext({})
    vm.runInContext("Error.prepareStackTrace = (error, sites) => [error.message, sites.length > 0]; var error = new Error('formatted')", other)
    console.log(other.error.stack)
    vm.runInContext("setTimeout(() => console.log(make().stack), 1)", context, 'later.js')`)}`))

test('proxies of errors run only the traps that the program causes', (t) => same(t, `
  const traps = []
  const handler = new Proxy({}, {
    get: (_, name) => (...args) => { traps.push(name + ' ' + (typeof args[1] === 'symbol' ? 'symbol' : String(args[1]))); return Reflect[name](...args) }
  })
  ${deep(`
    const proxy = new Proxy(new Error('x'), handler)
    console.log(proxy.stack)
    Promise.reject(proxy).catch((caught) => { console.log(caught === proxy, caught.message); setTimeout(() => console.log(traps), 5) })
    setTimeout(() => { try { throw proxy } catch (error) { String(error); console.log(error.stack) } }, 1)`)}`))

test('captureStackTrace works on plain objects, functions and frozen objects', (t) => same(t, `
  ${deep(`
    const plain = {}
    Error.captureStackTrace(plain)
    console.log(plain.stack, Object.keys(plain))
    function hide () { const own = {}; Error.captureStackTrace(own, hide); return own }
    console.log(hide().stack)
    const named = { name: 'Named', message: 'm', toString: () => 'text' }
    Error.captureStackTrace(named)
    console.log(named.stack)
    const fn = () => {}
    Error.captureStackTrace(fn)
    console.log(typeof fn.stack)
    try { Error.captureStackTrace(Object.freeze({})) } catch (error) { console.log(error.message) }
    try { Error.captureStackTrace(1) } catch (error) { console.log(error.message) }`)}`))

test('classes, names and messages may change before and after', (t) => same(t, `
  class Own extends Error { constructor (message) { super(message); this.name = 'Renamed' } }
  class Plain extends TypeError {}
  class Getter extends Error { get name () { return 'Got' } get message () { return 'from getter' } }
  class Throws extends Error { get message () { throw new Error('no') } }
  class Stack extends Error { get stack () { return 'a getter of the program' } }
  class Field extends Error { stack = 'a field of the program' }
  ${deep(`
    console.log(new Own('a').stack, new Plain('b').stack, new Getter().stack)
    const changed = new Error('before'); changed.message = 'after'; changed.name = 'Other'; console.log(changed.stack)
    console.log(new Stack('x').stack, new Field('y').stack)
    try { console.log(new Throws().stack) } catch (error) { console.log('thrown', error.message) }
    const noName = new Error('z'); noName.name = ''; console.log(noName.stack)
    const odd = Object.defineProperty(new Error('q'), 'name', { get () { return Symbol('s') } })
    try { console.log(odd.stack) } catch (error) { console.log('thrown', error.message) }
    const multi = new Error('two\\n    at lines (fake.js:1:1)'); console.log(multi.stack)`)}`, some))

test('an error whose prototype changed, and objects that look like errors', (t) => same(t, `
  ${deep(`
    console.log(Object.setPrototypeOf(new Error('a'), null).stack, Object.setPrototypeOf(new Error('b'), { name: 'Mine' }).stack)
    const like = Object.create(Error.prototype); console.log(like.stack, Object.create(new Error('c')).stack)
    console.log(Error('called').stack, Reflect.construct(Error, ['r'], Object).stack)`)}`))

test('inspect of errors, causes, aggregates and errors within data', (t) => same(t, `
  const { inspect } = require('node:util')
  const cause = () => new TypeError('cause')
  ${deep(`
    const inner = cause()
    const outer = new Error('outer')
    outer.code = 'E_OUTER'
    console.log(outer)
    console.log(inspect({ deep: { outer } }, { compact: false }))
    console.log([outer, inner])
    console.error(new RangeError('to stderr'))
    console.log('%s %o', 'formatted', 1, new Error('as an argument'))`)}`, some))

test('console.error(err) in a timer', (t) => same(t, deep("console.error(new Error('printed'))"), some))

test('DOMException and its relatives', (t) => same(t, `
  ${deep(`
    const error = new DOMException('m', 'AbortError')
    console.log(error.stack, error.name, error.code, Object.keys(error))
    const { signal } = AbortSignal.abort ? { signal: AbortSignal.abort() } : {}
    console.log(signal.reason.stack)
    try { structuredClone(() => {}) } catch (clone) { console.log(clone.name, clone.stack) }
    const cloned = structuredClone(new Error('cloned')); console.log(cloned.message, cloned instanceof Error)`)}`))

test('an error of a stack overflow', (t) => same(t, `
  const dive = () => dive() + 1
  ${deep('try { dive() } catch (error) { console.log(error.name, error.message, error.stack) }')}`, some))

test('errors of JSON, regular expressions, eval and new Function', (t) => same(t, `
  ${deep(`
    const evil = [() => eval('throw new Error("in eval")'), () => new Function('throw new Error("in function")')(), () => eval('}')]
    for (const run of [() => JSON.parse('{'), () => new RegExp('['), () => null.x, ...evil]) {
      try { run() } catch (error) { console.log(error.stack) }
    }`)}`, some))

test('causes and members of an AggregateError keep their own stacks', async (t) => {
  const { hops } = await same(t, `
    setTimeout(() => {
      const cause = Object.assign(new TypeError('cause'), { code: 'E_CAUSE' })
      setTimeout(() => {
        console.log(Object.assign(new Error('outer', { cause }), { code: 'E_OUTER' }))
        console.log(new AggregateError([new Error('one'), new RangeError('two'), 'three'], 'all'))
      }, 2)
    }, 1)`, some)
  t.true(hops >= 1 + 2 + 3 * 2, `${hops} hops: each stack has its chain`)
})

for (const [name, source] of Object.entries({
  'an error thrown in a timer': deep("throw new Error('x')"),
  'a thrown string': deep("throw 'text'"),
  'a thrown null': deep('throw null'),
  'a thrown frozen error': deep("throw Object.freeze(new Error('x'))"),
  'a thrown plain object with a stack': deep("throw { stack: 'Mine: all mine' }"),
  'an unhandled rejection': deep("Promise.reject(new Error('x'))"),
  'an unhandled rejection without an error': deep('Promise.reject(7)'),
  'an error event': deep("new (require('node:events'))().emit('error', new Error('x'))"),
  'a syntax error in a required file': deep("require('node:vm').runInThisContext('let let', 'bad.js')"),
  'a failed assertion': deep("require('node:assert').strictEqual(1, 2)"),
  'an error with a code and a cause': deep("throw Object.assign(new Error('x', { cause: 'why' }), { code: 'E' })")
})) {
  test(`what Node prints of ${name}`, async (t) => {
    const { bare } = await same(t, source)
    t.not(bare.code, 0)
  })
}
