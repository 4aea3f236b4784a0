'use strict'

// A chain as text, for another process. Frames are passed as their lines, from which the receiver reads them.

const { originMs, now } = require('../core/clock')
const { kindOf } = require('../core/kinds')
const { CHAIN_BITS, ROOT_CHAIN } = require('../core/records')
const { attempt } = require('../files')
const capture = require('./capture')
const { frameIn } = require('./frames')
const { unfold } = require('./hop-folding')
const { publicFrame } = require('./hop-frames')
const { AT, joinFrames } = require('./text-scan')

/**
 * @typedef {import('./chain').PrintedHop} PrintedHop
 * @typedef {import('./frames').Frame} Frame
 *
 * @typedef {object} PassedChain
 * @property {number} at when it was passed, ms of the system's monotonic clock
 * @property {PrintedHop[]} hops newest first
 */

const VERSION = 1 // of the text; another one is not read
const MAX_BYTES = 16_000
const MAX_MESSAGE = 8000 // characters
const MAX_TURN = 8 // hops
const MAX_TEXT = 64_000 // characters that are read
const MAX_HOPS = 1000
const MAX_NAME = 1000 // characters
const MAX_PLACES = 4096 // remembered
const BYTES_PER_CHARACTER = 4 // about, of a text and its hops
// Types of the first step of a chain that another thread sent: between a worker and its maker, another port.
const MESSAGE = 'MESSAGE'
const PORT_MESSAGE = 'PORTMESSAGE'
const { parse, stringify } = JSON // programs replace it

/**
 * Returns a chain as text without control characters.
 * @param {PrintedHop[]} hops newest first
 * @param {number} pid of this process
 * @returns {string | undefined} of at most MAX_BYTES: the oldest hops are cut; undefined: nothing is left
 */
function encodeChain (hops, pid) {
  const start = `{"longstack":${VERSION},"at":${originMs + now()},"hops":[`
  const plain = unfold(hops).map((hop) => {
    const { asyncId, triggerAsyncId, type, label, ageMs, repeats, lines, isFolded, isRequest } = hop
    const origin = hop.pid ?? pid
    return { asyncId, triggerAsyncId, type, label, ageMs, repeats, pid: origin, lines, isFolded, isRequest }
  })
  const text = encodeFirst(plain, MAX_BYTES - start.length - 2, Buffer.byteLength)
  return text === '' ? undefined : `${start}${text}]}`
}

/**
 * Returns a chain as text for another thread: equal chains have equal texts, without the times and ids of one
 * message.
 * @param {PrintedHop[]} hops newest first
 * @param {number} threadId of this thread
 * @param {number | undefined} parentId of the thread that made this one
 */
function encodeMessageChain (hops, threadId, parentId) {
  const plain = withoutTurns(unfold(hops)).map((hop) => {
    const { type, label, repeats, pid, lines, isFolded, isRequest } = hop
    const ownId = hop.origin === 'worker' ? parentId : threadId
    const thread = pid === undefined ? hop.threadId ?? ownId : undefined
    return { type, label, repeats, pid, threadId: thread, lines, isFolded, isRequest }
  })
  return `[${encodeFirst(plain, MAX_MESSAGE, (text) => text.length)}]`
}

/**
 * Returns the first of some hops as text.
 * @param {object[]} hops
 * @param {number} room for the text
 * @param {(text: string) => number} lengthOf
 */
function encodeFirst (hops, room, lengthOf) {
  const texts = hops.map((hop) => stringify(hop))
  let length = 0
  const end = texts.findIndex((text) => (length += lengthOf(text) + 1) > room)
  return (end === -1 ? texts : texts.slice(0, end)).join(',')
}

/**
 * Leaves out what repeats: two threads that answer each other for ever have one turn of that.
 * @param {PrintedHop[]} hops
 */
function withoutTurns (hops) {
  const texts = hops.map(({ type, label, lines }) => `${type} ${label}\n${lines.join('\n')}`)
  for (let length = 1; length <= MAX_TURN && length * 2 <= texts.length; length++) {
    if (!texts.slice(0, length).every((text, i) => text === texts[i + length])) continue
    return [...hops.slice(0, length), ...hops.slice(length * 2)]
  }
  return hops
}

/** @param {string} text @returns {PrintedHop[] | undefined} undefined where it is no chain */
function decodeMessageChain (text) {
  return attempt(() => parse(text).map(readHop))
}

/**
 * Reads a chain; whoever sets the environment can have written it.
 * @param {string} text
 * @returns {PassedChain | undefined} undefined where it is none
 */
function decodeChain (text) {
  if (text.length > MAX_TEXT) return undefined
  return attempt(() => {
    const { longstack: version, at, hops } = parse(text)
    if (version !== VERSION || typeof at !== 'number' || hops.length > MAX_HOPS) return undefined
    return { at, hops: hops.map(readHop) }
  })
}

/** @param {any} hop @returns {PrintedHop} @throws {TypeError} where it is none */
function readHop (hop) {
  const { asyncId = 0, triggerAsyncId = 0, type, label, ageMs = null, repeats, pid, threadId, lines } = hop
  const printed = lines.map(lineOf)
  const frames = printed.map(frameIn).filter((/** @type {Frame | undefined} */ frame) => frame !== undefined)
  return {
    asyncId: numberOf(asyncId),
    triggerAsyncId: numberOf(triggerAsyncId),
    type: textOf(type),
    label: textOf(label),
    ageMs: ageMs === null ? NaN : numberOf(ageMs),
    repeats: numberOf(repeats),
    ...(pid === undefined
      ? { origin: 'worker', ...(threadId === undefined ? undefined : { threadId: numberOf(threadId) }) }
      : { origin: 'process', pid: numberOf(pid) }),
    frames: frames.map(publicFrame),
    lines: printed,
    ...(hop.isFolded === true ? { isFolded: true } : undefined),
    ...(hop.isRequest === true ? { isRequest: true } : undefined)
  }
}

/** @param {unknown} value @returns {number} */
function numberOf (value) {
  if (typeof value !== 'number') throw new TypeError('no number')
  return value
}

/** @param {unknown} value @returns {string} */
function textOf (value) {
  const line = lineOf(value)
  if (line.includes('\n')) throw new TypeError('several lines')
  return line
}

/** @param {unknown} value @returns {string} also of a frame in a path with line feeds */
function lineOf (value) {
  if (typeof value !== 'string' || value.length > MAX_NAME) throw new TypeError('no text')
  return value
}

// Chains of other threads that go on in this one. Such a chain is one number among the chains of this thread,
// with its hops as data beside it. A chain that another thread has sent twice has one number, so that what
// follows from it is one chain as well.

let imported = 0 // so far
/** the numbers are of this generation of chains */
let generation = -1
/** number by the place of the text, of the last ones @type {Map<number, number>} */
const numbersByPlace = new Map()
/** number by text @type {Map<string, number>} */
const importedNumbers = new Map()
/** by number @type {Map<number, PrintedHop[]>} */
const importedHops = new Map()

/**
 * Returns the number of a chain of another thread.
 * @param {number} place of its text
 * @param {(place: number) => string | undefined} read the text
 * @returns {number} 0: it cannot be read
 */
function importChain (place, read) {
  forgetStale()
  const known = numbersByPlace.get(place)
  if (known !== undefined) return known
  const text = read(place)
  const number = text === undefined ? 0 : importedNumbers.get(text) ?? importText(text)
  if (number === 0) return 0
  if (numbersByPlace.size >= MAX_PLACES) numbersByPlace.clear()
  numbersByPlace.set(place, number)
  return number
}

/** @param {string} text @returns {number} of its chain, 0: it is none */
function importText (text) {
  const hops = decodeMessageChain(text)
  if (hops === undefined || hops.length === 0) return 0
  // The first line makes it another stack than those of other chains.
  const lines = [`longstack.message.${++imported}`, ...hops[0].lines.map((line) => line.slice(AT.length))]
  const stack = capture.internStack(joinFrames(lines), text.length * BYTES_PER_CHARACTER)
  const number = capture.intern(ROOT_CHAIN, stack, kindOf(MESSAGE, false).number) & CHAIN_BITS
  forgetStale() // there was no room
  importedNumbers.set(text, number)
  importedHops.set(number, hops)
  return number
}

/** @param {number} chain @returns {PrintedHop[] | undefined} undefined for a chain of this thread */
function importedHopsOf (chain) {
  if (importedHops.size === 0) return undefined
  forgetStale()
  return importedHops.get(chain)
}

function forgetStale () {
  if (generation === capture.generation) return
  numbersByPlace.clear()
  importedNumbers.clear()
  importedHops.clear()
  generation = capture.generation
}

module.exports = {
  MESSAGE, PORT_MESSAGE, decodeChain, encodeChain, encodeMessageChain, importChain, importedHopsOf
}
