'use strict'

// Whose data it is that comes on a connection of the program. Node's causality ends at the handle: what its
// data causes has the context in which the connection was made, on a pool that of whichever request came
// first. So each write has a record, an ask (context/request-records.js), and while one is outstanding the
// handle's callbacks run as a step of who wrote (`enterAnswer` in events.js).
//
// What is known of the present ask is in its record's STATE:
//
//   ONE      one step has asked since the last answer, or several of one flow
//   SHARED   several flows have: nothing says whose the next data is. Once that was seen of a connection, or
//            of another that was made at the same place, order proves nothing: answers may come in parts
//   UNKNOWN  the question was written in the connection's own callback: a queue of the driver's sends what
//            is next in line. Or from the buffer of the stream, when an earlier write was done
//
// No ask: nobody has written, or who has was answered, and is over.

const { now } = require('../context/clock')
const { typeOfStep } = require('../context/context')
const {
  CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_REF, CURRENT_RUN, CURRENT_SPAN, PRESENT_ERA, current
} = require('../context/current')
const records = require('../context/records')
const { findRecordOf } = require('../context/record-ids')
const { RequestLookup } = require('../context/request-of')
const { source } = require('../context/source')
const { own } = require('../objects')

const {
  ANSWERED, ANSWERED_AT, CALLED, CAUSE, CHAIN, CHAIN_BITS, DETAIL, FIRST_ASK, FIRST_CHAIN, FLAGS, LAST_ASK,
  OUTER, OWN_WORK_CHAIN, ROOT_CHAIN, RUN, SETTLED_FOR, SPAN, STATE, TICKS, findRecord
} = records

const ONE = 0
const SHARED = 1
const UNKNOWN = 2

const MAX_STEPS = 256 // up the causes of a step
const MAX_PLACES = 1000
const QUIET_MS = 1000 // without data: what comes then was not asked for by who was answered before

/**
 * @typedef {import('../handles/entry').Entry} Entry
 * @typedef {NonNullable<ReturnType<typeof findRecord>>} Record
 *
 * @typedef {object} Asker
 * @property {number} chain of the step that asks
 * @property {number} cause reference of it
 * @property {number} span number
 * @property {number} place chain of the write, below that of the step
 */

/**
 * @param {object} deps
 * @param {import('./async-hooks').AsyncParts['capture']} deps.capture
 * @param {ReturnType<typeof import('./kind-table').createKindTable>} deps.kindTable
 * @param {() => void} deps.resolve makes sure that the current step is known
 */
function createAsks ({ capture, kindTable, resolve }) {
  /** stacks that made connections on which several have asked at once @type {Set<object | undefined>} */
  const sharedPlaces = new Set()

  /**
   * Notes that the program writes on a connection.
   * @param {Entry} entry
   * @param {any} socket
   */
  function noteWrite (entry, socket) {
    resolve()
    const chain = current[CURRENT_CHAIN]
    if (chain === OWN_WORK_CHAIN || entry.isAccepted || isUsed(entry)) return
    if (socket.connecting === true) entry.isSentOnConnect = true
    else if (entry.isSentOnConnect) {
      // Node sends what waited for the connection, in its callback
      entry.isSentOnConnect = false
      if (isCompletion(chain)) return
    }
    entry.writeTime = now()
    const isUnknown = (chain < FIRST_CHAIN && chain !== ROOT_CHAIN) ||
      (isCompletion(chain) && own(socket, '_writableState')?.bufferProcessing === true) ||
      isOwnAnswer(entry.context.ref)
    if (isUnknown) return setUnknown(entry)
    const kind = kindTable.asked(entry.context.type)
    const place = capture.step(chain, kind, noteWrite) & CHAIN_BITS
    ask(entry, { chain, place, cause: current[CURRENT_CAUSE], span: current[CURRENT_SPAN] })
  }

  /**
   * Notes that a request of http or undici goes out on a connection.
   * @param {Entry} entry
   * @param {import('../context/context').Context} request
   */
  function noteUse (entry, request) {
    const parts = capture.partsOf(request.chain)
    if (parts === undefined) return
    const [chain, stack] = parts
    const place = capture.intern(chain, stack, kindTable.asked(entry.context.type)) & CHAIN_BITS
    const cause = request.ref !== 0 ? request.ref : request.parent?.ref ?? 0
    ask(entry, { chain, place, cause, span: request.spanNumber })
  }

  /** @param {Entry} entry @param {Asker} asker */
  function ask (entry, asker) {
    const last = findRecord(entry.ask)
    if (last === undefined) return add(entry, asker, ONE)
    const { words, offset } = last
    const isOutstanding = (words[offset + FLAGS] & ANSWERED) === 0
    if (words[offset + STATE] === ONE) {
      const isSame = words[offset + CAUSE] === asker.cause
      if (isOutstanding && isSame && isSamePlace(words[offset + CHAIN], asker.place)) return
      if (isSame || descends(asker.cause, words[offset + CAUSE])) {
        if (!isOutstanding) return add(entry, asker, ONE)
        if (!isSame) return // more of the same question
        return add(entry, { ...asker, place: placeless(asker.chain, entry) }, ONE)
      }
    }
    if (!isOutstanding && !entry.isShared && !sharedPlaces.has(entry.context.stack)) {
      return add(entry, asker, ONE)
    }
    share(entry, last, asker)
  }

  /**
   * Another flow asks while a question is outstanding, or may be.
   * @param {Entry} entry
   * @param {Record} last
   * @param {Asker} asker
   */
  function share (entry, last, asker) {
    const { words, offset } = last
    const state = words[offset + STATE]
    const lastRef = words[offset]
    const lookup = new RequestLookup()
    const request = state === ONE ? lookup.of(words[offset + CAUSE]) : 0
    if (request !== 0 && request === lookup.of(asker.cause)) { // of one request, but at two places
      const record = findRecord(request)
      if (record === undefined) return setUnknown(entry)
      const chain = record.words[record.offset + CHAIN]
      const ofRequest = { chain, place: placeless(chain, entry), cause: request, span: asker.span }
      return add(entry, ofRequest, ONE)
    }
    entry.isShared = true
    if (sharedPlaces.size < MAX_PLACES) sharedPlaces.add(entry.context.stack)
    const before = state === SHARED ? words[offset + LAST_ASK] : lastRef
    const isSame = state === SHARED && isSameFlow(lookup, asker.cause, records.readWord(before, CAUSE))
    const first = isSame ? words[offset + FIRST_ASK] : before
    const second = add(entry, asker, ONE)
    const shared = addUnasked(entry, state === UNKNOWN ? UNKNOWN : SHARED)
    shared.words[shared.offset + FIRST_ASK] = first
    shared.words[shared.offset + LAST_ASK] = second
  }

  /**
   * Makes data that comes from now on a part of a step.
   * @param {Entry} entry
   * @param {Asker} asker
   * @param {number} state
   * @returns {number} reference
   */
  function add (entry, asker, state) {
    const { ref, words, offset } = records.addAsk(entry.context.ref, capture.clock[0] * TICKS)
    words[offset + CHAIN] = asker.place
    words[offset + CAUSE] = asker.cause
    words[offset + SPAN] = asker.span
    words[offset + RUN] = current[CURRENT_RUN]
    words[offset + STATE] = state
    words[offset + FLAGS] = CALLED | current[PRESENT_ERA]
    setAsk(entry, ref)
    entry.lastAsk = ref
    return ref
  }

  /** @param {Entry} entry @param {number} state */
  function addUnasked (entry, state) {
    const asker = { chain: ROOT_CHAIN, place: placeless(ROOT_CHAIN, entry), cause: 0, span: 0 }
    const { lastAsk: known } = entry
    const ref = add(entry, asker, state)
    entry.lastAsk = state === UNKNOWN ? 0 : known
    return /** @type {Record} */ (findRecord(ref))
  }

  /** @param {Entry} entry */
  function setUnknown (entry) {
    const last = findRecord(entry.ask)
    const isOutstanding = last !== undefined && (last.words[last.offset + FLAGS] & ANSWERED) === 0
    if (isOutstanding && last.words[last.offset + STATE] === UNKNOWN) return
    addUnasked(entry, UNKNOWN)
  }

  /**
   * Returns the chain of an ask below a step where its place is not known.
   * @param {number} chain
   * @param {Entry} entry
   */
  function placeless (chain, entry) {
    return capture.intern(chain, 0, kindTable.asked(entry.context.type)) & CHAIN_BITS
  }

  /**
   * Whether the current step is the callback of what was written, or connected, before.
   * @param {number} chain
   */
  function isCompletion (chain) {
    if (chain < FIRST_CHAIN) return false
    const type = typeOfStep(chain, current[CURRENT_CAUSE])
    return type.endsWith('CONNECTWRAP') || type === 'WRITEWRAP'
  }

  return { noteWrite, noteUse }
}

/** Whether a request of http or undici uses a connection. @param {Entry} entry */
function isUsed ({ use }) {
  return use !== undefined && !use.isOver
}

/**
 * Sets the ask of a connection. Its handle's record has it as well, for as long as there is one.
 * @param {Entry} entry
 * @param {number} ref
 */
function setAsk (entry, ref) {
  const handle = findRecordOf(entry.context)
  entry.ask = ref
  if (handle !== undefined) handle.words[handle.offset + DETAIL] = ref
}

/**
 * Whether the current step is the callback of a connection, or what that has caused.
 * @param {number} connection reference of its handle
 */
function isOwnAnswer (connection) {
  if (current[CURRENT_REF] === connection && isOfConnection(current[CURRENT_CAUSE], connection)) return true
  let step = current[CURRENT_CAUSE]
  for (let i = 0; i < MAX_STEPS; i++) {
    if (step === 0 || records.isRequest(step)) return false
    if (isOfConnection(step, connection)) return true
    step = records.readWord(step, CAUSE)
  }
  return false
}

/**
 * Whether a step is a callback of a connection.
 * @param {number} step reference
 * @param {number} connection reference of its handle
 */
function isOfConnection (step, connection) {
  return step === connection || (records.isAsk(step) && records.readWord(step, OUTER) === connection)
}

/**
 * Whether a step was caused by another, however indirectly.
 * @param {number} ref
 * @param {number} ancestor
 */
function descends (ref, ancestor) {
  if (ancestor === 0) return false
  let step = ref
  for (let i = 0; i < MAX_STEPS && step !== 0; i++) {
    if (step === ancestor) return true
    step = records.readWord(step, CAUSE)
  }
  return false
}

/**
 * Whether two steps are of one request, or one has caused the other.
 * @param {RequestLookup} lookup
 * @param {number} ref
 * @param {number} earlier
 */
function isSameFlow (lookup, ref, earlier) {
  const request = lookup.of(ref)
  return (request !== 0 && request === lookup.of(earlier)) || descends(ref, earlier)
}

/**
 * Whether two writes of a step were made by the same call of the program.
 * @param {number} chain
 * @param {number} other
 */
function isSamePlace (chain, other) {
  return chain === other || callOf(chain) === callOf(other)
}

/** @param {number} chain @returns {string} the frames of the program's own code, from the innermost on */
function callOf (chain) {
  const frames = source.chainAt(chain)?.stack?.frames ?? []
  return frames.filter(({ kind }) => kind === 'user').slice(1).map(({ text }) => text).join('\n')
}

/**
 * Returns the ask of which a callback of a connection is a part: data has come.
 * @param {number} ref of the present ask, 0: none
 * @param {number} time ms of the clock
 * @returns {Record | undefined} undefined: nobody waits for an answer
 */
function answer (ref, time) {
  const record = findRecord(ref)
  if (record === undefined || isOver(record, time)) return undefined
  const { words, offset } = record
  words[offset + FLAGS] |= ANSWERED
  words[offset + ANSWERED_AT] = time
  if (words[offset + STATE] !== ONE) answer(words[offset + LAST_ASK], time)
  return record
}

/**
 * Whether who asked was answered and is over: the request was responded to, the span has ended, the promise
 * was settled that waited for the answer, or it is long ago.
 * @param {Record} record of the ask
 * @param {number} time ms of the clock
 */
function isOver ({ words, offset }, time) {
  if ((words[offset + FLAGS] & ANSWERED) === 0) return false
  if (time - words[offset + ANSWERED_AT] > QUIET_MS) return true
  const span = words[offset + SPAN]
  if (span !== 0 && source.spanAt(span) === undefined) return true
  const cause = words[offset + CAUSE]
  const settled = words[offset + SETTLED_FOR]
  if (settled !== 0 && cause !== 0 && (descends(cause, settled) || descends(settled, cause))) return true
  const request = new RequestLookup().of(cause)
  return request !== 0 && source.isAnswered(request)
}

/**
 * Nothing more comes for a request that went out on a connection.
 * @param {Entry} entry
 */
function endUse (entry) {
  setAsk(entry, 0)
}

/**
 * Notes in the ask of which the current step is a part that it has settled a promise.
 * @param {number} maker reference of the step that made the promise
 */
function noteSettled (maker) {
  records.writeWord(current[CURRENT_CAUSE], SETTLED_FOR, maker)
}

module.exports = { ONE, SHARED, UNKNOWN, answer, createAsks, endUse, isOfConnection, noteSettled }
