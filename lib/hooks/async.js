'use strict'

// What Node and V8 tell of asynchronous steps, and which step runs now. The whole hot path: `initResource`,
// `initPromise`, `enter`, `leave` and `settle` run for every resource and promise of the program. They write numbers into
// the records (context/records.js) and make no object. bench/run.js measures them in whole, bench/awaits.js the promises.
//
// Where Node can leave promises out of async_hooks (24 and later), V8's own promise hooks tell of them, at a third of the
// price; else async_hooks does. Which of the functions below serve as hooks is chosen in `install`.
//
// The step that runs now is longstack's own register: `chain`, `cause`, `span` and `run`, saved by `enter`, put back by
// `leave`. Where nothing has been entered (the main script, an accepted connection, in light mode what follows an await),
// `look` finds it.

const { AsyncLocalStorage, AsyncResource, asyncWrapProviders, createHook, executionAsyncId, executionAsyncResource, triggerAsyncId } =
  require('node:async_hooks')
const { types } = require('node:util')
const { now } = require('../context/clock')
const guard = require('../context/guard')
const records = require('../context/records')
const { adopt, cached, contextAt, contextOf, muted, root, stamp } = require('../context/context')
const { AWAIT, kindCount, kindOf, resetKinds } = require('../context/kinds')
const { OnPromise } = require('../context/stamp')
const { requireRoom } = require('../stacks/stack-room')
const { called, entered } = require('./light')
const { turnOf } = require('./loops')
const { createSettlements } = require('./settlements')

const {
  MASK, SHIFT, REF, CHAIN, CAUSE, TRIGGER, SPAN, TIME, DETAIL, FLAGS, RUN, SETTLED_RUN, SETTLED_SPAN,
  LIVE, PASSED, AWAITED, ONE_SHOT, SPECIAL, TICK, TIMER, ENTERED, ANSWERED, CALLED, DETAILED, PARSER, INCOMING,
  NO_CHAIN, ROOT_CHAIN, MUTED_CHAIN, EARLY_CHAIN, FIRST_CHAIN, TICKS, resources, promises
} = records
const FOLD_SHIFT = 24 // of what an engine answers to a step, see stacks/capture.js
const CHAIN_BITS = (1 << FOLD_SHIFT) - 1
const HELD = 64 // contexts with a detail that are held; a power of two
const KINDS = 10_000 // distinct type names; programs may make them up
const LEVEL = 5 // numbers saved a level
const LEVELS = 1024
const TIMED = 1
const WATCHED = 2
const ORPHANED = 4
const HEAD = 1 // of a request has come, and nothing of it since
const BODY = 2
const UNKNOWN = -1 // in place of a reference, for a promise from before enabling
const ROOM_KB = 64 // on the stack, for what begins and ends a callback

/** @type {(value: any) => boolean} */
const isError = /** @type {any} */ (Error).isError ?? types.isNativeError // the first is a built-in of V8's from Node 24 on

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('../context/kinds').Kind} Kind
 *
 * @typedef {object} Hook
 * @property {(context: any) => void} [init]
 * @property {(context: any) => void} [before]
 * @property {(context: any) => void} [after]
 *
 * @typedef {object} Mode
 * @property {boolean} light without hooks of promises
 * @property {boolean} native V8's promise hooks instead of those of async_hooks
 *
 * @typedef {object} Parts what the events are for. All but `capture`, `loop` and `wanted` are called seldom.
 * @property {(type: string) => boolean} wanted the filter
 * @property {import('../stacks/capture').Capture} capture
 * @property {() => import('../spans/loop-time').LoopTime} loop whose code runs, while spans are timed
 * @property {Map<number, () => void>} watched what is asked when a resource has run, by async id, while spans are timed
 * @property {ReturnType<typeof import('./markers').createMarkers>} markers the allocation clock: where runs begin and end
 * @property {import('../handles/registry').Registry} registry
 * @property {(context: Context, resource: object) => void} opened a resource that stays open was made
 * @property {(context: Context) => void} connecting a connect request runs for the first time
 * @property {(error: object, context: Context) => void} passed an error was handed to nextTick
 * @property {(stream: unknown, headers: unknown) => number} streamed a stream of HTTP/2 is about to be told of; number of the words of its request, 0: none
 * @property {((context: Context, tick: object) => void) | undefined} ticked something is put off to a tick
 * @property {(reason: unknown, context: Context, promise: { ref: number, chain: number, span: number }) => void} rejected
 *   a promise was, in this context
 * @property {(time: number) => void} turn the event loop came round
 * @property {{ format: unknown }} force what Error.prepareStackTrace is while errors have chains
 * @property {() => void} replaced it is something else
 * @property {((time: number, context: Context) => void) | undefined} began a callback begins, where its length is watched
 * @property {(error: unknown) => void} failed a hook could not do its work
 * @property {(hook: Hook, stage: 'init' | 'before' | 'after', context: Context) => void} tell
 * @property {() => ReturnType<typeof import('./native').createNativeHooks>} native hooks of other addons
 * @property {() => boolean} isNativeInUse another addon has asked for them
 * @property {() => boolean} canLeavePromises this Node can leave promises out of async_hooks
 */

/** What is carried across await in light mode. */
class Carried {
  /** @param {number} chain @param {number} cause @param {number} span @param {number} run */
  constructor (chain, cause, span, run) {
    this.chain = chain
    this.cause = cause
    this.span = span
    this.run = run
  }
}

/** @param {Parts} parts */
function createAsyncLayer (parts) {
  const { capture, watched, registry, force, markers } = parts
  const { clock } = capture
  const { mark } = markers

  // The step that runs now.
  let chain = NO_CHAIN
  let cause = 0 // reference of its record
  let span = 0 // number of its span
  let run = 0 // number of this run in the log of its span
  let running = 0 // reference of the resource or promise that was entered last
  let depth = 0
  /** the steps that it interrupts: chain, cause, span, run, running */
  const saved = new Int32Array(LEVEL * LEVELS)

  /** @type {Map<string, Kind>} */
  let kinds = new Map()
  let promiseKind = kindOf('PROMISE', false)
  let awaitKind = kindOf(AWAIT, false)
  let tickKind = kindOf('TickObject', false)
  let writeKind = kindOf('REQUEST', false)
  let promiseNumber = 0
  let left = 0 // reference of the step that was left last

  /** spans are timed */
  let timing = false
  /** asked only while spans are timed @type {import('../spans/loop-time').LoopTime} */
  let loop
  /** what else is to be done where a callback begins: TIMED, WATCHED, ORPHANED */
  let attentive = 0
  const settlements = createSettlements({ capture, rejected: (reason, context, promise) => parts.rejected(reason, context, promiseOf(promise)) })
  /** the addon is there to look at what was settled */
  let looksAtSettled = false
  /** carries the step across await in light mode @type {AsyncLocalStorage<Carried> | undefined} */
  let carrier
  /** the function that Node calls: frames from it on are left out @type {Function} */
  let outermost = initResource
  /** a handle that was just made while nothing executed: reference */
  let orphan = 0
  let orphanType = ''
  /** contexts with a detail, held for a while @type {Context[]} */
  const held = []
  let heldCount = 0
  /** timers that were closed and run again (timer.refresh), with another id @type {WeakSet<object>} */
  const reused = new WeakSet()

  // The hot path.

  /**
   * @param {number} asyncId
   * @param {string} type
   * @param {number} trigger
   * @param {any} resource
   */
  function initResource (asyncId, type, trigger, resource) {
    try {
      const ref = asyncId << 1
      const at = ((ref >> 1) & MASK) << SHIFT
      if ((resources[at + FLAGS] & (LIVE | PASSED)) !== 0) records.keep(resources, at)
      if (guard.busy) return mute(resources, at, ref)
      if (depth === 0) look(trigger)
      const kind = type === 'TickObject' ? tickKind : type === 'PROMISE' ? (trigger === executionAsyncId() ? promiseKind : awaitKind) : kinds.get(type) ?? addKind(type)
      resources[at + REF] = ref
      resources[at + TRIGGER] = trigger << 1
      resources[at + SPAN] = span
      resources[at + CAUSE] = cause
      if (timing) resources[at + RUN] = run
      if (!kind.wanted || chain === MUTED_CHAIN) {
        resources[at + CHAIN] = chain
        resources[at + FLAGS] = PASSED | (kind.flags & (ONE_SHOT | CALLED | ENTERED | TICK))
        return
      }
      const step = capture.step(chain, kind.number, outermost)
      resources[at + CHAIN] = step & CHAIN_BITS
      resources[at + TIME] = clock[0] * TICKS
      resources[at + DETAIL] = 0
      resources[at + FLAGS] = kind.flags | (step > CHAIN_BITS ? turnOf(resources, at, step, cause) : 0)
      if (kind.special) special(kind, asyncId, at, trigger, resource)
    } catch (error) {
      parts.failed(error) // the resource then stays without a record, the program unharmed
    }
  }

  /** A promise was made, where V8's own hooks tell. @param {object} promise @param {object | undefined} parent that it waits for */
  function initPromise (promise, parent) {
    try {
      if (guard.busy) {
        OnPromise.write(promise, 0)
        return
      }
      promiseNumber = (promiseNumber + 1) & 0x3fffffff
      const ref = promiseNumber << 1 | 1
      const at = (promiseNumber & MASK) << SHIFT
      if ((promises[at + FLAGS] & LIVE) !== 0) records.keep(promises, at)
      if (depth === 0) look(0)
      OnPromise.write(promise, ref)
      promises[at + REF] = ref
      promises[at + SPAN] = span
      promises[at + CAUSE] = cause
      if (timing) promises[at + RUN] = run
      if (chain === MUTED_CHAIN) {
        promises[at + CHAIN] = chain
        promises[at + FLAGS] = PASSED
        return
      }
      const kind = parent === undefined ? promiseKind : awaitKind
      const step = capture.step(chain, kind.number, initPromise)
      promises[at + CHAIN] = step & CHAIN_BITS
      promises[at + TIME] = clock[0] * TICKS
      promises[at + DETAIL] = 0
      promises[at + TRIGGER] = parent === undefined ? 0 : OnPromise.read(parent) ?? 0
      promises[at + FLAGS] = kind.flags | (step > CHAIN_BITS ? turnOf(promises, at, step, cause) : 0)
    } catch (error) {
      parts.failed(error)
    }
  }

  /** @param {number} asyncId its callback is about to run */
  function beforeResource (asyncId) {
    try {
      if (iterations[0] !== iteration) cameRound()
      else if (depth === 0 && force.format !== undefined && Error.prepareStackTrace !== force.format) parts.replaced()
      const ref = asyncId << 1
      const at = ((ref >> 1) & MASK) << SHIFT
      if (resources[at + REF] === ref) enter(ref, resources, at)
      else enterOlder(ref, asyncId)
    } catch (error) {
      parts.failed(error)
    }
  }

  /** @param {object} promise what waits for it is about to run */
  function beforePromise (promise) {
    try {
      const ref = OnPromise.read(promise)
      if (ref === undefined) return enterUnnumbered(promise)
      const at = ((ref >> 1) & MASK) << SHIFT
      if (promises[at + REF] === ref) enter(ref, promises, at)
      else enterOlder(ref, 0)
    } catch (error) {
      parts.failed(error)
    }
  }

  /**
   * A callback of a resource or promise begins.
   * @param {number} ref
   * @param {Int32Array} words
   * @param {number} at
   */
  function enter (ref, words, at) {
    push(ref)
    const flags = words[at + FLAGS]
    chain = words[at + CHAIN]
    cause = (flags & PASSED) !== 0 ? words[at + CAUSE] : ref
    span = words[at + SPAN]
    if (attentive !== 0) attend(ref, flags, words, at)
    if ((flags & (SPECIAL | DETAILED | ENTERED | PARSER)) !== 0) callback(ref, flags, words, at)
    if (markers.on) mark(chain, cause, span)
  }

  /** @param {number} ref of what is entered */
  function push (ref) {
    if (depth === LEVELS) depth = 0 // more than the stack has room for: what is on top was never left
    const level = depth++ * LEVEL
    saved[level] = chain
    saved[level + 1] = cause
    saved[level + 2] = span
    saved[level + 3] = run
    saved[level + 4] = running
    running = ref
  }

  /** @param {number} asyncId its callback is over */
  function afterResource (asyncId) {
    try {
      const ref = asyncId << 1
      const at = ((ref >> 1) & MASK) << SHIFT
      if (resources[at + REF] === ref) {
        const flags = resources[at + FLAGS]
        if ((flags & ONE_SHOT) !== 0) resources[at + FLAGS] = flags & ~(LIVE | PASSED)
        else if ((flags & TIMER) !== 0) timerRan(ref, asyncId, at)
      } else {
        records.ended(ref)
      }
      leave(ref)
      if (watched.size > 0) watched.get(asyncId)?.()
    } catch (error) {
      parts.failed(error)
    }
  }

  /** @param {object} promise what waited for it has run */
  function afterPromise (promise) {
    try {
      const ref = OnPromise.read(promise) ?? UNKNOWN
      const at = ((ref >> 1) & MASK) << SHIFT
      if (promises[at + REF] === ref) promises[at + FLAGS] &= ~LIVE
      else records.ended(ref)
      leave(ref)
    } catch (error) {
      parts.failed(error)
    }
  }

  /** @param {number} ref of what was entered */
  function leave (ref) {
    if (running !== ref && !unwind(ref)) return
    left = cause
    const level = --depth * LEVEL
    chain = saved[level]
    cause = saved[level + 1]
    span = saved[level + 2]
    run = saved[level + 3]
    running = saved[level + 4]
    if (depth === 0) leftAll()
    else if (timing && span !== loop.seq) loop.change(span, now())
    if (markers.on) mark(depth === 0 ? NO_CHAIN : chain, cause, span)
  }

  /** @param {any} promise @returns {number} reference of its record, 0: it has none */
  function refOfPromise (promise) {
    if (carrier !== undefined) return 0
    if (promiseHooks) return OnPromise.read(promise) ?? 0
    idSymbol ??= symbolOfIds(promise)
    return idSymbol === undefined ? 0 : promise[idSymbol] << 1
  }

  /** @param {any} promise @returns {{ ref: number, chain: number, span: number }} what is recorded of it, 0: nothing */
  function promiseOf (promise) {
    const ref = refOfPromise(promise)
    const found = ref === 0 ? undefined : records.find(ref)
    if (found === undefined) return { ref: 0, chain: 0, span: 0 }
    const { words, at } = found
    return { ref, chain: words[at + CHAIN], span: words[at + SPAN] }
  }

  /** Notes who resolved or rejected a promise. V8 tells before it sets the state. @param {any} promise */
  function settlePromise (promise) {
    try {
      if (guard.busy) return
      if (orphan !== 0) claim(refOfPromise(promise))
      const ref = refOfPromise(promise)
      if (ref !== 0) {
        const at = ((ref >> 1) & MASK) << SHIFT
        const words = promiseHooks ? promises : resources
        if (words[at + REF] === ref && words[at + CHAIN] !== MUTED_CHAIN) {
          words[at + FLAGS] = (words[at + FLAGS] & ~LIVE) | ANSWERED
          words[at + DETAIL] = depth === 0 ? 0 : cause
          if (timing) {
            words[at + SETTLED_RUN] = run
            words[at + SETTLED_SPAN] = span
          }
        }
      }
      if (chain === MUTED_CHAIN || !looksAtSettled) return
      settlements.note(promise, depth === 0 ? settlerNow() : cause)
    } catch (error) {
      parts.failed(error)
    }
  }

  // What is done seldom.

  /** [how often the event loop came round, ...]; counted by the addon where it can, see native/turns.cc */
  /** @type {Uint32Array} */
  let iterations = new Uint32Array(2)
  let counted = false
  let iteration = 0
  let promiseHooks = false
  /** promises can be left out of async_hooks: looked for once, for a program's own hook sees it @type {boolean | undefined} */
  let canLeave
  /** under which async_hooks keeps the id of a promise @type {symbol | undefined} */
  let idSymbol

  /** The event loop came round: nothing of what was entered before goes on, however it ended. */
  function cameRound () {
    iteration = iterations[0]
    depth = 0
    running = 0
    guard.busy = false
    if (timing) loop.fresh = true
    readSettled()
    clock[0] = now()
    markers.turn()
    parts.turn(clock[0])
  }

  /** Who rejected is known up to now. */
  function readSettled () {
    try {
      settlements.read()
    } catch (error) {
      parts.failed(error)
    }
  }

  /** Nothing is entered any more. */
  function leftAll () {
    if (!counted) iterations[0]++
  }

  /** @param {string} type @returns {Kind} */
  function addKind (type) {
    if (kindCount() > KINDS) forgetKinds()
    const kind = kindOf(type, parts.wanted(type === AWAIT ? 'PROMISE' : type))
    kind.entered = entered.has(type)
    kind.flags = (kind.handle ? 0 : LIVE) | (kind.oneShot ? ONE_SHOT : 0) | (kind.tick ? TICK : 0) | (kind.timer ? TIMER : 0) |
      (kind.handle && !kind.brief ? SPECIAL : 0) | (kind.detail !== undefined ? DETAILED : 0) | (kind.entered && carrier !== undefined ? ENTERED : 0) |
      (called.has(type) ? CALLED : 0) | (kind.awaited ? AWAITED : 0) | (type === 'HTTPINCOMINGMESSAGE' ? PARSER : 0)
    kinds.set(type, kind)
    return kind
  }

  function forgetKinds () {
    resetKinds()
    capture.reset()
    kinds = new Map()
    addKinds()
  }

  function addKinds () {
    promiseKind = addKind('PROMISE')
    awaitKind = addKind(AWAIT)
    tickKind = addKind('TickObject')
    writeKind = kindOf('REQUEST', false)
  }

  /** @param {Int32Array} words @param {number} at @param {number} ref of what longstack itself makes */
  function mute (words, at, ref) {
    words[at + REF] = ref
    words[at + CHAIN] = MUTED_CHAIN
    words[at + SPAN] = 0
    words[at + FLAGS] = PASSED | CALLED
  }

  /**
   * Finds the step that runs where nothing has been entered.
   * @param {number} trigger of what is being made
   */
  function look (trigger) {
    run = 0
    if (carrier !== undefined) {
      const carried = carrier.getStore()
      if (carried !== undefined) return takeCarried(carried)
    }
    const id = executionAsyncId()
    if (id === 1) return take(ROOT_CHAIN, 0, 0)
    if (id !== 0) return executes(id)
    // Nothing executes: an accepted connection has its server as the trigger, which is the cause.
    const found = trigger > 1 ? records.find(trigger << 1) : undefined
    if (found !== undefined) return takeRecord(trigger << 1, found.words, found.at)
    const opener = registry.opener(trigger)
    if (opener !== undefined) return take(opener.chain, opener.ref, 0)
    take('carried' in root ? ROOT_CHAIN : NO_CHAIN, 0, 0)
  }

  /** @param {number} nextChain @param {number} nextCause @param {number} nextSpan */
  function take (nextChain, nextCause, nextSpan) {
    chain = nextChain
    cause = nextCause
    span = nextSpan
  }

  /** @param {number} ref @param {Int32Array} words @param {number} at */
  function takeRecord (ref, words, at) {
    const passes = (words[at + FLAGS] & PASSED) !== 0
    take(words[at + CHAIN], passes ? words[at + CAUSE] : ref, words[at + SPAN])
  }

  /** In light mode. What follows an await is no callback: a new run of its span begins when the loop has waited. @param {Carried} carried */
  function takeCarried (carried) {
    take(carried.chain, carried.cause, carried.span)
    run = carried.run
    if (!timing) return
    if (span !== loop.seq) loop.change(span, now())
    if (span !== 0) run = carried.run = loop.resume(run)
  }

  /** A resource executes that was never entered: it was made before longstack was enabled. @param {number} id */
  function executes (id) {
    const ref = id << 1
    const found = records.find(ref)
    if (found !== undefined) return takeRecord(ref, found.words, found.at)
    recordEarly(id)
    take(EARLY_CHAIN, ref, 0)
  }

  /** @param {number} id */
  function recordEarly (id) {
    const ref = id << 1
    const at = ((ref >> 1) & MASK) << SHIFT
    if ((resources[at + FLAGS] & (LIVE | PASSED)) !== 0) records.keep(resources, at)
    resources[at + REF] = ref
    resources[at + CHAIN] = EARLY_CHAIN
    resources[at + CAUSE] = 0
    resources[at + TRIGGER] = triggerAsyncId() << 1
    resources[at + SPAN] = 0
    resources[at + TIME] = 0
    resources[at + FLAGS] = LIVE
  }

  /** A callback of what the ring does not hold any more, or never held. @param {number} ref @param {number} asyncId 0: a promise */
  function enterOlder (ref, asyncId) {
    const kept = ref === 0 || ref === UNKNOWN ? undefined : records.find(ref)
    if (kept !== undefined) return enter(ref, kept.words, kept.at)
    const before = asyncId === 0 ? undefined : OnPromise.read(executionAsyncResource()) // made while V8's hooks told of promises
    const record = before === undefined ? undefined : records.find(before)
    if (record !== undefined) return enter(ref, record.words, record.at)
    const opener = asyncId === 0 ? undefined : registry.opener(asyncId)
    if (opener === undefined && asyncId > 1 && !guard.busy) recordEarly(asyncId)
    push(ref)
    if (opener !== undefined) take(opener.chain, opener.ref, opener.spanNumber)
    else if (asyncId > 1) take(EARLY_CHAIN, ref, 0)
    else take(ref === UNKNOWN ? EARLY_CHAIN : MUTED_CHAIN, 0, 0)
    run = 0
    if (timing) {
      loop.callback(span, now())
      loop.callbackRef = ref
      loop.callbackChain = opener?.chain ?? 0
    }
    if (opener !== undefined || carrier !== undefined) callback(ref, SPECIAL | DETAILED | ENTERED, resources, 0)
    if (markers.on) mark(chain, cause, span)
  }

  /**
   * A promise that V8's hooks have not seen: it is older than longstack, or was made while async_hooks told of promises.
   * @param {any} promise
   */
  function enterUnnumbered (promise) {
    idSymbol ??= symbolOfIds(promise)
    const id = idSymbol === undefined ? undefined : promise[idSymbol]
    const found = typeof id === 'number' ? records.find(id << 1) : undefined
    if (found === undefined) return enterOlder(UNKNOWN, 0)
    enter(UNKNOWN, found.words, found.at)
    if (cause === UNKNOWN) cause = id << 1
  }

  /** Some entered it without leaving: what was above is not running any more. @param {number} ref @returns {boolean} it is found */
  function unwind (ref) {
    for (let level = depth - 1; level > 0; level--) {
      if (saved[level * LEVEL + 4] !== ref) continue
      depth = level
      running = ref
      markers.forget() // what ran since has no markers of its own
      return true
    }
    return false
  }

  /**
   * A resource of a kind that asks for more was made.
   * @param {Kind} kind
   * @param {number} asyncId
   * @param {number} at
   * @param {number} trigger
   * @param {any} resource
   */
  function special (kind, asyncId, at, trigger, resource) {
    if (kind.tick) return tickMade(at, resource)
    if (kind.timer) timerMade(at, resource)
    if (chain === NO_CHAIN && trigger === 0 && (kind.type === 'FILEHANDLE' || kind.type === 'DIRHANDLE' || kind.type === 'HTTP2STREAM')) {
      orphan = asyncId << 1
      orphanType = kind.type
      attentive |= ORPHANED
    }
    if (!kind.handle) return
    // Last: a handle that is still being made must not be asked anything, a callback might.
    if (kind.brief) registry.made(asyncId << 1, kind.type, clock[0], resource)
    else guarded(() => open(asyncId << 1, resource))
  }

  /**
   * A handle bears its context: its id may change (Node's agent resets that of a connection that it uses again), and some
   * do not tell it.
   * @param {number} ref
   * @param {object} resource
   */
  function open (ref, resource) {
    const context = contextAt(ref)
    if (context === undefined) return
    stamp.write(resource, context)
    parts.opened(context, resource)
  }

  /** @param {() => void} work */
  function guarded (work) {
    guard.busy = true
    try {
      work()
    } catch (error) {
      parts.failed(error)
    } finally {
      guard.busy = false
    }
  }

  /** @param {number} at @param {any} timer */
  function timerMade (at, timer) {
    if (timer._idleStart !== null) reused.add(timer) // lib/internal/timers.js sets it when the timer is put into a list
    const delay = timer._idleTimeout
    if (typeof delay !== 'number') return
    resources[at + DETAIL] = delay
    records.noteDelay(resources[at + CHAIN], delay)
  }

  /**
   * An error that Node's core hands to nextTick was just made there. Others may be old; attribution uses this for
   * errors without a frame of the program only.
   * @param {number} at
   * @param {any} tick
   */
  function tickMade (at, tick) {
    const { args } = tick
    const isList = Array.isArray(args)
    if (isList && args.length > 3 && args[1] === 'stream') guarded(() => streamMade(at, args))
    if (timing && parts.ticked !== undefined) guarded(() => parts.ticked?.(/** @type {Context} */ (contextAt(resources[at + REF])), tick))
    if (!isList) return
    for (let i = 0; i < args.length; i++) {
      const value = args[i]
      if (typeof value !== 'object' || value === null || !isError(value)) continue
      const context = contextOf(chain, cause, span)
      if (context !== undefined) parts.passed(value, context)
    }
  }

  /** A timer's turn is over: it is closed, or its next turn comes. @param {number} ref @param {number} asyncId @param {number} at */
  function timerRan (ref, asyncId, at) {
    const timer = /** @type {any} */ (executionAsyncResource())
    if (timer._destroyed === true) {
      resources[at + FLAGS] &= ~LIVE
      registry.closed(asyncId)
    } else {
      const context = contextAt(ref)
      if (context === undefined) return
      context.repeats++
      guarded(() => registry.repeated(context, timer, now()))
    }
  }

  /**
   * A callback of a handle begins, or any in light mode.
   * @param {number} ref
   * @param {number} flags
   * @param {Int32Array} words of its record
   * @param {number} at
   */
  function callback (ref, flags, words, at) {
    if ((flags & PARSER) !== 0 && words[at + DETAIL] !== 0) resumeRequest(words, at)
    if (carrier !== undefined && (flags & ENTERED) !== 0 && ((flags & TICK) === 0 || isOfProgram(chain))) {
      carrier.enterWith(new Carried(chain, cause, span, run))
    }
    if ((flags & (SPECIAL | DETAILED)) === 0 || guard.busy || chain === MUTED_CHAIN) return
    const isKnown = registry.active(ref >>> 1, clock[0])
    if (isKnown && (flags & DETAILED) === 0) return
    guarded(() => {
      const context = contextAt(ref)
      if (context === undefined) return
      if (!isKnown) registry.active(context.asyncId, now())
      if (context.kind.detail === undefined || context.detail !== undefined) return
      context.detail = context.kind.detail(executionAsyncResource())
      held[heldCount++ & (HELD - 1)] = context // its detail lives in the object
      parts.connecting(context)
    })
  }

  /**
   * The parser of a connection brings more of the request that came last, or is done with it. What comes next after the head
   * of a request is its body or its end; to look costs more than all else here.
   * @param {Int32Array} words of the parser's record
   * @param {number} at
   */
  function resumeRequest (words, at) {
    const state = words[at + INCOMING]
    if (state === HEAD) words[at + INCOMING] = BODY
    else if (state === BODY && !isIncoming(executionAsyncResource())) words[at + INCOMING] = 0
    if (words[at + INCOMING] !== 0) cause = words[at + DETAIL]
  }

  /**
   * HTTP/2 tells the program of a request in a tick (onSessionHeaders in Node's lib/internal/http2/core.js).
   * @param {number} at index of the tick's record
   * @param {unknown[]} args
   */
  function streamMade (at, args) {
    const session = records.find(cause)
    const number = session === undefined ? 0 : parts.streamed(args[2], args[3])
    if (session !== undefined && number !== 0) resources[at + CAUSE] = records.addRequest(session, clock[0] * TICKS, number)
  }

  /** A tick that Node made for itself is no part of a chain, and to carry it copies a map. @param {number} number of a chain */
  function isOfProgram (number) {
    return number >= FIRST_CHAIN && capture.isOfProgram(number)
  }

  /**
   * Where spans are timed, or callbacks watched.
   * @param {number} ref
   * @param {number} flags
   * @param {Int32Array} words
   * @param {number} at
   */
  function attend (ref, flags, words, at) {
    if (orphan !== 0) claim(cause)
    const isCallback = depth === 1 && (flags & CALLED) !== 0
    if (parts.began !== undefined && isCallback) parts.began(now(), contextOf(chain, cause, span) ?? root)
    if (!timing) return
    if (isCallback) {
      if (loop.fresh || span !== loop.seq) loop.callback(span, now())
      loop.callbackRef = ref
      loop.callbackChain = (flags & PASSED) !== 0 ? 0 : words[at + CHAIN]
    } else if (span !== loop.seq) loop.change(span, now())
    run = span === 0 ? 0 : loop.begin(flags, words, at)
    if ((ref & 1) === 0 && watched.size > 0) watched.get(ref >>> 1)?.()
  }

  /**
   * fs makes the handle of an opened file or directory before it enters the callback, or resolves the promise, of
   * the one who asked for it; HTTP/2 the stream of a request before it enters the session's. Where anything else runs first,
   * the request's head came in pieces, and nobody knows.
   * @param {number} ref of the callback, promise or session
   */
  function claim (ref) {
    const made = orphan
    orphan = 0
    attentive &= ~ORPHANED
    if (made === ref) return
    if (orphanType === 'FILEHANDLE' && cached(made) === undefined) return claimFile(made, ref)
    const orphaned = contextAt(made)
    const context = contextAt(ref)
    const isHttp2 = orphanType === 'HTTP2STREAM'
    if (orphaned === undefined || context === undefined || context === orphaned || context === muted) return
    if (!isHttp2 || context.type === 'HTTP2SESSION') adopt(orphaned, context)
  }

  /** A server opens some for each request: no context is made for them. @param {number} made @param {number} ref */
  function claimFile (made, ref) {
    const file = records.find(made)
    const opener = records.find(ref)
    if (file === undefined || opener === undefined) return
    const above = opener.words[opener.at + CHAIN]
    const own = capture.partsOf(file.words[file.at + CHAIN])
    if (above === NO_CHAIN || above === MUTED_CHAIN || own === undefined) return
    const joined = capture.intern(above, own[1], own[2]) & CHAIN_BITS
    if (joined === NO_CHAIN) return
    file.words[file.at + CHAIN] = joined
    file.words[file.at + CAUSE] = (opener.words[opener.at + FLAGS] & PASSED) !== 0 ? opener.words[opener.at + CAUSE] : ref
  }

  /** @returns {number} reference of the step that runs while nothing is entered */
  function settlerNow () {
    const carried = carrier === undefined || timing ? undefined : carrier.getStore()
    if (carried !== undefined) return carried.cause
    look(0)
    return cause
  }

  /** @type {ReturnType<typeof createTold> | undefined} */
  let told

  /** Around the functions above, while there are users' hooks or those of other addons: loaded with the first. */
  const createTold = () => require('./told').createTold({
    hooks: { init: initResource, before: beforeResource, after: afterResource },
    parts,
    guarded,
    running: () => running,
    recorded: () => (cause === running || records.isRequest(cause)) && chain >= FIRST_CHAIN
  })

  // On and off.

  let enabled = false
  let isLight = false
  let isTold = false
  /** @type {Function[]} */
  let undo = []

  /** Chooses the functions that serve as hooks, and puts them in force. */
  function install () {
    isTold = isHooked()
    const hooks = isTold ? (told ??= createTold()) : { init: initResource, before: beforeResource, after: afterResource }
    outermost = hooks.init
    looksAtSettled = capture.rejection !== undefined
    canLeave ??= guard.run(parts.canLeavePromises)
    promiseHooks = !isLight && !isTold && capture.rejection !== undefined && canLeave
    // A null prototype: createHook would accept an inherited Object.prototype.destroy.
    const callbacks = { __proto__: null, init: hooks.init, before: hooks.before, after: hooks.after, trackPromises: !isLight && !promiseHooks }
    const hook = createHook(/** @type {any} */ (callbacks)).enable()
    undo.push(() => hook.disable())
    if (promiseHooks) {
      undo.push(promiseHooksOf().createHook({ init: initPromise, before: beforePromise, after: afterPromise, settled: settlePromise }))
    } else if (!isLight) {
      undo.push(promiseHooksOf().onSettled(settlePromise))
    } else if (capture.rejection !== undefined) {
      undo.push(promiseHooksOf().onSettled(settlePromise))
    }
  }

  /** Are there hooks of users, or might there be some of other addons? Those come and go without a word. */
  const isHooked = () => told?.listening() === true || parts.isNativeInUse()

  function uninstall () {
    for (const step of undo) step()
    undo = []
  }

  const layer = {
    root,
    readSettled,

    /** @param {boolean} light without hooks of promises */
    enable (light) {
      enabled = true
      isLight = light
      if (light) {
        carrier = new AsyncLocalStorage()
        look(0)
        carrier.enterWith(new Carried(chain === NO_CHAIN ? ROOT_CHAIN : chain, cause, span, 0)) // what finds nothing carried later on is from before
      }
      layer.refilter()
      install()
    },

    disable () {
      enabled = false
      uninstall()
      carrier?.disable()
      carrier = undefined
      settlements.forget()
      records.endRequests()
      left = 0
      markers.forget()
      depth = 0
      running = 0
      orphan = 0
      attentive &= ~ORPHANED
      watched.clear()
    },

    /** A new filter is in force. */
    refilter () {
      kinds = new Map()
      addKinds()
    },

    /** Whether callbacks are watched has changed. */
    watch () {
      attentive = parts.began === undefined ? attentive & ~WATCHED : attentive | WATCHED
    },

    /** From now on spans are timing, or no longer. @param {boolean} on */
    time (on) {
      if (on === timing) return
      timing = on
      attentive = on ? attentive | TIMED : attentive & ~TIMED
      if (on) (loop ??= parts.loop()).start(now())
      else loop.stop()
    },

    /**
     * Where the event loop counts how often it comes round.
     * @param {Uint32Array} counters
     * @param {boolean} byLoop the addon counts
     */
    count (counters, byLoop) {
      iterations = counters
      counted = byLoop
      iteration = counters[0]
    },

    /**
     * The rest of this run is part of a span. A connection's requests come on one resource: from now on that is this one's.
     * @param {import('../spans/span').Span} next
     * @returns {{ chain: number, ref: number }} the step in force
     */
    enter (next) {
      if (depth === 0) look(0)
      if (running === 0) return { chain, ref: cause } // what runs there is no part of a request
      span = next.seq
      records.writeWord(running, SPAN, span)
      if (records.isRequest(cause)) records.writeWord(cause, SPAN, span)
      const entry = registry.opener(running >>> 1)
      if (entry !== undefined) entry.spanNumber = span
      if (timing) {
        loop.change(span, now())
        run = loop.first()
      }
      carrier?.enterWith(new Carried(chain, cause, span, run))
      return { chain, ref: cause }
    },

    /**
     * A server got a request: the rest of this callback is its, and so is all that the connection's parser brings of it.
     * @param {number} number of its words, see context/requests.js
     * @returns {boolean} the first one of its connection
     */
    serve (number) {
      const parser = (running & 1) === 0 ? records.find(running) : undefined
      if (parser === undefined || (parser.words[parser.at + FLAGS] & PARSER) === 0) return false
      const request = records.addRequest(parser, clock[0] * TICKS, number)
      const isFirst = parser.words[parser.at + DETAIL] === 0
      parser.words[parser.at + DETAIL] = request
      parser.words[parser.at + INCOMING] = HEAD
      const carried = carrier?.getStore()
      if (carried !== undefined && carried.cause === cause) carried.cause = request
      cause = request
      if (markers.on) mark(chain, cause, span)
      return isFirst
    },

    /** What runs on a resource from now on is part of a span, or of none. @param {number} asyncId @param {number} number of the span */
    setSpan (asyncId, number) {
      records.writeWord(asyncId << 1, SPAN, number)
      const opener = registry.opener(asyncId)
      if (opener !== undefined) opener.spanNumber = number
    },

    /** @param {number} asyncId @returns {number} of the span that a resource is part of */
    spanOf: (asyncId) => records.readWord(asyncId << 1, SPAN) || (registry.opener(asyncId)?.spanNumber ?? 0),

    /** Who writes on a connection last is noted; its own callbacks read. @param {import('../handles/registry').Entry} entry */
    touched (entry) {
      if (depth === 0) look(0)
      if (chain < FIRST_CHAIN || cause === entry.context.ref) return
      entry.writeChain = capture.step(chain, writeKind.number, layer.touched) & CHAIN_BITS
      entry.writeRef = cause
      entry.writeTime = entry.active = now()
    },

    /** @returns {number} of the span in which code runs now */
    spanNumber () {
      if (depth === 0) look(0)
      return span
    },

    /**
     * Runs a function as part of a span, in a resource of its own.
     * @template T
     * @param {import('../spans/span').Span} next
     * @param {() => T} fn
     * @returns {T}
     */
    within (next, fn) {
      requireRoom(ROOM_KB) // Node aborts where an AsyncResource finds none (node#19859 and src/api/callback.cc)
      const resource = new AsyncResource('Span')
      const ref = resource.asyncId() << 1
      const found = records.find(ref)
      if (found === undefined || found.words[found.at + CHAIN] === MUTED_CHAIN) return resource.runInAsyncScope(fn)
      found.words[found.at + SPAN] = next.seq
      const context = contextAt(ref)
      if (context?.ref === ref) found.words[found.at + DETAIL] = next.seq
      if (context !== undefined) next.made(context)
      const storage = carrier
      const carried = new Carried(found.words[found.at + CHAIN], (found.words[found.at + FLAGS] & PASSED) !== 0 ? found.words[found.at + CAUSE] : ref, next.seq, 0)
      try {
        return resource.runInAsyncScope(storage === undefined
          ? fn
          : () => storage.run(carried, () => {
              carried.run = run
              return fn()
            }))
      } finally {
        if (depth === 0) look(0)
        if (timing && span !== loop.seq) loop.change(span, now())
      }
    },

    /** @param {Hook[]} hooks of users, in order */
    listen (hooks) {
      if (told !== undefined || hooks.length > 0) (told ??= createTold()).listen(hooks)
      layer.rehook()
    },

    /** There are hooks now, or none any more. */
    rehook () {
      if (!enabled || isTold === isHooked()) return
      uninstall()
      install()
    },

    /** @returns {Context | undefined} the running context */
    current () {
      readSettled()
      if (!enabled) return undefined
      if (depth === 0) look(0)
      const context = chain === NO_CHAIN ? undefined : contextOf(chain, cause, span)
      return context === muted ? undefined : context
    },

    /** Is what runs longstack's own, or comes of it? */
    muted () {
      if (depth === 0) look(0)
      return chain === MUTED_CHAIN
    },

    /** Runs what is no part of the program, nor what comes of it. Guarded. @param {() => void} work */
    apart: (work) => carrier === undefined ? work() : carrier.run(new Carried(MUTED_CHAIN, 0, 0, 0), work),

    /** The context that was left last: queueMicrotask reports its errors only after its `after`. @returns {Context | undefined} */
    left: () => left === 0 ? undefined : contextAt(left),

    /** What runs from here on is not known: an error has ended a callback. */
    lost: () => { if (markers.on) mark(NO_CHAIN, 0, 0) },

    /** Had a timer an id before its present one? @param {object} timer */
    isReused: (timer) => reused.has(timer),

    /** The executing resource. */
    resource: () => executionAsyncResource(),

    /** The step that runs: number of its chain, reference of its record. */
    step () {
      if (depth === 0) look(0)
      return { chain, ref: cause, run }
    }
  }
  return layer
}

/**
 * Is a request still coming in on a connection? Upgrades are none that a channel told of. What Node itself reads with every
 * callback (lib/_http_server.js, lib/_http_common.js) is read plainly.
 * @param {any} resource of a parser: HTTPServerAsyncResource
 */
function isIncoming (resource) {
  const incoming = resource?.socket?.parser?.incoming
  return typeof incoming === 'object' && incoming !== null && incoming.complete === false && incoming.upgrade !== true
}

function promiseHooksOf () {
  return require('node:v8').promiseHooks
}

/** Under which async_hooks keeps the id of a promise. @param {object} promise @returns {symbol | undefined} */
function symbolOfIds (promise) {
  return Object.getOwnPropertySymbols(promise).find((symbol) => symbol.description === 'async_id_symbol')
}

/** The provider types of the running Node. */
function providers () {
  return Object.keys(asyncWrapProviders)
}

/**
 * Binds a function to the context of now.
 * @template {(...args: any[]) => any} F
 * @param {F} fn
 * @returns {F}
 */
function bind (fn) {
  return AsyncResource.bind(fn, fn.name || 'trace.bind')
}

module.exports = { createAsyncLayer, providers, bind }
