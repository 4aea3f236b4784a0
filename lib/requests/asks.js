'use strict'

// Notes which step writes on a connection that the program opened: the asks of core/asks.js.

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
const MAX_STEPS = 8 // steps recorded between a response and a write
const noParts = [0, 0, 0]
/** function of a package that returns a connection to its pool */
const RELEASE = /(?:^|[.# ])_?release(?:Connection|Client|Resource)?$/i

// Whether the writer is the querying flow, judging by the chain of the write. Each chain is checked once.
const ASKS = 1
const HANDS_ON = 2
let writers = new ChainValues()
on('forgetting', () => { writers = new ChainValues() })

/**
 * @typedef {import('../core/entry').Entry} Entry
 * @typedef {NonNullable<ReturnType<typeof findRecord>>} Record
 *
 * @typedef {object} Asker
 * @property {number} chain of the querying step
 * @property {number} cause reference of that step
 * @property {number} span number
 * @property {number} place chain of the write, below that of the step
 */

/** opener stacks of connections with concurrent queries of several flows @type {Set<object | undefined>} */
const sharedPlaces = new Set()

/**
 * Notes a write of the program on a connection.
 * @param {Entry} entry
 * @param {any} socket
 * @param {boolean} isHeld whether it is sent only once the connection is open
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
 * Whether a pool writes while a connection is released: for the next caller in its queue, not for the
 * releaser.
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
 * Notes a write that a callback of its own connection caused. If code of the program lies between the two, it
 * is a query; if not, the driver sends the next entry of its queue. The response in the callback does not
 * prove which flow queries: a pool may hand the connection on there and call code of another flow. So the
 * chain of the query begins at the callback.
 * @param {Entry} entry
 * @param {number} write chain of the write
 * @param {number} distance steps from the write up to the callback
 * @returns {boolean} whether it is a query
 */
function noteInAnswer (entry, write, distance) {
  const chains = [write]
  const step = current[CURRENT_CAUSE]
  for (let each = step; chains.length <= distance; each = records.readWord(each, CAUSE)) {
    chains.push(records.readWord(each, CHAIN))
  }
  const driver = framesOf(chains[distance]).findLast(isProgram)
  const isOfDriver = driver === undefined || !chains.some((chain) => framesOf(chain).some((frame) => {
    // The code that listens to the connection belongs to the driver
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
 * Notes that a request of http or undici is sent on a connection.
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
      (asker.cause !== 0 || capture.partsOf(words[offset + CHAIN])?.[0] === asker.chain) // 0: as for messages
    if (isWaiting && isSame && isSamePlace(words[offset + CHAIN], asker.place)) {
      if (words[offset + CHAIN] === asker.place) addDue(entry, last, 1) // another query, as in a loop
      return
    }
    if (isSame || descends(asker.cause, words[offset + CAUSE])) {
      if (!isWaiting) return add(entry, asker, ONE)
      if (!isSame && !framesOf(asker.place).some(isUser)) return // more data of the same query
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
 * Whether a query may be of another request than its cause: a queue may have started the job that queries.
 * @param {number} ref of the ask
 * @param {number} [step] reference: started in that step or later; in any step if omitted
 */
function isOfQueue (ref, step) {
  const start = source.startOf(contextAt(ref))
  return start !== undefined && (step === undefined || descends(start.ref, step))
}

/**
 * Notes another query of a step, or of a step it caused, while one is in flight. Incoming data responds to
 * one of them, so it is part of the first step.
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
 * Notes that more than one response is due.
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
 * Notes a query of another flow while one is in flight, or may be.
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
  if (isOfOne) { // same request, but two places
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
 * Attributes data that arrives from now on to a step.
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
 * Adds a record for the callback of a connection in which the program queries again.
 * @param {Entry} entry
 * @param {number} step reference of the current step
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
 * Whether a response to a query made while tracing was off may still arrive. True for DUE_MS after tracing
 * was enabled, QUIET_MS if a later query got a response, and while one is in flight.
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
 * Notes a query of a flow in that period. Concurrent queries of several flows are already detected.
 * @param {Entry} entry
 * @param {number} cause reference of the querying step
 */
function askUnseen (entry, cause) {
  const last = findRecord(entry.ask)
  const isWaiting = last !== undefined && (last.words[last.offset + FLAGS] & ANSWERED) === 0
  if (isWaiting && !isSameFlow(cause, last.words[last.offset + FIRST_ASK])) entry.isShared = true
  setUnknown(entry)
  records.writeWord(entry.ask, FIRST_ASK, cause)
}

/** @param {Entry} entry @param {number} [count] of queries that may be written at once */
function setUnknown (entry, count = 1) {
  const last = findRecord(entry.ask)
  const isWaiting = last !== undefined && isOutstanding(last, entry.dueSince, capture.clock[0])
  const isUnknown = isWaiting && last.words[last.offset + STATE] === UNKNOWN
  if (isUnknown) return addDue(entry, last, count)
  addDue(entry, addUnasked(entry, UNKNOWN), (isWaiting ? last.words[last.offset + DUE] : 0) + count - 1)
}

/**
 * Returns the chain of a query below a step if its place is unknown.
 * @param {number} chain
 * @param {Entry} entry
 */
function placeless (chain, entry) {
  return capture.intern(chain, 0, kindTable.asked(entry.context.type)) & CHAIN_BITS
}

/**
 * Whether the current step is the callback of an earlier write or connect.
 * @param {number} chain
 */
function isCompletion (chain) {
  if (chain < FIRST_CHAIN) return false
  const type = typeOfStep(chain, current[CURRENT_CAUSE])
  return type.endsWith('CONNECTWRAP') || type === 'WRITEWRAP'
}

/**
 * Whether the program opened a connection, rather than a server or another process.
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

/** @param {number} chain @returns {string} the frames of the program's own code without the innermost */
function callOf (chain) {
  return framesOf(chain).filter(isUser).slice(1).map(({ text }) => text).join('\n')
}

/** @param {number} chain @returns {import('../stacks/frames').Frame[]} of its newest step */
const framesOf = (chain) => source.chainAt(chain)?.stack?.frames ?? []

/** @param {import('../stacks/frames').Frame} frame */
const isUser = ({ kind }) => kind === 'user'

module.exports = { noteUse, noteWrite }
