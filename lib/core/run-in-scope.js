'use strict'

// Runs a function of the program inside of the scope, in a resource of its own.

const { AsyncResource } = require('node:async_hooks')
const guard = require('./guard')
const { enterResource } = require('./installer')
const records = require('./records')
const scope = require('./scope')
const { ensureHeadroom } = require('../stacks/stack-headroom')

const HEADROOM_KB = 64 // of stack, for what begins and ends a callback

/**
 * @template T
 * @param {() => T} fn
 * @returns {T}
 */
function runInScope (fn) {
  if (!scope.isOn() || guard.inOwnWork) return fn()
  // Node aborts where an AsyncResource finds no stack left (node#19859 and src/api/callback.cc)
  ensureHeadroom(HEADROOM_KB)
  scope.enterNext()
  const resource = new AsyncResource('TraceScope')
  if (records.findResource(resource.asyncId()) === undefined) return fn()
  const leave = enterResource(resource)
  try {
    return fn()
  } finally {
    leave()
  }
}

module.exports = { runInScope }
