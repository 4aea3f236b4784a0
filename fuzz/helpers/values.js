'use strict'

// Values that a program or a library could hand over, odd ones first.

const vm = require('node:vm')
const { fc } = require('./property')

/** Thrown by whatever is hostile here: no fault of longstack's where it is passed on. */
class Hostile extends Error {}

function fail () {
  throw new Hostile('hostile')
}

const everyTrap = Object.getOwnPropertyNames(Reflect)

function revoked () {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

function revokedFunction () {
  const { proxy, revoke } = Proxy.revocable(() => {}, {})
  revoke()
  return proxy
}

function revokedArray () {
  const { proxy, revoke } = Proxy.revocable([], {})
  revoke()
  return proxy
}

const throwingTraps = () => Object.fromEntries(everyTrap.map((trap) => [trap, fail]))

function cyclic () {
  /** @type {any} */
  const object = { list: [] }
  object.self = object
  object.list.push(object, object.list)
  return object
}

function throwingGetters () {
  const names = [
    'message', 'stack', 'name', 'constructor', 'then', 'length', 'filter', 'frames', 'toString', 'asyncId',
    'socket', 'cause', 'code', 'errors', 'handle', '_handle', Symbol.toStringTag, Symbol.toPrimitive,
    Symbol.iterator
  ]
  const getters = names.map((name) => [name, { get: fail, enumerable: true }])
  return Object.defineProperties({}, Object.fromEntries(getters))
}

/** Makers of odd values by name; the name is what a finding prints. @type {Record<string, () => any>} */
const makers = {
  undefined: () => undefined,
  null: () => null,
  true: () => true,
  'empty text': () => '',
  'long text': () => 'x'.repeat(100_000),
  'lone surrogate': () => 'a\ud800b',
  escapes: () => '\x1b[31m\u0000\u009b\u202e<script>alert(1)</script>\r\n    at forged (x.js:1:1)',
  NaN: () => NaN,
  Infinity: () => Infinity,
  '-0': () => -0,
  '2**31': () => 2 ** 31,
  '2**53': () => 2 ** 53,
  '-1.5': () => -1.5,
  bigint: () => 10n ** 30n,
  symbol: () => Symbol('symbol'),
  'registered symbol': () => Symbol.for('registered'),
  object: () => ({}),
  'null prototype': () => Object.create(null),
  frozen: () => Object.freeze({ frames: 3 }),
  cyclic,
  array: () => [],
  'sparse array': () => [, , 'TCP'], // eslint-disable-line no-sparse-arrays
  'long array': () => new Array(1000).fill('TCP'),
  function: () => () => {},
  class: () => class {},
  'bound function': () => fail.bind(null),
  'throwing function': () => fail,
  'async function': () => async () => {},
  generator: () => function * () {},
  error: () => new Error('error'),
  'error without a stack': () => Object.defineProperty(new Error('x'), 'stack', { value: undefined }),
  'error of another realm': () => vm.runInNewContext('new TypeError("foreign")'),
  'object of another realm': () => vm.runInNewContext('({ frames: 3 })'),
  'array of another realm': () => vm.runInNewContext('["TCP"]'),
  promise: () => Promise.resolve(),
  'pending promise': () => new Promise(() => {}),
  thenable: () => ({ then: (/** @type {Function} */ resolve) => resolve(1) }),
  'throwing thenable': () => Object.defineProperty({}, 'then', { get: fail }),
  date: () => new Date(NaN),
  regexp: () => /x/g,
  map: () => new Map([[{}, 1]]),
  'weak map': () => new WeakMap(),
  buffer: () => Buffer.alloc(10),
  'typed array': () => new Float64Array(3),
  'shared memory': () => new SharedArrayBuffer(8),
  'detached buffer': () => {
    const buffer = new ArrayBuffer(8)
    structuredClone(buffer, { transfer: [buffer] })
    return buffer
  },
  proxy: () => new Proxy({}, {}),
  'throwing proxy': () => new Proxy({}, throwingTraps()),
  'throwing function proxy': () => new Proxy(() => {}, throwingTraps()),
  'throwing array proxy': () => new Proxy([], throwingTraps()),
  'throwing error proxy': () => new Proxy(new Error('x'), throwingTraps()),
  revoked,
  revokedFunction,
  revokedArray,
  'throwing getters': throwingGetters,
  'throwing getters above': () => Object.create(throwingGetters()),
  'throwing toString': () => ({ toString: fail, valueOf: fail, toJSON: fail }),
  'boxed text': () => Object('TCP'),
  'boxed number': () => Object(3),
  global: () => globalThis,
  process: () => process,
  arguments: (...args) => { return (function () { return arguments })(...args) }
}

/**
 * Wraps a value, so that a finding prints its name.
 * @param {string} name
 * @param {() => any} make
 */
const labelled = (name, make) => ({ make, [fc.toStringMethod]: () => name })

/**
 * Arbitrary of { make(): any }: odd values by name, or any plain value.
 * @param {string[]} [except] names
 */
function anything (except = []) {
  const names = Object.keys(makers).filter((name) => !except.includes(name))
  const odd = fc.constantFrom(...names).map((name) => labelled(name, makers[name]))
  const plain = fc.anything({ withBigInt: true, withNullPrototype: true, withTypedArray: true })
    .map((value) => labelled(fc.stringify(value), () => value))
  return fc.oneof({ arbitrary: odd, weight: 3 }, { arbitrary: plain, weight: 1 })
}

/** @param {unknown} error @returns {boolean} whether a hostile value threw it itself */
function isHostile (error) {
  return error instanceof Hostile
}

module.exports = { anything, fail, isHostile, makers }
