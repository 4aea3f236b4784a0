'use strict'

// Calls the hooks of users and those of other addons, around the functions that record a step, while there
// are any. Promises are reported by async_hooks then, which gives them ids.

const { executionAsyncResource } = require('node:async_hooks')
const { now } = require('../context/clock')
const guard = require('../context/guard')
const records = require('../context/records')
const { contextAt, contextOfId } = require('../context/context')
const { createTag } = require('../context/tag')
const { INIT, BEFORE, AFTER } = require('./native-hooks')

const { CHAIN, FLAGS, PASSED, FIRST_CHAIN } = records

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('node:async_hooks').AsyncResource} AsyncResource
 * @typedef {import('./async-hooks').Hook} Hook
 * @typedef {'init' | 'before' | 'after'} Stage
 *
 * @typedef {object} RecordingHooks
 * @property {(asyncId: number, type: string, trigger: number, resource: any) => void} init
 * @property {(asyncId: number) => void} before
 * @property {(asyncId: number) => void} after
 */

/**
 * The context of a resource, for as long as hooks of users listen.
 * @type {ReturnType<typeof createTag<Context>>}
 */
const resourceTag = createTag()

/**
 * @param {object} deps
 * @param {RecordingHooks} deps.hooks
 * @param {import('./async-hooks').AsyncParts} deps.parts
 * @param {import('./async-hooks').Listener} deps.listener
 * @param {(work: () => void) => void} deps.runGuarded
 * @param {() => number} deps.currentRef reference of what was entered last
 * @param {() => boolean} deps.isCurrentRecorded
 */
function createUserHooks ({ hooks, parts, listener, runGuarded, currentRef, isCurrentRecorded }) {
  const native = parts.nativeHooks()
  const { wants } = native
  /** hooks of users, in order; replaced, never mutated @type {Hook[]} */
  let listeners = []

  /** @param {number} asyncId @param {string} type @param {number} trigger @param {any} resource */
  function init (asyncId, type, trigger, resource) {
    hooks.init(asyncId, type, trigger, resource)
    if (!guard.inOwnWork) reportInit(asyncId, resource)
  }

  /** @param {number} asyncId @param {object} resource */
  function reportInit (asyncId, resource) {
    try {
      if (!isSelected(asyncId)) return
      const context = contextOfId(asyncId)
      if (context === undefined) return
      resourceTag.write(resource, context)
      runGuarded(() => {
        if (wants[INIT] !== 0) native.init(context)
        callListeners('init', context)
      })
    } catch (error) {
      listener.failed(error)
    }
  }

  /** @param {object} resource @param {'before' | 'after'} stage */
  function reportCallback (resource, stage) {
    try {
      if (guard.inOwnWork) return
      const context = resourceTag.read(resource) ?? contextFromBefore()
      if (context === undefined || context.ref !== currentRef()) return // its init was not reported
      resourceTag.write(resource, context)
      runGuarded(() => {
        if (wants[stage === 'before' ? BEFORE : AFTER] !== 0) native[stage](context)
        callListeners(stage, context)
      })
    } catch (error) {
      listener.failed(error)
    }
  }

  /** Returns what runs now, if it was recorded before there were hooks. @returns {Context | undefined} */
  function contextFromBefore () {
    return isCurrentRecorded() ? contextAt(currentRef()) : undefined
  }

  /** @param {Stage} stage @param {Context} context */
  function callListeners (stage, context) {
    if (listeners.length === 0) return
    measure(stage, context.ensureExtra())
    // The list is replaced where a callback changes it
    const present = listeners
    const wasInHook = guard.mayBeInHook
    guard.mayBeInHook = true
    for (const hook of present) {
      if (listeners === present || listeners.includes(hook)) listener.callHook(hook, stage, context)
    }
    guard.mayBeInHook = wasInHook
  }

  return {
    init,

    /** @param {number} asyncId */
    before (asyncId) {
      hooks.before(asyncId)
      reportCallback(executionAsyncResource(), 'before')
    },

    /** @param {number} asyncId */
    after (asyncId) {
      if (currentRef() === asyncId << 1) reportCallback(executionAsyncResource(), 'after')
      hooks.after(asyncId)
    },

    /**
     * Enters a resource that Node does not enter.
     * @param {AsyncResource} resource
     * @returns {() => void} leaves it
     */
    enter (resource) {
      const asyncId = resource.asyncId()
      hooks.before(asyncId)
      reportCallback(resource, 'before')
      return () => {
        if (currentRef() === asyncId << 1) reportCallback(resource, 'after')
        hooks.after(asyncId)
      }
    },

    hasListeners: () => listeners.length > 0,

    /** @param {Hook[]} hooks of users, in order */
    setListeners (hooks) {
      listeners = hooks
    }
  }
}

/** @param {number} asyncId @returns {boolean} whether the resource has a record of its own */
function isSelected (asyncId) {
  const record = records.findResource(asyncId)
  if (record === undefined || (record.words[record.offset + FLAGS] & PASSED) !== 0) return false
  return record.words[record.offset + CHAIN] >= FIRST_CHAIN
}

/**
 * Measures how long a step waited and ran, for users.
 * @param {Stage} stage
 * @param {import('../context/context').Extra} extra
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

module.exports = { createUserHooks }
