'use strict'

// Asynchronous steps as objects. Hooks write integers (records.js); a step becomes an object when a query
// needs it. A context never points at a resource, so it keeps no object of the program alive. Contexts of one
// record are the same object as long as one of them is held. After the ring has overwritten the record, the
// context is read from its chain alone: type, stack and ancestors are known, ids and times are not.

const { isProxy } = require('node:util').types
const records = require('./records')
const { findRecordOf, idAt, idOf, priorOf, timeAt, timeOf, triggerIdAt } = require('./record-ids')
const { kindAt, kindOf } = require('./kinds')
const { distanceOf, isJoined } = require('./loops')
const { source } = require('./source')
const tags = require('./tag')
const nodeObjects = require('../node-objects')

const {
  CHAIN, CAUSE, SPAN, DETAIL, ERA, FLAGS, LIVE, ONE_SHOT, OUTER, REPEATS, PRIOR, PASSED, RUNS, SETTLED,
  LOOPED, TIMER, ROOT_CHAIN, OWN_WORK_CHAIN, EARLY_CHAIN, FIRST_CHAIN, CHAIN_BITS
} = records
const MAX_FOLD = 8 // number of ancestors that a step may repeat, see native/chains.h
const CACHED = 256 // cached contexts above which unheld ones are dropped
const RARELY = 255 // mask: the job that reads the sentinel holds it

/**
 * @typedef {import('./kinds').Kind} Kind
 * @typedef {import('../spans/span').Span} Span
 * @typedef {NonNullable<ReturnType<typeof records.copyOn>>} Copy
 * @typedef {import('../stacks/chain').Origin} Origin
 *
 * @typedef {object} Extra rarely used properties
 * @property {string} [detail]
 * @property {string} [request]
 * @property {number} [requestRef] HTTP/2 streams: reference of the request
 * @property {object} [view]
 * @property {number} [since] ms of the clock when it was made or last ran; this and the following are set
 *   while user hooks listen
 * @property {number[]} [startTimes] when its present callbacks began
 * @property {number} [waitMs]
 * @property {number} [runMs]
 */

class Context {
  /**
   * @param {number} asyncId from Node; for a promise without one, longstack's own number, see
   *   PROMISE_IDS
   * @param {number} triggerAsyncId
   * @param {Kind} kind
   * @param {Context | undefined | null} parent the context that made it, else its trigger's; null: read on
   *   demand
   * @param {number} time ms of the clock when it was made
   */
  constructor (asyncId, triggerAsyncId, kind, parent, time) {
    this.asyncId = asyncId
    this.triggerAsyncId = triggerAsyncId
    this.kind = kind
    this.type = kind.type
    this.time = time
    /** @type {Origin} */
    this.origin = 'registered'
    /** reference of its record, 0: none @type {number} */
    this.ref = 0
    /** @type {number} */
    this.chain = 0
    /** loop repetitions that this context represents */
    this.repeats = 1
    /** its chain is folded: `repeats` and `parent` are final */
    this.folded = false
    /** null: not read yet @type {Context | undefined | null} */
    this.readParent = parent
    /** null: not read yet @type {import('../stacks/frames').Stack | undefined | null} */
    this.readStack = null
    /** span number, for a context without a record */
    this.spanNumber = 0
    /** @type {Extra | undefined} */
    this.extra = undefined
  }

  /** @returns {Context | undefined} */
  get parent () {
    if (this.readParent === null) this.readParent = parentOf(this)
    return this.readParent
  }

  set parent (parent) { this.readParent = parent }

  /** @returns {import('../stacks/frames').Stack | undefined} the stack that made it */
  get stack () {
    if (this.readStack === null) {
      this.readStack = this.chain < FIRST_CHAIN ? undefined : source.chainAt(this.chain)?.stack
    }
    return this.readStack
  }

  set stack (stack) { this.readStack = stack }

  /** @returns {Span | undefined} */
  get span () {
    const number = this.readWord(SPAN) || this.spanNumber
    return number === 0 ? undefined : source.spanAt(number)
  }

  /**
   * @returns {Span | import('../spans/identities').Ended | undefined} identity of its span, even after the
   *   span has ended
   */
  get spanIdentity () {
    const number = this.readWord(SPAN) || this.spanNumber
    return number === 0 ? undefined : source.identityAt(number)
  }

  set span (span) {
    this.spanNumber = span === undefined ? 0 : span.seq
    const record = findRecordOf(this)
    if (record !== undefined) record.words[record.offset + SPAN] = this.spanNumber
  }

  /** @param {number} word of its record @returns {number} 0 if the record is gone */
  readWord (word) {
    const record = findRecordOf(this)
    return record === undefined ? 0 : record.words[record.offset + word]
  }

  /** @returns {boolean} it will not run again */
  get done () { return this.ref !== 0 && (this.readWord(FLAGS) & LIVE) === 0 }

  /** @returns {boolean} a promise made by `await` or `then`: its trigger is another promise */
  get awaited () { return this.kind.awaited }

  /** @returns {string | undefined} bracketed part of a label: an address, a delay */
  get detail () {
    if (this.extra?.detail !== undefined) return this.extra.detail
    // trace.span: the record has its number. A program may give its own resource the same type
    if (this.type === 'Span') return source.identityAt(this.readWord(DETAIL))?.name
    if (!this.kind.timer) return undefined
    const record = findRecordOf(this)
    const delay = record === undefined ? records.delayOf(this.chain) : record.words[record.offset + DETAIL]
    return delay === undefined ? undefined : String(delay)
  }

  set detail (detail) { this.ensureExtra().detail = detail }

  /**
   * @returns {string | undefined} name of a request that a server received: `GET /config`, with the route
   *   once known
   */
  get request () {
    return records.isRequest(this.ref) ? source.nameOfRequest(this.ref) : this.extra?.request
  }

  set request (request) { this.ensureExtra().request = request }

  /** ms from when it was made or last ran to its present or last callback, if user hooks listened. */
  get waitMs () { return this.extra?.waitMs }

  /** Duration of its last callback in ms, if user hooks listened. */
  get runMs () { return this.extra?.runMs }

  /** The object that users see, once requested. @returns {object | undefined} */
  get view () { return this.extra?.view }
  set view (view) { this.ensureExtra().view = view }

  /** @returns {Extra} */
  ensureExtra () {
    this.extra ??= {}
    return this.extra
  }
}

/** Represents all work of longstack and of hook callbacks, and everything it causes; never traced. */
const OWN_WORK = new Context(0, 0, kindOf('longstack', false), undefined, 0)
OWN_WORK.chain = OWN_WORK_CHAIN

/** The start of the process. */
const root = new Context(1, 0, kindOf('process', false), undefined, 0)
root.chain = ROOT_CHAIN
root.origin = 'process'

/** @type {Map<number, WeakRef<Context>>} by reference */
let cache = new Map()
let cacheLimit = CACHED
/** refers to an unheld object: V8's next mark-sweep collects it together with unheld contexts */
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
  const isKnown = cached?.chain === chain && (records.isApart(ref) || idAt(words, offset) === cached.asyncId)
  if (isKnown) return cached
  const context = readContext(ref, words, offset)
  const isCollected = (cache.size & RARELY) === 0 && sentinel.deref() === undefined
  if (isCollected || cache.size >= cacheLimit) dropUnheld()
  cache.set(ref, new WeakRef(context))
  return context
}

/** @param {number} ref @param {Int32Array} words @param {number} offset @returns {Context} */
function readContext (ref, words, offset) {
  const asyncId = idAt(words, offset)
  const triggerAsyncId = triggerIdAt(words, offset)
  const time = timeAt(words, offset)
  const context = createContext(words[offset + CHAIN], words[offset + SPAN], asyncId, triggerAsyncId, time)
  context.ref = ref
  if ((words[offset + FLAGS] & (TIMER | ONE_SHOT)) === TIMER) context.repeats += words[offset + RUNS]
  return context
}

/**
 * Returns the context of a noted step, which has no record of its own.
 * @param {number} chain
 * @param {number} cause
 * @param {number} time ms of the clock
 * @returns {Context | undefined} undefined: its chain was dropped
 */
function contextOfNoted (chain, cause, time) {
  const made = source.chainAt(chain)
  if (made === undefined) return undefined
  const context = new Context(0, 0, kindAt(made.kind), contextOf(made.parent, cause, 0), time)
  context.chain = chain
  return context
}

/**
 * Returns the context of a timer that may run again, without keeping its record.
 * @param {Copy} copy of the record, carried by the timer
 * @returns {Context | undefined}
 */
function contextOfTimer (copy) {
  const ref = copy.asyncId << 1
  const record = records.findResource(copy.asyncId)
  if (record !== undefined) return contextOfRecord(ref, record)
  const cached = cachedContext(ref)
  if (cached !== undefined && cached.asyncId === copy.asyncId && cached.chain === copy.chain) return cached
  const time = timeOf(copy.time, copy.flags >>> ERA)
  const context = createContext(copy.chain, copy.more?.span ?? 0, copy.asyncId, copy.triggerAsyncId, time)
  context.ref = ref
  context.repeats += copy.more?.runs ?? 0
  context.detail = String(copy.detail)
  return context
}

/**
 * @param {number} chain
 * @param {number} span number
 * @param {number} asyncId
 * @param {number} triggerAsyncId
 * @param {number} time
 */
function createContext (chain, span, asyncId, triggerAsyncId, time) {
  const context = new Context(asyncId, triggerAsyncId, kindOfChain(chain), null, time)
  context.chain = chain
  context.spanNumber = span
  if (chain === EARLY_CHAIN) context.origin = 'early'
  return context
}

/** @param {number} ref @returns {Context | undefined} the context if held, even without a record */
function cachedContext (ref) {
  return cache.get(ref)?.deref()
}

/** Returns the number of contexts in the cache, including unheld ones. */
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
 * Returns the context of a chain and of the record of its newest step.
 * @param {number} chain
 * @param {number} ref 0: no record
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
  if (chain !== EARLY_CHAIN && source.chainAt(chain) === undefined) return undefined
  return createContext(chain, span, 0, 0, NaN)
}

/** @param {number} chain @returns {Kind} */
function kindOfChain (chain) {
  const parts = source.chainAt(chain)
  return (parts === undefined ? undefined : kindAt(parts.kind)) ?? kindOf('unknown', false)
}

/** Step types by chain, read for every run of a span @type {Map<number, string>} */
let types = new Map()

/** @param {number} chain 0: unknown @param {number} ref of its record @returns {string} */
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

/** @param {Context} context @returns {Context | undefined} undefined: none, or several candidates */
function parentByChain (context) {
  if (context.ref === 0 && isJoined(context.chain)) return undefined
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
 * Checks by time and chain whether one context can have made another: a reference may lead to an unrelated
 * record, 2 ** 31 ids later.
 * @param {Context} parent
 * @param {Context} context
 */
function isCause (parent, { chain, time }) {
  if (parent.time > time) return false
  const made = source.chainAt(chain)?.parent
  if (made === undefined || made === parent.chain) return true
  let ancestor = /** @type {number | undefined} */ (parent.chain)
  // A step that repeats an ancestor has that ancestor's chain
  for (let i = 0; i < MAX_FOLD && ancestor !== undefined && ancestor !== chain; i++) {
    ancestor = source.chainAt(ancestor)?.parent
  }
  return ancestor === chain
}

/**
 * Returns the loop repetition of a context, or undefined if it is none.
 * @param {Context} context
 * @returns {{ repeats: number, distance: number, outer: Context | undefined } | undefined}
 *   distance: steps up to the previous repetition; outer: the step before the loop
 */
function loopOf (context) {
  const record = findRecordOf(context)
  if (record === undefined || (record.words[record.offset + FLAGS] & LOOPED) === 0) return undefined
  const { words, offset } = record
  const outer = contextBeforeLoop(context, record, words[offset + PRIOR] === words[offset + OUTER])
  return { repeats: words[offset + REPEATS], distance: distanceOf(words[offset + FLAGS]), outer }
}

/**
 * Returns the step before a loop.
 * @param {Context} context
 * @param {{ words: Int32Array, offset: number }} record of the context
 * @param {boolean} isTimed that step's time is known even if its record is gone
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
 * Moves a context below another one; everything it makes from now on descends from there.
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

/** @param {object} promise @returns {Context | undefined} the step that settled it, if known */
function settlerOf (promise) {
  const context = contextTag.read(promise)
  if (!context?.kind.promise || (context.readWord(FLAGS) & SETTLED) === 0) return undefined
  return contextAt(context.readWord(DETAIL))
}

/**
 * Returns the context of a resource.
 * @param {number} asyncId
 * @param {object} [resource] if available: it may carry its record
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
    const id = isProxy(object) ? undefined : nodeObjects.idOf(object)
    return id === undefined ? undefined : contextOfId(id, object)
  },

  /** Returns whether the object itself is tagged with its context. @param {object} object */
  isTagged: (object) => {
    return tags.OnResource.read(object) !== undefined || tags.OnPromise.read(object) !== undefined
  },

  /** @param {object} object @param {Context} context */
  write (object, context) {
    tags.OnResource.write(object, context)
  }
}

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
  contextOfNoted,
  contextOfTimer,
  contextTag,
  loopOf,
  root,
  settlerOf,
  typeOfStep
}
