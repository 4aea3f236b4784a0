'use strict'

// Wraps methods of Node's where no hook and no channel reports what they do, and puts them back. A wrapper is
// a function where the original can be called with `new`, and a method where it cannot.

const { types } = require('node:util')

const { defineProperty, deleteProperty, getOwnPropertyDescriptor, ownKeys } = Reflect

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
  const attributes = property ?? { writable: true, enumerable: false, configurable: true }
  if (!defineProperty(owner, name, { ...attributes, value })) return undefined
  return () => {
    if (getOwnPropertyDescriptor(owner, name)?.value !== value) return false
    return property === undefined ? deleteProperty(owner, name) : defineProperty(owner, name, property)
  }
}

module.exports = { imitate, wrap }
