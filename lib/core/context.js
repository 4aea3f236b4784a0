'use strict'

// Reads contexts from what is recorded: hooks write integers (records.js), and a step becomes an object
// (context-object.js) when a query needs it. Objects of the same record are one for as long as one of them is
// held. Where the ring has gone on, a context is read from its chain alone: type, stack and ancestors are
// known, ids and times are not.

const records = require('./records')
const { findRecordOf, idAt, idOf, priorOf, timeAt, triggerIdAt } = require('./record-ids')
const { kindAt, kindOf } = require('./kinds')
const { source } = require('./source')
const { Context, OWN_WORK, root } = require('./context-object')
const tags = require('./tag')

const {
  CHAIN, CAUSE, SPAN, DETAIL, FLAGS, OUTER, REPEATS, PRIOR, PASSED, SETTLED, LOOPED, DISTANCE, ROOT_CHAIN,
  OWN_WORK_CHAIN, EARLY_CHAIN, FIRST_CHAIN, CHAIN_BITS, OUTSIDE_CHAIN
} = records
const MAX_FOLD = 8 // ancestors that a step may repeat, see native/chains.h
const CACHED = 256 // contexts in the cache, before those that are not held are dropped
const RARELY = 255 // the sentinel is held by the job that reads it

/** @typedef {import('./context-object').Extra} Extra */
/** @typedef {import('./kinds').Kind} Kind */

/** @type {Map<number, WeakRef<Context>>} by reference */
let cache = new Map()
let cacheLimit = CACHED
/** of an object that nothing holds: V8's next mark-sweep collects it, and the contexts that are not held */
let sentinel = new WeakRef({})

/** @param {number} ref @returns {Context | undefined} the context of a record */
function contextAt (ref) {
  const record = records.findRecord(ref)
  return record === undefined ? cachedContext(ref) : contextOfRecord(ref, record)
}

/**
 * @param {number} ref
 * @param {{ words: Int32Array, offset: number }} record
 * @returns {Context | undefined}
 */
function contextOfRecord (ref, { words, offset }) {
  const chain = words[offset + CHAIN]
  if (chain === OWN_WORK_CHAIN) return OWN_WORK
  if ((words[offset + FLAGS] & PASSED) !== 0) {
    return contextOf(chain, words[offset + CAUSE], words[offset + SPAN])
  }
  if (ref === 0) return readContext(ref, words, offset) // its id is a multiple of WRAP
  const cached = cachedContext(ref)
  if (cached !== undefined && cached.chain === chain && isOf(cached, words, offset)) return cached
  const context = readContext(ref, words, offset)
  const isCollected = (cache.size & RARELY) === 0 && sentinel.deref() === undefined
  if (isCollected || cache.size >= cacheLimit) dropUnheld()
  cache.set(ref, new WeakRef(context))
  return context
}

/**
 * Whether a context is that of a record with its reference.
 * @param {Context} context
 * @param {Int32Array} words
 * @param {number} offset
 */
function isOf ({ ref, asyncId }, words, offset) {
  return records.isApart(ref) || idAt(words, offset) === asyncId
}

/** @param {number} ref @param {Int32Array} words @param {number} offset @returns {Context} */
function readContext (ref, words, offset) {
  const chain = words[offset + CHAIN]
  const asyncId = idAt(words, offset)
  const triggerAsyncId = triggerIdAt(words, offset)
  const time = timeAt(words, offset)
  const context = new Context(asyncId, triggerAsyncId, kindOfChain(chain), null, time)
  context.ref = ref
  context.chain = chain
  context.spanNumber = words[offset + SPAN]
  if (chain === EARLY_CHAIN) context.origin = 'early'
  return context
}

/** @param {number} ref @returns {Context | undefined} one that is held, whatever became of its record */
function cachedContext (ref) {
  return cache.get(ref)?.deref()
}

/** Returns how many contexts are in the cache, of those that nothing holds too. */
function cachedCount () {
  return cache.size
}

function dropUnheld () {
  const held = new Map()
  for (const [ref, weak] of cache) if (weak.deref() !== undefined) held.set(ref, weak)
  cache = held
  sentinel = new WeakRef({})
  cacheLimit = Math.max(CACHED, held.size * 2)
}

/**
 * Returns the context of a chain and the record that is its newest step.
 * @param {number} chain
 * @param {number} ref 0: there is no record
 * @param {number} span number
 * @returns {Context | undefined}
 */
function contextOf (chain, ref, span) {
  if (chain === ROOT_CHAIN) return root
  if (chain === OWN_WORK_CHAIN) return OWN_WORK
  const context = ref === 0 ? undefined : contextAt(ref)
  if (context !== undefined && context.chain === chain) return context
  return chain < FIRST_CHAIN ? undefined : contextOfChain(chain, span)
}

/**
 * Returns the context of a chain whose records are gone.
 * @param {number} chain
 * @param {number} [span] number
 * @returns {Context | undefined}
 */
function contextOfChain (chain, span = 0) {
  if (chain === ROOT_CHAIN) return root
  if (chain === EARLY_CHAIN) return earlyContext()
  if (source.chainAt(chain) === undefined) return undefined
  const context = new Context(0, 0, kindOfChain(chain), null, NaN)
  context.chain = chain
  context.spanNumber = span
  return context
}

function earlyContext () {
  const context = new Context(0, 0, kindOf('unknown', false), root, NaN)
  context.chain = EARLY_CHAIN
  context.origin = 'early'
  return context
}

/** @param {number} chain @returns {Kind} */
function kindOfChain (chain) {
  const parts = chain === EARLY_CHAIN ? undefined : source.chainAt(chain)
  return (parts === undefined ? undefined : kindAt(parts.kind)) ?? kindOf('unknown', false)
}

/** Types of steps by their chains, read with every run of a span @type {Map<number, string>} */
let types = new Map()

/** @param {number} chain 0: it is not known @param {number} ref of its record @returns {string} */
function typeOfStep (chain, ref) {
  if (chain < FIRST_CHAIN) return contextAt(ref)?.type ?? 'unknown'
  let type = types.get(chain)
  if (type === undefined) {
    if (types.size >= CACHED) types = new Map()
    types.set(chain, type = kindOfChain(chain).type)
  }
  return type
}

/** @param {Context} context @returns {Context | undefined} */
function parentOf (context) {
  if (context.chain === EARLY_CHAIN) return root
  return recordedParent(context) ?? parentByChain(context)
}

/** @param {Context} context @returns {Context | undefined} */
function parentByChain (context) {
  const parent = source.chainAt(context.chain)?.parent
  return parent === undefined ? undefined : contextOfChain(parent, 0)
}

/** @param {Context} context @returns {Context | undefined} */
function recordedParent (context) {
  const record = findRecordOf(context)
  if (record === undefined) return undefined
  const { words, offset } = record
  const flags = words[offset + FLAGS]
  if ((flags & LOOPED) !== 0 && distanceOf(flags) === 1) return contextBeforeLoop(context, record, true)
  const parent = words[offset + CAUSE] === 0 ? undefined : contextAt(words[offset + CAUSE])
  return parent !== undefined && isCause(parent, context) ? parent : undefined
}

/**
 * Whether a context can have made another, by their times and chains: a reference may lead to a record of a
 * stranger, 2 ** 31 ids later.
 * @param {Context} parent
 * @param {Context} context
 */
function isCause (parent, { chain, time }) {
  if (parent.time > time) return false
  if (chain >= OUTSIDE_CHAIN) return parent.chain >= OUTSIDE_CHAIN
  const made = source.chainAt(chain)?.parent
  if (made === undefined || made === parent.chain) return true
  let ancestor = /** @type {number | undefined} */ (parent.chain)
  // The chain of a step that repeats an ancestor is that one's
  for (let i = 0; i < MAX_FOLD && ancestor !== undefined && ancestor !== chain; i++) {
    ancestor = source.chainAt(ancestor)?.parent
  }
  return ancestor === chain
}

/** @param {number} flags @returns {number} steps from a repetition of a loop up to the one before, 0: none */
const distanceOf = (flags) => (flags >> DISTANCE) & 15

/**
 * Returns which repetition of a loop a context is, undefined if it is none.
 * @param {Context} context
 * @returns {{ repeats: number, distance: number, outer: Context | undefined } | undefined}
 *   distance: so many steps up lies the repetition before; outer: what came before the loop
 */
function loopOf (context) {
  const record = findRecordOf(context)
  if (record === undefined || (record.words[record.offset + FLAGS] & LOOPED) === 0) return undefined
  const { words, offset } = record
  const outer = contextBeforeLoop(context, record, words[offset + PRIOR] === words[offset + OUTER])
  return { repeats: words[offset + REPEATS], distance: distanceOf(words[offset + FLAGS]), outer }
}

/**
 * Returns what came before a loop.
 * @param {Context} context
 * @param {{ words: Int32Array, offset: number }} record of the context
 * @param {boolean} isTimed its time is known where its record is gone
 */
function contextBeforeLoop (context, record, isTimed) {
  const ref = record.words[record.offset + PRIOR]
  if (ref === 0) return undefined
  const { asyncId, time } = priorOf(record)
  const recorded = asyncId === 0 || asyncId === idOf(ref) ? contextAt(ref) : undefined
  if (recorded !== undefined) return recorded
  const outer = parentByChain(context)
  if (outer === undefined || outer === root) return outer
  outer.asyncId = asyncId
  outer.time = isTimed ? time : NaN
  return outer
}

/**
 * Puts a context below another one: what it makes from now on descends from there.
 * @param {Context} context
 * @param {Context} parent
 */
function adopt (context, parent) {
  context.parent = parent
  const parts = source.chainAt(context.chain)
  if (parts === undefined || context.ref === 0) return
  const chain = source.intern(parent.chain, context.stack?.id ?? 0, parts.kind) & CHAIN_BITS
  if (chain === 0) return
  context.chain = chain
  records.writeWord(context.ref, CHAIN, chain)
  records.writeWord(context.ref, CAUSE, parent.ref)
}

/** @param {object} promise @returns {Context | undefined} what resolved or rejected it, if that is known */
function settlerOf (promise) {
  const context = contextTag.read(promise)
  if (context === undefined || context.ref === 0 || !context.kind.promise) return undefined
  const record = findRecordOf(context)
  if (record === undefined || (record.words[record.offset + FLAGS] & SETTLED) === 0) return undefined
  const settler = record.words[record.offset + DETAIL]
  return settler === 0 ? undefined : contextAt(settler)
}

/**
 * Returns the context of a resource.
 * @param {number} asyncId
 * @param {object} [resource] if it is at hand: it may carry its record
 * @returns {Context | undefined}
 */
function contextOfId (asyncId, resource) {
  const record = records.findResource(asyncId) ??
    (resource === undefined ? undefined : records.findCarried(resource, asyncId))
  if (record !== undefined) return contextOfRecord(asyncId << 1, record)
  const context = cachedContext(asyncId << 1)
  return context?.asyncId === asyncId ? context : undefined
}

/** The context of an object: a resource, a promise, a request. */
const contextTag = {
  /** @param {object} object @returns {Context | undefined} */
  read (object) {
    const tagged = tags.OnResource.read(object)
    if (tagged !== undefined) return tagged
    const ref = tags.OnPromise.read(object)
    if (ref !== undefined) return ref === 0 ? OWN_WORK : contextAt(ref)
    const id = tags.asyncIdOf(object)
    if (id === undefined) return undefined
    return contextOfId(id, object)
  },

  /** Returns whether the object bears its context itself. @param {object} object */
  isTagged: (object) => {
    return tags.OnResource.read(object) !== undefined || tags.OnPromise.read(object) !== undefined
  },

  /** @param {object} object @param {Context} context */
  write (object, context) {
    tags.OnResource.write(object, context)
  }
}

source.parentOf = parentOf

module.exports = {
  Context,
  OWN_WORK,
  adopt,
  cachedContext,
  cachedCount,
  contextAt,
  contextOf,
  contextOfChain,
  contextOfId,
  contextTag,
  loopOf,
  root,
  settlerOf,
  typeOfStep
}
