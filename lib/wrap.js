'use strict'

// Wraps methods of Node's where no hook and no channel reports what they do, and puts them back. A wrapper is
// a function where the original can be called with `new`, and a method where it cannot.

const { types } = require('node:util')

const { apply, construct, defineProperty, deleteProperty, getOwnPropertyDescriptor, ownKeys } = Reflect

/** by wrappers @type {WeakMap<Function, Function>} */
const originals = new WeakMap()

/** Returns the method in a wrapper; any other function itself. @param {Function} method */
const originalOf = (method) => originals.get(method) ?? method

/** @param {unknown} value whether it is a method that is wrapped */
const isWrapper = (value) => typeof value === 'function' && originals.has(value)

/**
 * Gives a function that replaces another one the same properties: name, length, and what else the other has.
 * A prototype it has of its own, whose `constructor` it is.
 * @template {Function} F
 * @param {F} wrapper
 * @param {Function} original
 * @returns {F}
 */
function imitate (wrapper, original) {
  for (const key of types.isProxy(original) ? [] : ownKeys(original)) {
    const property = key === 'prototype' ? undefined : getOwnPropertyDescriptor(original, key)
    if (property !== undefined) defineProperty(wrapper, key, property)
  }
  return wrapper
}

/**
 * Wraps a method. The property keeps its attributes; where it is inherited, it is not enumerable.
 * @param {any} owner
 * @param {string} name
 * @param {(method: any) => Function} make returns the wrapper
 * @returns {(() => boolean) | undefined} puts the method back, and returns whether it did: a wrapper that was
 *   wrapped in turn stays. undefined: the method cannot be wrapped
 */
function wrap (owner, name, make) {
  const property = getOwnPropertyDescriptor(owner, name)
  const method = property === undefined ? owner[name] : property.value
  if (typeof method !== 'function') return undefined
  const value = imitate(make(method), method)
  originals.set(value, method)
  const attributes = property ?? { writable: true, enumerable: false, configurable: true }
  if (!defineProperty(owner, name, { ...attributes, value })) return undefined
  return () => {
    if (getOwnPropertyDescriptor(owner, name)?.value !== value) return false
    return property === undefined ? deleteProperty(owner, name) : defineProperty(owner, name, property)
  }
}

/**
 * Wraps methods that several owners have as their own; where they are one function, so is their wrapper.
 * @param {object[]} owners
 * @param {string[]} names
 * @param {(self: any, first: any, wrapper: Function) => void} before called before it, with the first of its
 *   arguments; may throw
 * @param {(self: any) => void} [done] called when it has returned; may throw
 * @returns {() => void} puts all back
 */
function wrapAll (owners, names, before, done) {
  /** @type {Map<Function, Function>} */
  const wrappers = new Map()
  const make = (/** @type {Function} */ method) => {
    const wrapper = wrappers.get(method) ?? around(method, before, done)
    wrappers.set(method, wrapper)
    return wrapper
  }
  const unwraps = owners.flatMap((owner) => names.map((name) => {
    return getOwnPropertyDescriptor(owner, name) === undefined ? undefined : wrap(owner, name, make)
  }))
  return () => { for (const unwrap of unwraps) unwrap?.() }
}

/**
 * @param {Function} method
 * @param {(self: any, first: any, wrapper: Function) => void} before
 * @param {((self: any) => void) | undefined} done
 * @returns {Function} a constructor, if the method is one
 */
function around (method, before, done) {
  /** @param {any} self @param {IArguments} args */
  function finish (self, args) {
    const result = apply(method, self, args)
    try {
      done?.(self)
    } catch {}
    return result
  }
  // V8 passes arguments on without making an object of them, where nothing else uses that
  /** @this {unknown} @param {unknown} first */
  function constructible (first) {
    if (new.target !== undefined) {
      return construct(method, arguments, new.target === constructible ? method : new.target)
    }
    try {
      before(this, first, constructible)
    } catch {} // the stack may be full
    return done === undefined ? apply(method, this, arguments) : finish(this, arguments)
  }
  if (getOwnPropertyDescriptor(method, 'prototype') !== undefined) return constructible
  const { plain } = {
    /** @this {unknown} @param {unknown} first */
    plain (first) {
      try {
        before(this, first, plain)
      } catch {}
      return done === undefined ? apply(method, this, arguments) : finish(this, arguments)
    }
  }
  return plain
}

module.exports = { imitate, isWrapper, originalOf, wrap, wrapAll }
