'use strict'

// Notes who writes on connections of the program: the asks of core/asks.js.

const { ChainValues } = require('../core/chain-values')
const { now } = require('../core/clock')
const { contextAt, typeOfStep } = require('../core/context')
const {
  DUE_MS, ONE, QUIET_MS, SHARED, UNKNOWN, descends, distanceToAnswer, isOutstanding, isSameFlow, setAsk
} = require('../core/asks')
const {
  CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_ENTRY, CURRENT_SPAN, PRESENT_ERA, current
} = require('../core/current')
const records = require('../core/records')
const { emit, on } = require('../core/on')
const { requestOf } = require('../core/request-of')
const { source } = require('../core/source')
const { own } = require('../objects')
const capture = require('../stacks/capture')
const { isProgram } = require('../stacks/frames')
const kindTable = require('../core/kind-table')
const { resolve } = require('../core/lookup')

const {
  ANSWERED, CALLED, CAUSE, CHAIN, CHAIN_BITS, DUE, FIRST_ASK, FIRST_CHAIN, FLAGS, LAST_ASK, OWN_WORK_CHAIN,
  ROOT_CHAIN, RUN, SPAN, STATE, TICKS, findRecord
} = records

const MAX_PLACES = 1000
const MAX_STEPS = 8 // between an answer and a write, that are told
const noParts = [0, 0, 0]
/** of a package, that gives back what a pool lent */
const RELEASE = /(?:^|[.# ])_?release(?:Connection|Client|Resource)?$/i

// Whether the writer is who asks, by the chain of the write. Each is looked at once.
const ASKS = 1
const HANDS_ON = 2
let writers = new ChainValues()
on('forgetting', () => { writers = new ChainValues() })

/**
 * @typedef {import('../core/entry').Entry} Entry
 * @typedef {NonNullable<ReturnType<typeof findRecord>>} Record
 *
 * @typedef {object} Asker
 * @property {number} chain of the step that asks
 * @property {number} cause reference of it
 * @property {number} span number
 * @property {number} place chain of the write, below that of the step
 */

/** stacks that made connections on which several have asked at once @type {Set<object | undefined>} */
const sharedPlaces = new Set()

/**
 * Notes that the program writes on a connection.
 * @param {Entry} entry
 * @param {any} socket
 * @param {boolean} isHeld it goes out once the connection is there
 * @returns {boolean} whether listeners of `asked` were called
 */
function noteWrite (entry, socket, isHeld) {
  resolve()
  const chain = current[CURRENT_CHAIN]
  if (chain === OWN_WORK_CHAIN || !isClient(entry, socket)) return false
  if (entry.use?.isOver === false) return false // a request of http or undici uses it
  entry.writeTime = now()
  const buffer = isCompletion(chain) ? own(socket, '_writableState') : undefined
  const isBuffered = buffer?.bufferProcessing === true
  if (isBuffered || (chain < FIRST_CHAIN && chain !== ROOT_CHAIN)) {
    setUnknown(entry, isBuffered ? buffer.bufferedRequestCount : 1)
    emit('asked', entry, 0, isHeld, 0)
    return true
  }
  const kind = kindTable.asked(entry.context.type)
  const place = capture.step(chain, kind, noteWrite) & CHAIN_BITS
  const hasData = own(socket, '_readableState')?.dataEmitted === true
  const distance = hasData ? distanceToAnswer(entry.context.ref) : -1
  const cause = current[CURRENT_CAUSE]
  let isKnown = !handsOn(place)
  if (!isKnown) setUnknown(entry)
  else if (distance === -1) ask(entry, { chain, place, cause, span: current[CURRENT_SPAN] })
  else isKnown = noteInAnswer(entry, place, distance)
  emit('asked', entry, isKnown && distance === -1 ? place : 0, isHeld, isKnown ? place : 0)
  return true
}

/**
 * Whether a pool writes while a connection is given back: for who waits in line, not for who gives it back.
 * @param {number} place chain of the write
 */
function handsOn (place) {
  let writer = writers.get(place)
  if (writer === 0) {
    const isRelease = framesOf(place).some(({ kind, functionName = '' }) => {
      return kind === 'module' && RELEASE.test(functionName)
    })
    writer = isRelease ? HANDS_ON : ASKS
    writers.set(place, writer)
  }
  return writer === HANDS_ON
}

/**
 * Notes a write that a callback of its own connection has caused: a question if code of the program lies
 * between the two, else a queue of the driver's sends what is next in line. Whose answer the callback brought
 * does not prove who asks: a pool hands the connection on there, too, and calls code of another flow. So the
 * chain of the question begins at the callback.
 * @param {Entry} entry
 * @param {number} write chain of the write
 * @param {number} distance steps from the write up to the callback
 * @returns {boolean} it is a question
 */
function noteInAnswer (entry, write, distance) {
  const chains = [write]
  const step = current[CURRENT_CAUSE]
  for (let each = step; chains.length <= distance; each = records.readWord(each, CAUSE)) {
    chains.push(records.readWord(each, CHAIN))
  }
  const driver = framesOf(chains[distance]).findLast(isProgram)
  const isOfDriver = driver === undefined || !chains.some((chain) => framesOf(chain).some((frame) => {
    // The code that listens to the connection is the driver's
    return frame.kind === 'user' && (driver.kind !== 'user' || frame.fileName !== driver.fileName)
  }))
  if (isOfDriver) {
    setUnknown(entry)
    return false
  }
  const last = records.readWord(entry.ask, CAUSE)
  const isAgain = records.isAsk(last) && records.readWord(last, FIRST_ASK) === step
  const cause = isAgain ? last : addAnswered(entry, step)
  const asker = { ...nobody(entry), cause }
  for (const each of chains.slice(0, MAX_STEPS).reverse()) {
    const [, stack, kind] = capture.partsOf(each) ?? noParts
    asker.chain = asker.place
    asker.place = capture.intern(asker.chain, stack, kind) & CHAIN_BITS
  }
  ask(entry, asker)
  return true
}

/**
 * Notes that a request of http or undici goes out on a connection.
 * @param {Entry} entry
 * @param {import('../core/context').Context} request
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
  if (entry.unseenUntil !== 0 && isUnseen(entry)) return askUnseen(entry, asker.cause)
  const last = findRecord(entry.ask)
  if (last === undefined) return add(entry, asker, ONE)
  const { words, offset } = last
  const isWaiting = isOutstanding(last, entry.dueSince, capture.clock[0])
  if (words[offset + STATE] === ONE) {
    const isSame = words[offset + CAUSE] === asker.cause &&
      (asker.cause !== 0 || capture.partsOf(words[offset + CHAIN])?.[0] === asker.chain) // 0: as of messages
    if (isWaiting && isSame && isSamePlace(words[offset + CHAIN], asker.place)) {
      if (words[offset + CHAIN] === asker.place) addDue(entry, last, 1) // one more, as in a loop
      return
    }
    if (isSame || descends(asker.cause, words[offset + CAUSE])) {
      if (!isWaiting) return add(entry, asker, ONE)
      if (!isSame && !framesOf(asker.place).some(isUser)) return // more of the same question
      const second = add(entry, asker, ONE)
      if (!isOfQueue(second, words[offset + CAUSE]) && !isOfQueue(words[offset], words[offset + CAUSE])) {
        return join(entry, last, asker)
      }
    }
  }
  if (!isWaiting && !entry.isShared && !sharedPlaces.has(entry.context.stack)) {
    return add(entry, asker, ONE)
  }
  share(entry, last, asker)
}

/**
 * Whether a question may be of another request than what led to it: a queue may have begun the job that asks.
 * @param {number} ref of the ask
 * @param {number} [step] reference: it may have begun in that step, or later; left out: in any
 */
function isOfQueue (ref, step) {
  const start = source.startOf(contextAt(ref))
  return start !== undefined && (step === undefined || descends(start.ref, step))
}

/**
 * A step asks another question while one is outstanding, or what it has caused does: what comes is for one of
 * them, and so a part of that step.
 * @param {Entry} entry
 * @param {Record} last
 * @param {Asker} asker
 */
function join (entry, { words, offset }, asker) {
  const { [offset + CAUSE]: cause, [offset + SPAN]: span, [offset + DUE]: due } = words
  const chain = cause === asker.cause ? asker.chain : records.readWord(cause, CHAIN) || ROOT_CHAIN
  const second = entry.lastAsk
  const joined = findRecord(add(entry, { chain, place: placeless(chain, entry), cause, span }, ONE))
  entry.lastAsk = second
  if (joined === undefined) return
  joined.words[joined.offset + LAST_ASK] = second
  addDue(entry, joined, due)
}

/**
 * Notes that more answers are due than one.
 * @param {Entry} entry
 * @param {Record} ask
 * @param {number} more
 */
function addDue (entry, { words, offset }, more) {
  if (more <= 0) return
  words[offset + DUE] += more
  entry.dueSince = Math.floor(capture.clock[0])
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
  const due = words[offset + DUE]
  const lastRef = words[offset]
  const request = state === ONE ? requestOf(words[offset + CAUSE]) : 0
  const isOfOne = request !== 0 && request === requestOf(asker.cause) && !isOfQueue(lastRef) &&
    !isOfQueue(add(entry, asker, ONE))
  if (isOfOne) { // but at two places
    const record = findRecord(request)
    if (record === undefined) return setUnknown(entry)
    const chain = record.words[record.offset + CHAIN]
    const ofRequest = { chain, place: placeless(chain, entry), cause: request, span: asker.span }
    records.writeWord(add(entry, ofRequest, ONE), DUE, due + 1)
    return
  }
  if ((words[offset + FLAGS] & ANSWERED) === 0) {
    entry.isShared = true
    if (sharedPlaces.size < MAX_PLACES) sharedPlaces.add(entry.context.stack)
  }
  const before = state === SHARED ? words[offset + LAST_ASK] : lastRef
  const isSame = state === SHARED && isSameFlow(asker.cause, records.readWord(before, CAUSE))
  const first = isSame ? words[offset + FIRST_ASK] : before
  const second = add(entry, asker, ONE)
  const shared = addUnasked(entry, state === UNKNOWN ? UNKNOWN : SHARED)
  shared.words[shared.offset + FIRST_ASK] = first
  shared.words[shared.offset + LAST_ASK] = second
  shared.words[shared.offset + DUE] = due + 1
}

/**
 * Makes data that comes from now on a part of a step.
 * @param {Entry} entry
 * @param {Asker} asker
 * @param {number} state
 * @returns {number} reference
 */
function add (entry, asker, state) {
  const ref = addRecord(entry, asker, state)
  setAsk(entry, ref)
  entry.lastAsk = ref
  return ref
}

/** @param {Entry} entry @param {Asker} asker @param {number} state @returns {number} reference */
function addRecord (entry, asker, state) {
  const { ref, words, offset } = records.addAsk(entry.context, capture.clock[0] * TICKS)
  words[offset + CHAIN] = asker.place
  words[offset + CAUSE] = asker.cause
  words[offset + SPAN] = asker.span
  words[offset + RUN] = current[CURRENT_ENTRY]
  words[offset + STATE] = state
  words[offset + DUE] = 1
  words[offset + FLAGS] = CALLED | current[PRESENT_ERA]
  return ref
}

/** @param {Entry} entry @param {number} state */
function addUnasked (entry, state) {
  const { lastAsk } = entry
  const ref = add(entry, nobody(entry), state)
  entry.lastAsk = state === UNKNOWN ? 0 : lastAsk
  return /** @type {Record} */ (findRecord(ref))
}

/**
 * Adds what stands for the callback of a connection in which its program asks again.
 * @param {Entry} entry
 * @param {number} step reference of the present one
 * @returns {number} reference
 */
function addAnswered (entry, step) {
  const ref = addRecord(entry, nobody(entry), UNKNOWN)
  records.writeWord(ref, FIRST_ASK, step)
  return ref
}

/** @param {Entry} entry @returns {Asker} */
function nobody (entry) {
  return { chain: ROOT_CHAIN, place: placeless(ROOT_CHAIN, entry), cause: 0, span: 0 }
}

/**
 * Whether an answer may still come for what was asked while tracing was off: until the connection has been
 * silent for long, or has answered for a while, and nothing is outstanding.
 * @param {Entry} entry
 */
function isUnseen (entry) {
  const last = findRecord(entry.ask)
  const isAnswered = last !== undefined && (last.words[last.offset + FLAGS] & ANSWERED) !== 0
  const quietMs = isAnswered ? QUIET_MS : DUE_MS
  if (capture.clock[0] - entry.unseenUntil < quietMs) return true
  if (last !== undefined && isOutstanding(last, entry.dueSince, capture.clock[0])) return true
  entry.unseenUntil = 0
  setAsk(entry, 0)
  return false
}

/**
 * A flow asks while that may be. Whether several do at once shows already.
 * @param {Entry} entry
 * @param {number} cause reference of the step that asks
 */
function askUnseen (entry, cause) {
  const last = findRecord(entry.ask)
  const isWaiting = last !== undefined && (last.words[last.offset + FLAGS] & ANSWERED) === 0
  if (isWaiting && !isSameFlow(cause, last.words[last.offset + FIRST_ASK])) entry.isShared = true
  setUnknown(entry)
  records.writeWord(entry.ask, FIRST_ASK, cause)
}

/** @param {Entry} entry @param {number} [count] of questions that may be written at once */
function setUnknown (entry, count = 1) {
  const last = findRecord(entry.ask)
  const isWaiting = last !== undefined && isOutstanding(last, entry.dueSince, capture.clock[0])
  const isUnknown = isWaiting && last.words[last.offset + STATE] === UNKNOWN
  if (isUnknown) return addDue(entry, last, count)
  addDue(entry, addUnasked(entry, UNKNOWN), (isWaiting ? last.words[last.offset + DUE] : 0) + count - 1)
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

/**
 * Whether the program has made a connection, not a server, nor another process.
 * @param {Entry} entry
 * @param {any} socket
 */
function isClient (entry, socket) {
  if (entry.isAccepted) return false
  const tls = own(socket, '_tlsOptions')
  if (socket.connecting === true || tls !== undefined) entry.isClient = own(tls ?? {}, 'isServer') !== true
  return entry.isClient
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
  return framesOf(chain).filter(isUser).slice(1).map(({ text }) => text).join('\n')
}

/** @param {number} chain @returns {import('../stacks/frames').Frame[]} of its newest step */
const framesOf = (chain) => source.chainAt(chain)?.stack?.frames ?? []

/** @param {import('../stacks/frames').Frame} frame */
const isUser = ({ kind }) => kind === 'user'

module.exports = { noteUse, noteWrite }
