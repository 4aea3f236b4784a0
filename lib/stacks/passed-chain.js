'use strict'

// Chains as text for other threads and processes. Frames are passed as lines, which the receiver parses.

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
 * @property {number} at time of passing, in ms of the system's monotonic clock
 * @property {PrintedHop[]} hops newest first
 */

const VERSION = 1 // of the text; others are rejected
const MAX_BYTES = 16_000
const MAX_MESSAGE = 8000 // characters
const MAX_TURN = 8 // hops
const MAX_TEXT = 64_000 // characters to read
const MAX_HOPS = 1000
const MAX_NAME = 1000 // characters
const MAX_PLACES = 4096 // cached
const BYTES_PER_CHARACTER = 4 // estimate for a text and its hops
// Types of the first step of another thread's chain: between a worker and its creator, or by another port
const MESSAGE = 'MESSAGE'
const PORT_MESSAGE = 'PORTMESSAGE'
const { parse, stringify } = JSON // programs replace it

/**
 * Returns a chain as text without control characters.
 * @param {PrintedHop[]} hops newest first
 * @param {number} pid of this process
 * @returns {string | undefined} at most MAX_BYTES, by cutting the oldest hops; undefined if none is left
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
 * Returns a chain as text for another thread. The text has no times or ids of a message, so equal chains have
 * equal texts.
 * @param {PrintedHop[]} hops newest first
 * @param {number} threadId of this thread
 * @param {number | undefined} parentId of the thread that created this one
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
 * Returns the first hops that fit as text.
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
 * Leaves out repetitions: two threads that reply to each other forever keep one round trip.
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

/** @param {string} text @returns {PrintedHop[] | undefined} undefined if it is no chain */
function decodeMessageChain (text) {
  return attempt(() => parse(text).map(readHop))
}

/**
 * Reads a chain. The text is untrusted: anyone who sets the environment can write it.
 * @param {string} text
 * @returns {PassedChain | undefined} undefined if it is no chain
 */
function decodeChain (text) {
  if (text.length > MAX_TEXT) return undefined
  return attempt(() => {
    const { longstack: version, at, hops } = parse(text)
    if (version !== VERSION || typeof at !== 'number' || hops.length > MAX_HOPS) return undefined
    return { at, hops: hops.map(readHop) }
  })
}

/** @param {any} hop @returns {PrintedHop} @throws {TypeError} if it is no hop */
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

/** @param {unknown} value @returns {string} may contain line feeds of a path */
function lineOf (value) {
  if (typeof value !== 'string' || value.length > MAX_NAME) throw new TypeError('no text')
  return value
}

// Chains of other threads that continue in this one. Each is a number among this thread's chains, with its
// hops stored as data. A chain that another thread sends twice gets one number, so its continuations are also
// one chain.

let imported = 0 // so far
/** generation of chains that the numbers belong to */
let generation = -1
/** recent numbers by the place of their text @type {Map<number, number>} */
const numbersByPlace = new Map()
/** number by text @type {Map<string, number>} */
const importedNumbers = new Map()
/** by number @type {Map<number, PrintedHop[]>} */
const importedHops = new Map()

/**
 * Returns the number of a chain of another thread.
 * @param {number} place of its text
 * @param {(place: number) => string | undefined} read reads the text
 * @returns {number} 0 if it cannot be read
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

/** @param {string} text @returns {number} of its chain, 0 if it is no chain */
function importText (text) {
  const hops = decodeMessageChain(text)
  if (hops === undefined || hops.length === 0) return 0
  // The first line makes this stack different from those of other chains.
  const lines = [`longstack.message.${++imported}`, ...hops[0].lines.map((line) => line.slice(AT.length))]
  const stack = capture.internStack(joinFrames(lines), text.length * BYTES_PER_CHARACTER)
  const number = capture.intern(ROOT_CHAIN, stack, kindOf(MESSAGE, false).number) & CHAIN_BITS
  forgetStale() // interning may have dropped all chains
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
