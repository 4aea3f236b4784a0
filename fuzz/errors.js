'use strict'

// Errors as nobody expects them, made, rejected with and read with and without longstack: the program gets
// the same object with the same properties, the same text with hops behind it, and none of its getters runs
// more often. What the public object tells of them is plain data.

const { inspect } = require('node:util')
const vm = require('node:vm')
const trace = require('..')
const { expectHarmless, mustThrowCode } = require('./helpers/expectations')
const { fail, makers: oddValues } = require('./helpers/values')
const { check, fc } = require('./helpers/property')

const BATCH = 20

/** getters of an error that ran */
let calls = 0
const context = vm.createContext({})

/** @param {unknown} value */
const counting = (value) => ({ get () { calls++; return value }, configurable: true })

class Formatted extends Error {
  get message () { calls++; return 'from a getter' }
  toString () { calls++; return 'own text' }
}
class OwnStack extends Error {
  get stack () { calls++; return 'own stack' }
}
class Silent extends Error {
  [inspect.custom] () { return 'inspected' }
}

/** What is done to an error, by name. @type {Record<string, (error: any) => any>} */
const changes = {
  none: (error) => error,
  frozen: Object.freeze,
  sealed: Object.seal,
  'not extensible': Object.preventExtensions,
  'null prototype': (error) => Object.setPrototypeOf(error, null),
  'another prototype': (error) => Object.setPrototypeOf(error, { name: 'Mine' }),
  'prototype that is a proxy': (error) => Object.setPrototypeOf(error, new Proxy(Error.prototype, {})),
  proxy: (error) => new Proxy(error, {}),
  'throwing proxy': (error) => new Proxy(error, {
    get: fail,
    getOwnPropertyDescriptor: fail,
    getPrototypeOf: fail
  }),
  revoked: (error) => {
    const { proxy, revoke } = Proxy.revocable(error, {})
    revoke()
    return proxy
  },
  'counting getters': (error) => Object.defineProperties(error, {
    message: counting('counted'),
    name: counting('Counted'),
    code: counting('E'),
    cause: counting(1),
    syscall: counting('open')
  }),
  'throwing getters': (error) => Object.defineProperties(error, {
    message: { get: fail },
    name: { get: fail },
    cause: { get: fail },
    errors: { get: fail },
    syscall: { get: fail },
    address: { get: fail }
  }),
  'cyclic cause': (error) => Object.assign(error, { cause: error, errors: [error] }),
  'cause that is odd': (error) => Object.assign(error, { cause: oddValues.revoked() }),
  'no stack': (error) => Object.defineProperty(error, 'stack', { value: undefined }),
  'stack that is a number': (error) => Object.defineProperty(error, 'stack', { value: 7 }),
  'stack that throws': (error) => Object.defineProperty(error, 'stack', { get: fail }),
  'huge stack': (error) => Object.assign(error,
    { stack: `Error: x\n${'    at x (y.js:1:1)\n'.repeat(20_000)}` }),
  'stack with escapes': (error) => Object.assign(error,
    { stack: 'E\x1b[2J\u202e\n    at \x1b]0;x\x07 (\u009b:1:1)' }),
  'captured again': (error) => {
    Error.captureStackTrace(error)
    return error
  },
  'fields of a system call': (error) => Object.assign(error, {
    syscall: 'open',
    code: 'ENOENT',
    path: '\x1b[2J',
    errno: -2,
    port: {},
    address: Symbol('a')
  })
}

/** Makers of errors, by name. @type {Record<string, (message: string) => any>} */
const kinds = {
  Error: (message) => new Error(message),
  TypeError: (message) => new TypeError(message, { cause: new Error('inner') }),
  AggregateError: (message) => new AggregateError([new Error('a'), 1, null], message),
  Formatted: () => new Formatted(),
  OwnStack: (message) => new OwnStack(message),
  Silent: (message) => new Silent(message),
  'of another realm': (message) => vm.runInContext(`new RangeError(${JSON.stringify(message)})`, context),
  DOMException: (message) => new DOMException(message, 'AbortError'),
  'like an error': (message) => Object.create(Error.prototype, { message: { value: message } }),
  'of an error': (message) => Object.create(new Error(message)),
  'made by Reflect': (message) => Reflect.construct(Error, [message], Object),
  'of V8': () => {
    try {
      return /** @type {any} */ (null).x
    } catch (error) {
      return error
    }
  }
}

/** @param {() => any} read */
function outcome (read) {
  try {
    return read()
  } catch (error) {
    return `thrown: ${/** @type {any} */ (error)?.message}`
  }
}

/** @param {any} error @returns {string} its properties, the text of the stack aside */
function propertiesOf (error) {
  return outcome(() => Reflect.ownKeys(error).map((key) => {
    const {
      value, get, set,
      ...flags
    } = /** @type {PropertyDescriptor} */ (Reflect.getOwnPropertyDescriptor(error, key))
    return `${String(key)} ${typeof value} ${typeof get} ${typeof set} ${JSON.stringify(flags)}`
  }).join('\n') + Object.isFrozen(error))
}

/**
 * Makes an error, passes it around and reads it, as a program.
 * @param {{ kind: string, change: string, message: string }} drawn
 * @param {boolean} isTraced asks longstack, too
 */
async function live ({ kind, change, message }, isTraced) {
  await new Promise((resolve) => setTimeout(resolve, 0))
  const error = outcome(() => changes[change](kinds[kind](message)))
  calls = 0
  const before = propertiesOf(error)
  const caught = await Promise.reject(error).then(() => [],
    (reason) => [reason]) // no thenable is resolved with
  if (caught[0] !== error) throw new Error('another object was caught')
  const early = calls
  const stack = outcome(() => error.stack)
  const again = outcome(() => error.stack)
  const after = propertiesOf(error)
  const seen = calls
  if (isTraced) ask(error)
  return {
    before,
    after,
    early,
    seen,
    stack,
    isStable: Object.is(stack, again),
    isFrom: propertiesOf(error) === after,
    asked: calls - seen,
    error
  }
}

/** @param {any} error */
function ask (error) {
  const chain = mustThrowCode(() => trace.chain(error), { allowsHostile: true })
  if (chain !== undefined) {
    JSON.parse(JSON.stringify(chain))
    expectHarmless('a chain', inspect(chain))
  }
  mustThrowCode(() => trace.why(error), { allowsHostile: true })
}

/** @param {any} drawn */
async function compare (drawn) {
  trace.disable()
  const bare = await live(drawn, false)
  trace.enable()
  const traced = await live(drawn, true)
  for (const name of /** @type {const} */ (['before', 'after', 'early', 'isStable'])) {
    if (bare[name] !== traced[name]) throw new Error(`${name}: ${traced[name]}, bare ${bare[name]}`)
  }
  if (!traced.isFrom) throw new Error('a query changed the error')
  if (traced.seen > bare.seen) throw new Error(`getters ran ${traced.seen} times, bare ${bare.seen}`)
  expectText(traced.stack, bare.stack)
}

/** @param {any} actual @param {any} bare */
function expectText (actual, bare) {
  if (typeof actual !== typeof bare) throw new Error(`the stack is ${typeof actual}, bare ${typeof bare}`)
  if (typeof bare !== 'string') return
  // Frames of callers differ in where this file called.
  // V8 of Node 26 loses the `new` of DOMException for some hundred errors while it compiles that.
  const plain = (/** @type {string} */ text) =>
    text.replaceAll(/errors\.js:\d+:\d+/g, 'errors.js').replaceAll('at new DOMException', 'at DOMException')
  const hops = plain(actual).slice(plain(bare).length)
  if (!plain(actual).startsWith(plain(bare))) throw new Error(`other text\n${actual}\nbare\n${bare}`)
  if (hops !== '' &&
    !hops.startsWith('\n  ── ')) throw new Error(`what follows is no hop: ${hops.slice(0, 200)}`)
  expectHarmless('a hop', hops)
}

/** @type {import('./helpers/targets').Target} */
module.exports = {
  name: 'errors',
  async run (settings) {
    const message = fc.oneof(fc.string(), fc.constantFrom('', 'two\n    at lines (x.js:1:1)',
      '\x1b[2J\u202e', 'x'.repeat(100_000), '\ud800'))
    const drawn = fc.record({
      kind: fc.constantFrom(...Object.keys(kinds)),
      change: fc.constantFrom(...Object.keys(changes)),
      message
    })
    const remove = trace.on('warning', () => {})
    try {
      return await check(fc.asyncProperty(drawn, compare), settings, BATCH)
    } finally {
      remove()
      trace.disable()
    }
  }
}
