'use strict'

// Logs traffic on outgoing connections as SENT and CAME in the run log.

const { executionAsyncResource } = require('node:async_hooks')
const { handleOfReused } = require('../core/arrivals')
const { isOfConnection } = require('../core/asks')
const { now } = require('../core/clock')
const { ChainValues } = require('../core/chain-values')
const { typeOfStep } = require('../core/context')
const { CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_REF, current } = require('../core/current')
const { resolve } = require('../core/lookup')
const { on } = require('../core/on')
const { triggerIdAt } = require('../core/record-ids')
const { CAUSE, CHAIN, findRecord, readWord } = require('../core/records')
const runLog = require('../core/run-log')
const { ASKED, GREETS, HELD, READS_ON, USED } = require('../core/run-log-words')
const { source } = require('../core/source')
const { numberReader, ownerOf } = require('../node-objects')
const { isObject, own } = require('../objects')
const peek = require('../requests/peek')
const { settings } = require('../settings')
const texts = require('./texts')

const MAX_STEPS = 16 // steps from a write back to the connect request

// Effects of a write: it begins a query or continues one. Each chain is examined once.
const BEGINS = 1
const GOES_ON = 2
const CURSOR = /cursor/i

/** @typedef {import('../core/entry').Entry} Entry */

let effects = new ChainValues()
on('forgetting', () => { effects = new ChainValues() })

const bytesRead = numberReader('bytesRead')
const bytesWritten = numberReader('bytesWritten')

on('traffic', (entry, isWrite) => {
  if (runLog.isOn()) noteTraffic(entry, isWrite)
})
on('asked', (entry, place, isHeld, writer) => {
  if (runLog.isOn()) noteAsked(entry, isHeld, writer)
})

/**
 * Notes data on a connection. The first data in the connection's own callback is incoming; all else is
 * outgoing.
 * @param {Entry} entry
 * @param {boolean} isWrite data is written without an `asked` event
 */
function noteTraffic (entry, isWrite) {
  resolve()
  const { context: { ref } } = entry
  if (isWrite) {
    noteSent(entry, 0, false)
  } else if (isInCallback(entry)) {
    const isFirst = runLog.came(ref, now(), bytesOf(entry, bytesRead), bytesOf(entry, bytesWritten))
    texts.notePeer(ref, entry, true)
    if (isFirst && current[CURRENT_REF] === ref) return
  }
  if (!entry.isHeld) return
  entry.isHeld = false // the held data goes out now
  noteSent(entry, 0, false)
}

/** @param {Entry} entry of a connection @returns {boolean} whether its own callback is running */
function isInCallback ({ context: { ref }, resource }) {
  if (current[CURRENT_REF] === ref) return true
  return handleOfReused(executionAsyncResource()) === resource.deref()
}

/**
 * Notes that the program sends a query on a connection.
 * @param {Entry} entry
 * @param {boolean} isHeld
 * @param {number} writer see core/on.js
 */
function noteAsked (entry, isHeld, writer) {
  if (isHeld) entry.isHeld = true
  const isByDriver = isGreeting(entry, writer)
  noteSent(entry, isByDriver ? 0 : writer, isHeld, isByDriver)
}

/**
 * Logs a write to a connection.
 * @param {Entry} entry
 * @param {number} place chain of the write, or 0 if no code of the program is known to have caused it
 * @param {boolean} isHeld the bytes go out once the connection is established
 * @param {boolean} [isGreeting]
 */
function noteSent (entry, place, isHeld, isGreeting = false) {
  const { context: { ref } } = entry
  const isHttp = entry.use?.isOver === false || carriesHttp(entry)
  const asked = place === 0 ? 0 : isReadingOn(place) ? ASKED | READS_ON : ASKED
  const kind = (isHttp ? USED : 0) | asked | (isGreeting ? GREETS : 0)
  const use = kind | (isHeld ? HELD : 0)
  const chain = place || current[CURRENT_CHAIN]
  const number = runLog.sent(ref, chain, now(), use, bytesOf(entry, bytesWritten), bytesOf(entry, bytesRead))
  texts.notePeer(ref, entry, false)
  const operation = settings.options.peek ? peek.present() : undefined
  if (operation !== undefined) texts.noteOperation(number, operation)
}

/**
 * Whether a driver writes by itself on a connection that it opens, before the first query on it.
 * @param {Entry} entry
 * @param {number} place chain of the write
 */
function isGreeting (entry, place) {
  const isFirst = !entry.isWritten
  entry.isWritten = true
  if (entry.isAsked || place === 0) return false
  if (isOfDriver(entry.context, place, current[CURRENT_CAUSE], isFirst)) return true
  entry.isAsked = true
  return false
}

/**
 * Whether a driver acts by itself: in the callback of its connect request or of its connection, or in a step
 * caused by these, with no code of the program's own in between.
 * @param {import('../core/context').Context} connection
 * @param {number} chain of the action
 * @param {number} cause reference of the step
 * @param {boolean} isFirst first write: counts even if the driver awaited the connection that it opened
 */
function isOfDriver ({ asyncId, chain: opening, ref }, chain, cause, isFirst) {
  const opener = isFirst && !framesOf(opening).some(isOwnCode) ? readWord(ref, CAUSE) : 0
  let present = chain
  let step = cause
  for (let i = 0; i < MAX_STEPS && step !== 0 && !framesOf(present).some(isOwnCode); i++) {
    const record = findRecord(step)
    if (record === undefined) return false
    if (step === opener || isOfConnection(step, ref)) return true
    present = record.words[record.offset + CHAIN]
    const isConnect = typeOfStep(present, step).endsWith('CONNECTWRAP')
    if (isConnect) return triggerIdAt(record.words, record.offset) === asyncId
    step = record.words[record.offset + CAUSE]
  }
  return false
}

/**
 * Returns the frames of the program in the newest step of a chain.
 * @param {number} chain
 * @returns {import('../stacks/frames').Frame[]}
 */
function framesOf (chain) {
  const frames = source.chainAt(chain)?.stack?.frames ?? []
  return frames.filter(({ kind }) => kind === 'user' || kind === 'module')
}

/**
 * Whether a write continues reading with a cursor: a cursor's method causes it, but not the one that sends
 * its query.
 * @param {number} chain
 */
function isReadingOn (chain) {
  let effect = effects.get(chain)
  if (effect === 0) {
    const frames = framesOf(chain)
    const calls = frames.filter(({ fileName = '', kind }) => kind === 'module' && CURSOR.test(fileName))
    const isBegin = calls.length === 0 || calls.some(({ functionName }) => functionName?.endsWith('submit'))
    effect = isBegin ? BEGINS : GOES_ON
    effects.set(chain, effect)
  }
  return effect === GOES_ON
}

/** @param {import('../stacks/frames').Frame} frame */
const isOwnCode = ({ kind }) => kind === 'user'

/**
 * Whether an http request writes on a connection: its use is reported only afterwards. A request that
 * upgraded the connection stays in `_httpMessage` (lib/_http_client.js).
 * @param {Entry} entry
 */
function carriesHttp ({ resource }) {
  const handle = resource.deref()
  const socket = handle === undefined ? undefined : ownerOf(handle)
  const message = socket === undefined ? undefined : own(socket, '_httpMessage')
  return isObject(message) && own(message, 'upgradeOrConnect') !== true
}

/**
 * @param {Entry} entry of a connection
 * @param {(handle: object) => number} read
 * @returns {number} -1 if unknown
 */
function bytesOf (entry, read) {
  const handle = entry.resource.deref()
  const bytes = handle === undefined ? NaN : read(handle)
  return bytes >= 0 ? bytes : -1
}

module.exports = { bytesRead, bytesWritten, framesOf, isOfDriver, isOwnCode }
