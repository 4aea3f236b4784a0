'use strict'

// Resolves the current step when no hook has entered one: in the main script, in resources that an accepted
// connection makes, and in callbacks of resources older than longstack.

const { executionAsyncId, executionAsyncResource, triggerAsyncId } = require('node:async_hooks')
const records = require('./records')
const { calledTypes } = require('./kind-table')
const { source } = require('./source')
const { counterTag } = require('./tag')
const { CURRENT_ENTRY, DEPTH, ROOT_ENTRY, current, setCurrent } = require('./current')
const registry = require('./registry')
const { providerOf } = require('../node-objects')
const { className } = require('../objects')

const {
  MASK, SHIFT, IDS, REF, CHAIN, CAUSE, TRIGGER, SPAN, TIME, FLAGS, COUNTED, LISTENED, LIVE, PASSED,
  CALLED, DETAIL, INCOMING, PARSER, RUN, NO_CHAIN, ROOT_CHAIN, EARLY_CHAIN, ids, resources
} = records

/**
 * Sets the current step while none is entered.
 * @param {number} trigger async id of the trigger of the resource being made, 0: none
 */
function resolveCurrent (trigger) {
  const id = executionAsyncId()
  current[CURRENT_ENTRY] = id === 1 ? current[ROOT_ENTRY] : 0
  if (id === 1) return setCurrent(ROOT_CHAIN, 0, 0)
  if (id !== 0) return resolveExecuting(id)
  // Nothing executes: the cause of an accepted connection is its trigger, the server.
  const record = trigger > 1 ? records.findResource(trigger) : undefined
  if (record !== undefined) return setFromRecord(trigger << 1, record.words, record.offset)
  const opener = registry.openerOf(trigger)
  if (opener !== undefined) return setCurrent(opener.chain, opener.ref, 0)
  // Code that --import loads before the program's first line executes nothing either
  setCurrent(source.startsWithHops ? ROOT_CHAIN : NO_CHAIN, 0, 0)
}

/** @param {number} ref @param {Int32Array} words @param {number} offset */
function setFromRecord (ref, words, offset) {
  const isPassed = (words[offset + FLAGS] & PASSED) !== 0
  setCurrent(words[offset + CHAIN], isPassed ? words[offset + CAUSE] : ref, words[offset + SPAN])
}

/**
 * Resolves an executing resource that was never entered: it was made before longstack was enabled.
 * @param {number} id
 */
function resolveExecuting (id) {
  const ref = id << 1
  const record = records.findResource(id) ?? records.findCarried(executionAsyncResource(), id)
  if (record !== undefined) return setFromRecord(ref, record.words, record.offset)
  recordEarly(id)
  setCurrent(EARLY_CHAIN, ref, 0)
}

/** Resolves the current step if no hook has entered one. */
function resolve () {
  if (current[DEPTH] === 0) resolveCurrent(0)
}

/** Records the executing resource, made before longstack was enabled. @param {number} id */
function recordEarly (id) {
  const offset = (id & MASK) << SHIFT
  const trigger = triggerAsyncId()
  if ((resources[offset + FLAGS] & (LIVE | PASSED)) !== 0) records.keep(resources, offset)
  ids[offset >> IDS] = id
  ids[(offset >> IDS) + 1] = trigger
  resources[offset + RUN] = 0
  resources[offset + REF] = id << 1
  resources[offset + CHAIN] = EARLY_CHAIN
  resources[offset + CAUSE] = 0
  resources[offset + TRIGGER] = trigger << 1
  resources[offset + SPAN] = 0
  resources[offset + TIME] = 0
  resources[offset + DETAIL] = resources[offset + INCOMING] = 0
  // LISTENED: a listener may exist by now
  resources[offset + FLAGS] = LIVE | LISTENED | earlyFlags(executionAsyncResource())
}

/** Types of Node's objects for parsers (lib/internal/http.js). @type {Record<string, string>} */
const httpTypes = {
  __proto__: /** @type {any} */ (null),
  HTTPServerAsyncResource: 'HTTPINCOMINGMESSAGE',
  HTTPClientAsyncResource: 'HTTPCLIENTREQUEST'
}

/** @param {object} resource @returns {number} the flags that its record would have had from the start */
function earlyFlags (resource) {
  const name = providerOf(resource) ?? className(resource)
  const type = name === undefined ? undefined : httpTypes[name] ?? name
  return (counterTag.read(resource) === undefined ? 0 : COUNTED) |
    (type !== undefined && calledTypes.has(type) ? CALLED : 0) |
    (type === 'HTTPINCOMINGMESSAGE' ? PARSER : 0)
}

module.exports = { recordEarly, resolve, resolveCurrent }
