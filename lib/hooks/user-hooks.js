'use strict'

// Users' hooks, and those of other addons: told of a step around the functions that record it, while there are any. Promises
// come through async_hooks then, for the sake of their ids.

const { executionAsyncResource } = require('node:async_hooks')
const { now } = require('../context/clock')
const guard = require('../context/guard')
const records = require('../context/records')
const { contextAt } = require('../context/context')
const { createTag } = require('../context/tag')
const { INIT, BEFORE, AFTER } = require('./native-hooks')

const { CHAIN, FLAGS, PASSED, FIRST_CHAIN } = records

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./async-hooks').Hook} Hook
 */

/** The context of a resource, for as long as hooks of users listen. @type {ReturnType<typeof createTag<Context>>} */
const onResource = createTag()

/**
 * @param {object} deps
 * @param {{ init: (asyncId: number, type: string, trigger: number, resource: any) => void, before: (asyncId: number) => void, after: (asyncId: number) => void }} deps.hooks
 * @param {import('./async-hooks').AsyncParts} deps.rooms
 * @param {import('./async-hooks').Listener} deps.listener
 * @param {(work: () => void) => void} deps.guarded
 * @param {() => number} deps.running reference of what was entered last
 * @param {() => boolean} deps.recorded it was recorded
 */
function createUserHooks ({ hooks, rooms, listener, guarded, running, recorded }) {
  const native = rooms.nativeHooks()
  const { wants } = native
  /** hooks of users, in order; replaced, never mutated @type {Hook[]} */
  let listeners = []

  /** @param {number} asyncId @param {string} type @param {number} trigger @param {any} resource */
  function initTold (asyncId, type, trigger, resource) {
    hooks.init(asyncId, type, trigger, resource)
    if (!guard.inOwnWork) tellMade(asyncId << 1, resource)
  }

  /** @param {number} ref @param {object} resource */
  function tellMade (ref, resource) {
    try {
      const found = records.findRecord(ref)
      if (found === undefined || (found.words[found.offset + FLAGS] & PASSED) !== 0 || found.words[found.offset + CHAIN] < FIRST_CHAIN) return
      const context = contextAt(ref)
      if (context === undefined) return
      onResource.write(resource, context)
      guarded(() => {
        if (wants[INIT] !== 0) native.init(context)
        tellAll('init', context)
      })
    } catch (error) {
      listener.failed(error)
    }
  }

  /** @param {object} resource @param {'before' | 'after'} stage */
  function tellRun (resource, stage) {
    try {
      if (guard.inOwnWork) return
      const context = onResource.read(resource) ?? madeBefore()
      if (context === undefined || context.ref !== running()) return // its init was not told
      onResource.write(resource, context)
      guarded(() => {
        if (wants[stage === 'before' ? BEFORE : AFTER] !== 0) native[stage](context)
        tellAll(stage, context)
      })
    } catch (error) {
      listener.failed(error)
    }
  }

  /** What runs now, if it was recorded before there were hooks. @returns {Context | undefined} */
  function madeBefore () {
    return recorded() ? contextAt(running()) : undefined
  }

  /** @param {number} asyncId */
  function beforeTold (asyncId) {
    hooks.before(asyncId)
    tellRun(executionAsyncResource(), 'before')
  }

  /** @param {number} asyncId */
  function afterTold (asyncId) {
    if (running() === asyncId << 1) tellRun(executionAsyncResource(), 'after')
    hooks.after(asyncId)
  }

  /** @param {'init' | 'before' | 'after'} stage @param {Context} context */
  function tellAll (stage, context) {
    if (listeners.length === 0) return
    measure(stage, context.ensureExtra())
    // The list is replaced where a callback changes it
    for (const hook of listeners) listener.callHook(hook, stage, context)
  }

  /** How long it waited and ran, for users. @param {'init' | 'before' | 'after'} stage @param {import('../context/context').Extra} extra */
  function measure (stage, extra) {
    const time = now()
    if (stage === 'before') {
      extra.begun ??= []
      extra.waitMs = extra.begun.length > 0 ? 0 : extra.since === undefined ? undefined : time - extra.since
      extra.begun.push(time)
      return
    }
    if (stage === 'after') {
      const began = extra.begun?.pop()
      extra.runMs = began === undefined ? undefined : time - began
    }
    extra.since = time
  }

  return {
    init: initTold,
    before: beforeTold,
    after: afterTold,
    listening: () => listeners.length > 0,

    /** @param {Hook[]} hooks of users, in order */
    listen (hooks) {
      listeners = hooks
    }
  }
}

module.exports = { createUserHooks }
