'use strict'

const test = require('ava')
const { address, className, hidden, hiddenProperty, inherits, isObject, own } = require('../../lib/objects')

/**
 * An object whose every trap fails the test.
 * @param {import('ava').ExecutionContext} t
 * @param {object} target
 */
function guarded (t, target) {
  const traps = new Proxy({}, { get: (_, trap) => () => t.fail(`the trap ${String(trap)} was called`) })
  return new Proxy(target, traps)
}

test('own reads own data properties, and calls no getter', (t) => {
  const object = Object.create({ inherited: 1 }, { getter: { get () { throw new Error('was called') } }, data: { value: 2 } })
  t.is(own(object, 'data'), 2)
  t.is(own(object, 'getter'), undefined)
  t.is(own(object, 'inherited'), undefined)
})

test('isObject is false for primitives, functions and proxies', (t) => {
  t.true([{}, [], Object.create(null)].every(isObject))
  t.false([null, undefined, 1, 'a', () => {}, guarded(t, {})].some(isObject))
})

test('hidden finds a symbol property by the first description with a value', (t) => {
  const object = { [Symbol('kA')]: undefined, [Symbol('kB')]: 2, kB: 3, get [Symbol('kC')] () { throw new Error('was called') } }
  t.is(hidden(object, 'kB'), 2)
  t.is(hidden(object, 'kA', 'kB'), 2)
  t.is(hidden(object, 'kC'), undefined)
  t.is(hidden(object, 'kD'), undefined)
})

test('hiddenProperty finds the symbol once and reads it of other objects', (t) => {
  const symbol = Symbol('kHandle')
  const read = hiddenProperty('kHandle')
  t.is(read({}), undefined)
  t.is(read({ [symbol]: 1 }), 1)
  t.is(read({ [Symbol('kHandle')]: 3, [symbol]: 2 }), 2)
})

test('inherits follows prototypes, and stops at a proxy', (t) => {
  class Base {}
  class Derived extends Base {}
  Object.defineProperty(Derived, Symbol.hasInstance, { value: () => false })
  t.true(inherits(new Derived(), Derived.prototype))
  t.true(inherits(new Derived(), Base.prototype))
  t.false(inherits(new Base(), Derived.prototype))
  t.false(inherits(Object.create(guarded(t, Base.prototype)), Base.prototype))
})

test('className is the name of the constructor', (t) => {
  class Pool {}
  t.is(className(new Pool()), 'Pool')
  t.is(className([]), 'Array')
  t.is(className(Object.create(null)), undefined)
  t.is(className(new (class {})()), undefined)
  t.is(className(guarded(t, {})), undefined)
  t.is(className(Object.create({ constructor: guarded(t, Pool) })), undefined)
})

test('address puts brackets around IPv6', (t) => {
  t.is(address('::1', 80), '[::1]:80')
  t.is(address('localhost', 80), 'localhost:80')
  t.is(address('localhost', undefined), 'localhost')
  t.is(address(undefined, 80), undefined)
})
