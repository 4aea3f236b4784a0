'use strict'

// Calls the hooks of users and of other addons around the functions that record a step, while there are any.
// During that time async_hooks reports promises and gives them ids.

const { executionAsyncResource } = require('node:async_hooks')
const { now } = require('../core/clock')
const guard = require('../core/guard')
const records = require('../core/records')
const { contextAt, contextOfId } = require('../core/context')
const { createTag } = require('../core/tag')
const { CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_REF, current } = require('../core/current')
const { afterResource, beforeResource, initResource } = require('../core/events')
const { failed, safely } = require('../core/faults')
const { wrapHooks } = require('../core/installer')
const native = require('./native-hooks')

const { CHAIN, FLAGS, PASSED, FIRST_CHAIN } = records

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('node:async_hooks').AsyncResource} AsyncResource
 * @typedef {import('./native-hooks').Stage} Stage
 *
 * @typedef {object} Hook functions that never throw
 * @property {(context: Context) => void} [init]
 * @property {(context: Context) => void} [before]
 * @property {(context: Context) => void} [after]
 */

/**
 * Context of a resource, kept while user hooks listen.
 * @type {ReturnType<typeof createTag<Context>>}
 */
const resourceTag = createTag()

/** user hooks in order; replaced, never mutated @type {Hook[]} */
let listeners = []

/** @param {number} asyncId @param {string} type @param {number} trigger @param {any} resource */
function init (asyncId, type, trigger, resource) {
  initResource(asyncId, type, trigger, resource)
  if (!guard.inOwnWork) reportInit(asyncId, resource)
}

/** @param {number} asyncId @param {object} resource */
function reportInit (asyncId, resource) {
  try {
    if (!isSelected(asyncId)) return
    const context = contextOfId(asyncId)
    if (context === undefined) return
    resourceTag.write(resource, context)
    report('init', context)
  } catch (error) {
    failed(error)
  }
}

/** @param {object} resource @param {'before' | 'after'} stage */
function reportCallback (resource, stage) {
  try {
    if (guard.inOwnWork) return
    // A resource recorded before there were hooks has no tag
    const context = resourceTag.read(resource) ??
      (isCurrentRecorded() ? contextAt(current[CURRENT_REF]) : undefined)
    if (context === undefined || context.ref !== current[CURRENT_REF]) return // its init was not reported
    resourceTag.write(resource, context)
    report(stage, context)
  } catch (error) {
    failed(error)
  }
}

/** @param {Stage} stage @param {Context} context */
function report (stage, context) {
  safely(() => {
    native.report(stage, context)
    callListeners(stage, context)
  })
}

/** @param {Stage} stage @param {Context} context */
function callListeners (stage, context) {
  if (listeners.length === 0) return
  measure(stage, context.ensureExtra())
  // A callback that changes the list replaces it
  const present = listeners
  guard.callInHook(() => {
    for (const hook of present) {
      if (listeners === present || listeners.includes(hook)) hook[stage]?.(context)
    }
  })
}

/** @param {number} asyncId */
function before (asyncId) {
  beforeResource(asyncId)
  reportCallback(executionAsyncResource(), 'before')
}

/** @param {number} asyncId */
function after (asyncId) {
  if (current[CURRENT_REF] === asyncId << 1) reportCallback(executionAsyncResource(), 'after')
  afterResource(asyncId)
}

/**
 * Enters a resource that Node itself does not enter.
 * @param {AsyncResource} resource
 * @returns {() => void} leaves it
 */
function enter (resource) {
  const asyncId = resource.asyncId()
  beforeResource(asyncId)
  reportCallback(resource, 'before')
  return () => {
    if (current[CURRENT_REF] === asyncId << 1) reportCallback(resource, 'after')
    afterResource(asyncId)
  }
}

/** Other addons may register at any time once the program has the handle, and do not report their end. */
const areWanted = () => listeners.length > 0 || native.inUse()

/** @param {Hook[]} hooks user hooks in order */
function setListeners (hooks) {
  listeners = hooks
  wrapHooks(wrapper)
}

/** Returns the handle that another addon needs to add its callbacks. */
function shareNative () {
  const handle = native.share()
  wrapHooks(wrapper)
  return handle
}

/** Returns whether the current step, or its request, has its own record. */
function isCurrentRecorded () {
  const cause = current[CURRENT_CAUSE]
  const isRecorded = cause === current[CURRENT_REF] || records.isApart(cause)
  return isRecorded && current[CURRENT_CHAIN] >= FIRST_CHAIN
}

/** @param {number} asyncId @returns {boolean} whether the resource has its own record */
function isSelected (asyncId) {
  const record = records.findResource(asyncId)
  if (record === undefined || (record.words[record.offset + FLAGS] & PASSED) !== 0) return false
  return record.words[record.offset + CHAIN] >= FIRST_CHAIN
}

/**
 * Measures how long a step waited and ran, for users.
 * @param {Stage} stage
 * @param {import('../core/context').Extra} extra
 */
function measure (stage, extra) {
  const time = now()
  if (stage === 'before') {
    extra.startTimes ??= []
    if (extra.startTimes.length > 0) extra.waitMs = 0
    else extra.waitMs = extra.since === undefined ? undefined : time - extra.since
    extra.startTimes.push(time)
    return
  }
  if (stage === 'after') {
    const startTime = extra.startTimes?.pop()
    extra.runMs = startTime === undefined ? undefined : time - startTime
  }
  extra.since = time
}

const wrapper = { init, before, after, enter, areWanted }

module.exports = { setListeners, shareNative }
