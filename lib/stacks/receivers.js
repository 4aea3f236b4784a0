'use strict'

// Checks whether a method of an object created an error. In strict code V8 hides the receiver of a call, but
// names the call after the receiver's property that holds the function (CallSiteInfo::GetMethodName in
// src/objects/call-site-info.cc). So the name changes while the receiver has the function under another name.

const { own } = require('../objects')
const { originalOf } = require('../wrap')
const { afterLast } = require('./text-scan')

const { isProxy } = require('node:util').types
const { defineProperty, deleteProperty, getOwnPropertyDescriptor, getPrototypeOf, isExtensible } = Reflect

const MAX_SITES = 3 // from the error's creation up to the method
const SECOND = 'longstack.receiver'

/**
 * Whether a method of an object created an error, directly or in a function it called in the same file.
 * @param {NodeJS.CallSite[]} sites of the error
 * @param {object} object
 */
function isMadeOn (sites, object) {
  if (isProxy(object) || !isExtensible(object)) return false
  const file = sites[0]?.getFileName()
  for (let i = 0; i < MAX_SITES && i < sites.length && sites[i].getFileName() === file; i++) {
    const name = nameOf(sites[i])
    let owner = name === undefined ? null : /** @type {object | null} */ (object)
    for (; owner !== null && !isProxy(owner); owner = getPrototypeOf(owner)) {
      const method = own(owner, /** @type {string} */ (name))
      if (typeof method !== 'function') continue
      if (isCalledOn(sites[i], String(name), originalOf(method), object)) return true
    }
  }
  return false
}

/** @param {NodeJS.CallSite} site @returns {string | undefined} undefined if the stack was text */
function nameOf (site) {
  if (typeof site.getMethodName !== 'function') return undefined
  const name = site.getMethodName() ?? site.getFunctionName()
  return name === null ? undefined : afterLast(name, '.')
}

/**
 * Whether a call site is a call of a method on an object. The object is always restored: no program code
 * runs, and V8 terminates code only at loops and at the entry of JavaScript functions.
 * @param {NodeJS.CallSite} site
 * @param {string} name of the method
 * @param {Function} method
 * @param {object} object
 */
function isCalledOn (site, name, method, object) {
  const slot = getOwnPropertyDescriptor(object, name)
  if (slot !== undefined && !slot.configurable) return false
  const named = { value: method, writable: true, enumerable: true, configurable: true }
  const hidden = { value: undefined, writable: true, enumerable: true, configurable: true }
  const before = site.getMethodName()
  try {
    defineProperty(object, name, named)
    if (site.getMethodName() !== before) return true
    defineProperty(object, name, hidden)
    defineProperty(object, SECOND, named)
    return site.getMethodName() !== before
  } finally {
    deleteProperty(object, SECOND)
    if (slot === undefined) deleteProperty(object, name)
    else defineProperty(object, name, slot)
  }
}

module.exports = { isMadeOn }
