'use strict'

// Wraps and unwraps methods of Node for operations that no hook or channel reports. The wrapper is a
// constructor if the original is one, and a method otherwise.

const { types } = require('node:util')

const { apply, construct, defineProperty, deleteProperty, getOwnPropertyDescriptor, ownKeys } = Reflect

/** originals by wrapper @type {WeakMap<Function, Function>} */
const originals = new WeakMap()

/** Returns the original of a wrapper, or the function itself. @param {Function} method */
const originalOf = (method) => originals.get(method) ?? method

/** @param {unknown} value returns whether it is a wrapped method */
const isWrapper = (value) => typeof value === 'function' && originals.has(value)

/**
 * Copies a function's properties to its replacement: name, length, and all others except `prototype`. A
 * replacement that is a constructor keeps its own prototype.
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
 * Wraps a method. The property keeps its attributes; the wrapper of an inherited method is not enumerable.
 * @param {any} owner
 * @param {string} name
 * @param {(method: any) => Function} make returns the wrapper
 * @returns {(() => boolean) | undefined} unwraps and returns true, or returns false if the wrapper itself was
 *   wrapped; undefined: the method cannot be wrapped
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
 * Wraps own methods of several owners; methods that are the same function share a wrapper.
 * @param {object[]} owners
 * @param {string[]} names
 * @param {(self: any, first: any, wrapper: Function) => void} before called before the method, with its first
 *   argument; may throw
 * @param {(self: any) => void} [done] called when it has returned; may throw
 * @returns {() => void} unwraps all
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
  // V8 forwards `arguments` without allocating an object, if there is no other use of it
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
