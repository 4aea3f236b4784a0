'use strict'

// A chain as text, for another process. Frames are passed as their lines, from which the receiver reads them.

const { originMs, now } = require('../context/clock')
const { parseFrame } = require('./frames')
const { publicFrame } = require('./hop-frames')

/**
 * @typedef {import('./chain').PrintedHop} PrintedHop
 *
 * @typedef {object} PassedChain
 * @property {number} at when it was passed, ms of the system's monotonic clock
 * @property {PrintedHop[]} hops newest first
 */

const VERSION = 1 // of the text; another one is not read
const MAX_BYTES = 16_000
const MAX_TEXT = 64_000 // characters that are read
const MAX_HOPS = 1000
const MAX_NAME = 1000 // characters
const FRAME = '    at '
const { parse, stringify } = JSON // programs replace it

/**
 * Returns a chain as text without control characters.
 * @param {PrintedHop[]} hops newest first
 * @param {number} pid of this process
 * @returns {string | undefined} of at most MAX_BYTES: the oldest hops are cut; undefined: nothing is left
 */
function encodeChain (hops, pid) {
  const start = `{"longstack":${VERSION},"at":${originMs + now()},"hops":[`
  const texts = []
  let bytes = start.length + 2
  for (const hop of hops) {
    const text = stringify(plainHop(hop, pid))
    bytes += Buffer.byteLength(text) + 1
    if (bytes > MAX_BYTES) break
    texts.push(text)
  }
  return texts.length === 0 ? undefined : `${start}${texts.join(',')}]}`
}

/** @param {PrintedHop} hop @param {number} pid */
function plainHop (hop, pid) {
  const { asyncId, triggerAsyncId, type, label, ageMs, repeats, lines, isFolded } = hop
  return { asyncId, triggerAsyncId, type, label, ageMs, repeats, pid: hop.pid ?? pid, lines, isFolded }
}

/**
 * Reads a chain; whoever sets the environment can have written it.
 * @param {string} text
 * @returns {PassedChain | undefined} undefined where it is none
 */
function decodeChain (text) {
  if (text.length > MAX_TEXT) return undefined
  try {
    const { longstack: version, at, hops } = parse(text)
    if (version !== VERSION || typeof at !== 'number' || hops.length > MAX_HOPS) return undefined
    return { at, hops: hops.map(readHop) }
  } catch {
    return undefined
  }
}

/** @param {any} hop @returns {PrintedHop} @throws {TypeError} where it is none */
function readHop ({ asyncId, triggerAsyncId, type, label, ageMs, repeats, pid, lines, isFolded }) {
  const printed = lines.map(textOf)
  const frameLines = printed.filter((/** @type {string} */ line) => line.startsWith(FRAME))
  return {
    asyncId: numberOf(asyncId),
    triggerAsyncId: numberOf(triggerAsyncId),
    type: textOf(type),
    label: textOf(label),
    ageMs: ageMs === null ? NaN : numberOf(ageMs),
    repeats: numberOf(repeats),
    origin: 'process',
    pid: numberOf(pid),
    frames: frameLines.map((/** @type {string} */ line) => publicFrame(parseFrame(line.slice(FRAME.length)))),
    lines: printed,
    ...(isFolded === true ? { isFolded } : undefined)
  }
}

/** @param {unknown} value @returns {number} */
function numberOf (value) {
  if (typeof value !== 'number') throw new TypeError('no number')
  return value
}

/** @param {unknown} value @returns {string} */
function textOf (value) {
  const isLine = typeof value === 'string' && value.length <= MAX_NAME && !value.includes('\n')
  if (!isLine) throw new TypeError('no text')
  return value
}

module.exports = { decodeChain, encodeChain }
