'use strict'

const test = require('ava')
const { wrap } = require('../../lib/wrap')

/** @param {Function} method */
const counting = (method) => {
  let count = 0
  /** @this {unknown} */
  function wrapper (...args) {
    count++
    return Reflect.apply(method, this, args)
  }
  return Object.assign(wrapper, { counted: () => count })
}

test('a wrapper has name, length and attributes of its original, and leaves no trace', (t) => {
  for (const isPlain of [true, false]) {
    const value = function add (a, b) { return this.base + a + b }
    const attributes = { writable: isPlain, enumerable: isPlain, configurable: true }
    const owner = Object.defineProperty({ base: 1 }, 'add', { value, ...attributes })
    const before = Object.getOwnPropertyDescriptor(owner, 'add')
    const unwrap = wrap(owner, 'add', counting)
    const { value: wrapper, ...others } = Object.getOwnPropertyDescriptor(owner, 'add')
    t.deepEqual([wrapper.name, wrapper.length, others], ['add', 2, attributes])
    t.is(owner.add(2, 3), 6)
    t.is(wrapper.counted(), 1)
    t.true(unwrap())
    t.deepEqual(Object.getOwnPropertyDescriptor(owner, 'add'), before)
  }
})

test('an inherited method is wrapped on the object, not enumerable, and inherited again afterwards', (t) => {
  const owner = Object.create({ go () { return 'went' } })
  const unwrap = wrap(owner, 'go', counting)
  t.deepEqual([owner.go(), Object.keys(owner)], ['went', []])
  t.true(unwrap())
  t.deepEqual(Reflect.ownKeys(owner), [])
})

test('a wrapper that is itself wrapped stays', (t) => {
  const owner = { go () { return 'went' } }
  const unwrap = wrap(owner, 'go', counting)
  const inner = owner.go
  owner.go = () => inner()
  t.false(unwrap())
  t.is(owner.go(), 'went')
  owner.go = inner
  t.true(unwrap())
})

test('accessors, frozen methods and other values are not wrapped', (t) => {
  const owner = Object.freeze({ go () {}, value: 1 })
  t.deepEqual(['go', 'value', 'absent'].map((name) => wrap(owner, name, counting)), Array(3).fill(undefined))
  const accessor = { get go () { return t.fail() } }
  t.is(wrap(accessor, 'go', counting), undefined)
})
