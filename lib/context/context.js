'use strict'

// One asynchronous step as an object, made when somebody asks: what hooks/async-hooks.js records are numbers (records.js).
// Objects of the same record are one for as long as somebody holds it. Where the ring has gone on, a context is read
// from its chain alone: type, stack and ancestors are known, ids and times are not.
//
// A context never points at a resource, so it keeps no object of the program alive.

const records = require('./records')
const { kindAt, kindOf } = require('./kinds')
const requests = require('./request-names')
const marks = require('./tag')

const {
  REF, CHAIN, CAUSE, TRIGGER, SPAN, TIME, DETAIL, FLAGS, OUTER, REPEATS, PRIOR, PRIOR_TIME, LIVE, PASSED, SETTLED, LOOPED, DISTANCE,
  ROOT_CHAIN, OWN_WORK_CHAIN, EARLY_CHAIN, FIRST_CHAIN, CHAIN_BITS, TICKS
} = records
const HALF = 2 ** 31 // ids are recorded modulo this
const PROMISE_IDS = 2 ** 40 // where those of promises begin to which Node gives none
const CACHED = 1024 // references of contexts, before those that nobody holds are dropped

/**
 * @typedef {import('./kinds').Kind} Kind
 * @typedef {import('../spans/span').Span} Span
 * @typedef {import('../stacks/chain').Origin} Origin
 *
 * @typedef {object} Extra what few contexts have
 * @property {string} [detail]
 * @property {string} [request]
 * @property {Origin} [origin]
 * @property {object} [view]
 * @property {number} [since] ms of the clock at which it was made or ran last; this and the following while
 *   hooks of users listen
 * @property {number[]} [startTimes] when its present callbacks began
 * @property {number} [waitMs]
 * @property {number} [runMs]
 *
 * @typedef {object} Source what contexts are read from; see connect()
 * @property {(chain: number) => { parent: number, stack: import('../stacks/frames').Stack | undefined, kind: number } | undefined} chainAt
 * @property {(parent: number, stack: number, kind: number) => number} intern
 * @property {(number: number) => Span | undefined} spanAt
 * @property {(number: number) => Span | import('../spans/identities').Ended | undefined} identityAt
 * @property {(ref: number) => string | undefined} routeOf what a framework told of a request since
 * @property {() => number} latestId an async id of now
 */

/** @type {Source} */
let source = { chainAt: () => undefined, intern: () => 0, spanAt: () => undefined, identityAt: () => undefined, routeOf: () => undefined, latestId: () => 0 }

class Context {
  /**
   * @param {number} asyncId of Node's, or longstack's own of a promise to which Node gave none, see PROMISE_IDS
   * @param {number} triggerAsyncId
   * @param {Kind} kind
   * @param {Context | undefined | null} parent the context in which it was made, else that of its trigger; null: read it when asked
   * @param {number} time of its making, in ms of the clock
   */
  constructor (asyncId, triggerAsyncId, kind, parent, time) {
    this.asyncId = asyncId
    this.triggerAsyncId = triggerAsyncId
    this.kind = kind
    this.time = time
    /** of its record, 0: it has none @type {number} */
    this.ref = 0
    /** @type {number} */
    this.chain = 0
    /** turns of a loop that this context stands for */
    this.repeats = 1
    /** its chain was folded: what it stands for is said by `repeats` and `parent` */
    this.folded = false
    /** @type {Context | undefined | null} */
    this.above = parent
    /** @type {import('../stacks/frames').Stack | undefined | null} */
    this.frames = null
    /** number of its span where it has no record */
    this.spanNumber = 0
    /** @type {Extra | undefined} */
    this.extra = undefined
  }

  get type () { return this.kind.type }

  /** @returns {Context | undefined} */
  get parent () {
    if (this.above === null) this.above = parentOf(this)
    return this.above
  }

  set parent (parent) { this.above = parent }

  /** @returns {import('../stacks/frames').Stack | undefined} where it was made */
  get stack () {
    if (this.frames === null) this.frames = this.chain < FIRST_CHAIN ? undefined : source.chainAt(this.chain)?.stack
    return this.frames
  }

  set stack (stack) { this.frames = stack }

  /** @returns {Span | undefined} */
  get span () {
    const number = this.ref === 0 ? this.spanNumber : records.readWord(this.ref, SPAN) || this.spanNumber
    return number === 0 ? undefined : source.spanAt(number)
  }

  /** @returns {Span | import('../spans/identities').Ended | undefined} who its span is, also when that has ended */
  get spanIdentity () {
    const number = this.ref === 0 ? this.spanNumber : records.readWord(this.ref, SPAN) || this.spanNumber
    return number === 0 ? undefined : source.identityAt(number)
  }

  set span (span) {
    this.spanNumber = span === undefined ? 0 : span.seq
    if (this.ref !== 0) records.writeWord(this.ref, SPAN, this.spanNumber)
  }

  /** @returns {boolean} it will not run again */
  get done () { return this.ref !== 0 && (records.readWord(this.ref, FLAGS) & LIVE) === 0 }

  /** @returns {boolean} a promise that an await or a then made: it has another promise as its trigger */
  get awaited () { return this.kind.awaited }

  /** @returns {boolean} a promise that is settled */
  get settled () { return this.ref !== 0 && (records.readWord(this.ref, FLAGS) & SETTLED) !== 0 }

  /** What a label needs to know beyond the stack: an address, a delay. @returns {string | undefined} */
  get detail () {
    if (this.extra?.detail !== undefined) return this.extra.detail
    if (this.kind.type === 'Span') return this.spanName
    if (!this.kind.timer) return undefined
    const found = this.ref === 0 ? undefined : records.findRecord(this.ref)
    const delay = found === undefined ? records.delayOf(this.chain) : found.words[found.offset + DETAIL]
    return delay === undefined ? undefined : String(delay)
  }

  set detail (detail) { this.ensureExtra().detail = detail }

  /** Of a request that a server got: `GET /config`, with the route where that is known. @returns {string | undefined} */
  get request () {
    if (!records.isRequest(this.ref)) return this.extra?.request
    return source.routeOf(this.ref) ?? requests.textAt(records.readWord(this.ref, DETAIL))
  }

  set request (request) { this.ensureExtra().request = request }

  /** That of trace.span, whose number its record has; a program may call a resource of its own the same. @returns {string | undefined} */
  get spanName () {
    const number = this.ref === 0 ? 0 : records.readWord(this.ref, DETAIL)
    return number === 0 ? undefined : source.identityAt(number)?.name
  }

  /** @returns {Origin} */
  get origin () { return this.extra?.origin ?? 'registered' }
  set origin (origin) { this.ensureExtra().origin = origin }

  /** ms from its making, or from its last run, to this run, where users listened. */
  get waitMs () { return this.extra?.waitMs }

  /** ms of its last run, likewise. */
  get runMs () { return this.extra?.runMs }

  /** What users see of it, once they asked. @returns {object | undefined} */
  get view () { return this.extra?.view }
  set view (view) { this.ensureExtra().view = view }

  /** @returns {Extra} */
  ensureExtra () {
    this.extra ??= {}
    return this.extra
  }
}

/** Stands for everything that longstack or a hook callback does: never traced, nor what comes of it. */
const OWN_WORK = new Context(0, 0, kindOf('longstack', false), undefined, 0)
OWN_WORK.chain = OWN_WORK_CHAIN

/** The start of the process. */
const root = new Context(1, 0, kindOf('process', false), undefined, 0)
root.chain = ROOT_CHAIN
root.origin = 'process'

/** @type {Map<number, WeakRef<Context>>} by reference */
let cache = new Map()
let dropAt = CACHED

/** Contexts are read from these from now on. @param {Source} given */
function connectSource (given) {
  source = given
}

/** @param {number} ref @returns {Context | undefined} the context of a record */
function contextAt (ref) {
  const found = records.findRecord(ref)
  if (found === undefined) return cachedContext(ref)
  const { words, offset } = found
  const flags = words[offset + FLAGS]
  const chain = words[offset + CHAIN]
  if (chain === OWN_WORK_CHAIN) return OWN_WORK
  if ((flags & PASSED) !== 0) return contextOf(chain, words[offset + CAUSE], words[offset + SPAN])
  const known = cachedContext(ref)
  if (known !== undefined && known.chain === chain) return known
  const kind = kindOfChain(chain)
  const trigger = words[offset + TRIGGER]
  const owner = words[offset + (records.isRequest(ref) ? OUTER : REF)]
  const context = new Context(idOf(owner), trigger === 0 ? 0 : idOf(trigger), kind, null, timeOf(words[offset + TIME]))
  context.ref = ref
  context.chain = chain
  context.spanNumber = words[offset + SPAN]
  if (chain === EARLY_CHAIN) context.origin = 'early'
  if (cache.size >= dropAt) dropUnheld()
  cache.set(ref, new WeakRef(context))
  return context
}

/** @param {number} ref @returns {Context | undefined} one that somebody holds, whatever became of its record */
function cachedContext (ref) {
  return cache.get(ref)?.deref()
}

function dropUnheld () {
  const held = new Map()
  for (const [ref, weak] of cache) if (weak.deref() !== undefined) held.set(ref, weak)
  cache = held
  dropAt = Math.max(CACHED, held.size * 2)
}

/**
 * The context of a chain and the record that is its newest step.
 * @param {number} chain
 * @param {number} ref 0 where there is no record
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

/** Tells what a chain tells without its records. @param {number} chain @param {number} [span] number @returns {Context | undefined} */
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
  if (chain === EARLY_CHAIN) return kindOf('unknown', false)
  const known = source.chainAt(chain)
  return (known === undefined ? undefined : kindAt(known.kind)) ?? kindOf('unknown', false)
}

/** Types of steps by their chains, asked for with every run of a span @type {Map<number, string>} */
let types = new Map()

/** @param {number} chain 0 where it is not known @param {number} ref of its record @returns {string} */
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
  const found = context.ref === 0 ? undefined : records.findRecord(context.ref)
  if (found !== undefined) {
    const isTurn = (found.words[found.offset + FLAGS] & LOOPED) !== 0 && ((found.words[found.offset + FLAGS] >> DISTANCE) & 15) === 1
    const cause = isTurn ? found.words[found.offset + PRIOR] : found.words[found.offset + CAUSE]
    const above = cause === 0
      ? undefined
      : contextAt(cause) ??
      (isTurn ? outerOf(context, cause, found.words[found.offset + PRIOR_TIME]) : undefined)
    if (above !== undefined) return above
  }
  const parent = source.chainAt(context.chain)?.parent
  return parent === undefined ? undefined : contextOfChain(parent, 0)
}

/**
 * Says which turn of a loop a context is.
 * @param {Context} context
 * @returns {{ turns: number, distance: number, outer: Context | undefined } | undefined}
 *   distance: so many steps up lies the turn before; outer: what came before the loop
 */
function loopOf (context) {
  const found = context.ref === 0 ? undefined : records.findRecord(context.ref)
  if (found === undefined || (found.words[found.offset + FLAGS] & LOOPED) === 0) return undefined
  const ref = found.words[found.offset + PRIOR]
  const distance = (found.words[found.offset + FLAGS] >> DISTANCE) & 15
  const time = ref === found.words[found.offset + OUTER] ? found.words[found.offset + PRIOR_TIME] : 0
  const outer = ref === 0 ? undefined : contextAt(ref) ?? outerOf(context, ref, time)
  return { turns: found.words[found.offset + REPEATS], distance, outer }
}

/** What came before a loop, its record being gone. @param {Context} context @param {number} ref @param {number} ticks when it was made */
function outerOf (context, ref, ticks) {
  const parent = source.chainAt(context.chain)?.parent
  const outer = parent === undefined ? undefined : contextOfChain(parent)
  if (outer === undefined || outer === root) return outer
  outer.asyncId = idOf(ref)
  outer.time = timeOf(ticks)
  return outer
}

/**
 * Puts a context below another one: what it makes from now on descends from there.
 * @param {Context} context
 * @param {Context} parent
 */
function adopt (context, parent) {
  context.parent = parent
  const known = source.chainAt(context.chain)
  if (known === undefined || context.ref === 0) return
  const stack = context.stack
  const chain = source.intern(parent.chain, stack?.id ?? 0, known.kind) & CHAIN_BITS
  if (chain === 0) return
  context.chain = chain
  records.writeWord(context.ref, CHAIN, chain)
  records.writeWord(context.ref, CAUSE, parent.ref)
}

/** @param {number} ref @returns {number} the async id, or of a promise without one longstack's own */
function idOf (ref) {
  const low = (ref >>> 1) & (HALF - 1)
  if ((ref & 1) !== 0) return PROMISE_IDS + low
  const latest = source.latestId()
  if (latest < HALF / 2) return low
  const id = Math.floor(latest / HALF) * HALF + low
  return id - latest > HALF / 2 ? id - HALF : id
}

/** @param {number} ticks @returns {number} ms of the clock, NaN where it was not recorded */
const timeOf = (ticks) => ticks === 0 ? NaN : (ticks >>> 0) / TICKS

/** @param {object} promise @returns {Context | undefined} who resolved or rejected it, where that is known */
function settlerOf (promise) {
  const context = contextTag.read(promise)
  if (context === undefined || context.ref === 0 || !context.kind.promise) return undefined
  const found = records.findRecord(context.ref)
  if (found === undefined || (found.words[found.offset + FLAGS] & SETTLED) === 0) return undefined
  const settler = found.words[found.offset + DETAIL]
  return settler === 0 ? undefined : contextAt(settler)
}

/** The context of whatever it is: a resource, a promise, a request. */
const contextTag = {
  /** @param {object} object @returns {Context | undefined} */
  read (object) {
    const marked = marks.OnResource.read(object)
    if (marked !== undefined) return marked
    const ref = marks.OnPromise.read(object)
    if (ref !== undefined) return ref === 0 ? OWN_WORK : contextAt(ref)
    const id = marks.asyncIdOf(object)
    return id === undefined ? undefined : contextAt(id << 1)
  },

  /** Does the object bear its context itself? @param {object} object */
  marks: (object) => marks.OnResource.read(object) !== undefined || marks.OnPromise.read(object) !== undefined,

  /** @param {object} object @param {Context} context */
  write (object, context) {
    marks.OnResource.rewrite(object, context)
  }
}

module.exports = {
  Context,
  adopt,
  cachedContext,
  connectSource,
  contextAt,
  contextOf,
  contextOfChain,
  loopOf,
  OWN_WORK,
  root,
  settlerOf,
  contextTag,
  typeOfStep
}
