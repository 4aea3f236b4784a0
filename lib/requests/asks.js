'use strict'

// Notes who writes on connections of the program: the asks of core/asks.js.

const { now } = require('../core/clock')
const { typeOfStep } = require('../core/context')
const {
  ONE, SHARED, UNKNOWN, descends, isOwnAnswer, isSameFlow, setAsk
} = require('../core/asks')
const {
  CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_RUN, CURRENT_SPAN, PRESENT_ERA, current
} = require('../core/current')
const records = require('../core/records')
const { emit } = require('../core/on')
const { requestOf } = require('../core/request-of')
const { source } = require('../core/source')
const { own } = require('../objects')
const capture = require('../stacks/capture')
const kindTable = require('../core/kind-table')
const { resolve } = require('../core/lookup')

const {
  ANSWERED, CALLED, CAUSE, CHAIN, CHAIN_BITS, FIRST_ASK, FIRST_CHAIN, FLAGS, LAST_ASK, OWN_WORK_CHAIN,
  ROOT_CHAIN, RUN, SPAN, STATE, TICKS, findRecord
} = records

const MAX_PLACES = 1000

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
 */
function noteWrite (entry, socket, isHeld) {
  resolve()
  const chain = current[CURRENT_CHAIN]
  if (chain === OWN_WORK_CHAIN || !isClient(entry, socket)) return
  if (entry.use?.isOver === false) return // a request of http or undici uses it
  entry.writeTime = now()
  const isUnknown = (chain < FIRST_CHAIN && chain !== ROOT_CHAIN) ||
    (isCompletion(chain) && own(socket, '_writableState')?.bufferProcessing === true) ||
    (own(socket, '_readableState')?.dataEmitted === true && isOwnAnswer(entry.context.ref))
  if (isUnknown) {
    setUnknown(entry)
    emit('asked', entry, 0, isHeld)
    return
  }
  const kind = kindTable.asked(entry.context.type)
  const place = capture.step(chain, kind, noteWrite) & CHAIN_BITS
  ask(entry, { chain, place, cause: current[CURRENT_CAUSE], span: current[CURRENT_SPAN] })
  emit('asked', entry, place, isHeld)
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
  const request = state === ONE ? requestOf(words[offset + CAUSE]) : 0
  if (request !== 0 && request === requestOf(asker.cause)) { // of one request, but at two places
    const record = findRecord(request)
    if (record === undefined) return setUnknown(entry)
    const chain = record.words[record.offset + CHAIN]
    const ofRequest = { chain, place: placeless(chain, entry), cause: request, span: asker.span }
    return add(entry, ofRequest, ONE)
  }
  entry.isShared = true
  if (sharedPlaces.size < MAX_PLACES) sharedPlaces.add(entry.context.stack)
  const before = state === SHARED ? words[offset + LAST_ASK] : lastRef
  const isSame = state === SHARED && isSameFlow(asker.cause, records.readWord(before, CAUSE))
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
  const { ref, words, offset } = records.addAsk(entry.context, capture.clock[0] * TICKS)
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
  const { lastAsk } = entry
  const ref = add(entry, asker, state)
  entry.lastAsk = state === UNKNOWN ? 0 : lastAsk
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
  const frames = source.chainAt(chain)?.stack?.frames ?? []
  return frames.filter(({ kind }) => kind === 'user').slice(1).map(({ text }) => text).join('\n')
}

module.exports = { noteUse, noteWrite }
