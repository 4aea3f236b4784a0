'use strict'

// Packs request spans for a recording: spans that differ only in numbers take a fixed number of 32-bit words
// each, in base64. Writing a line of JSON per span took a tenth of a small server's CPU.

const { defined } = require('./span-figures')

const WORDS = 16
const BYTES = 4 * WORDS
const MAX_SPANS = 256 // pending
const MAX_MICROS = 2 ** 31 - 1
const TRACE = 16 // bytes of ids
const IDS = 24

// Words of a span; START is a double.
const [NUMBER, FORM, PEER, DURATION, START] = [0, 1, 2, 3, 4]
const [ID, PARENT, QUEUED, QUEUED_MAX] = [6, 12, 14, 15]

/**
 * @typedef {object} PackedSpan
 * @property {number} number
 * @property {number} form number of the data shared with other spans
 * @property {number} peer number of the other end, 0 if unknown
 * @property {number} start ms of the clock
 * @property {number} duration microseconds
 * @property {number} queued microseconds, 0: none
 * @property {number} queuedMax maximum of that, 0: none
 *
 * @typedef {PackedSpan & { traceId: string, spanId: string, parentSpanId: string | undefined }} UnpackedSpan
 */

class PackedSpans {
  #bytes = Buffer.alloc(MAX_SPANS * BYTES)
  #words = new Int32Array(this.#bytes.buffer, this.#bytes.byteOffset, MAX_SPANS * WORDS)
  #doubles = new Float64Array(this.#bytes.buffer, this.#bytes.byteOffset, MAX_SPANS * WORDS / 2)

  /** pending spans */
  count = 0

  get isFull () { return this.count === MAX_SPANS }

  /**
   * @param {import('../spans/span').Span} span
   * @param {number} form
   * @param {number} peer
   * @param {number} duration microseconds, up to MAX_MICROS
   */
  add (span, form, peer, duration) {
    const at = this.count * WORDS
    const words = this.#words
    words[at + NUMBER] = span.seq
    words[at + FORM] = form
    words[at + PEER] = peer
    words[at + DURATION] = duration
    this.#doubles[(at + START) / 2] = span.start
    span.copyIds(words, this.#bytes, at + ID)
    words[at + PARENT] = words[at + PARENT + 1] = 0
    const { parentSpanId } = span
    if (parentSpanId !== undefined) this.#bytes.write(parentSpanId, 4 * (at + PARENT), 8, 'hex')
    words[at + QUEUED] = span.queued
    words[at + QUEUED_MAX] = span.queuedMax
    this.count++
  }

  /** Returns the pending spans, and clears them. @returns {string} */
  take () {
    const text = this.#bytes.toString('base64', 0, this.count * BYTES)
    this.count = 0
    return text
  }
}

/** @param {string} text @returns {UnpackedSpan[]} */
function unpack (text) {
  const { buffer, byteOffset, length } = Buffer.from(text, 'base64')
  const whole = buffer.slice(byteOffset, byteOffset + length - length % BYTES) // aligned
  const bytes = Buffer.from(whole)
  const words = new Int32Array(whole)
  const doubles = new Float64Array(whole)
  /** @type {UnpackedSpan[]} */
  const spans = []
  for (let at = 0; at < words.length; at += WORDS) {
    const ids = bytes.toString('hex', 4 * (at + ID), 4 * (at + ID) + IDS)
    const hasParent = words[at + PARENT] !== 0 || words[at + PARENT + 1] !== 0
    spans.push({
      number: words[at + NUMBER],
      form: words[at + FORM],
      peer: words[at + PEER],
      start: doubles[(at + START) / 2],
      duration: words[at + DURATION],
      traceId: ids.slice(0, 2 * TRACE),
      spanId: ids.slice(2 * TRACE),
      parentSpanId: hasParent ? bytes.toString('hex', 4 * (at + PARENT), 4 * (at + QUEUED)) : undefined,
      queued: words[at + QUEUED],
      queuedMax: words[at + QUEUED_MAX]
    })
  }
  return spans
}

/**
 * @typedef {object} Facts of a request
 * @property {string | undefined} path
 * @property {{ peer: string | undefined, peerPort: unknown } | undefined} [peer] the other end
 * @property {number} [queued] microseconds that it waited before Node read it, 0: none
 * @property {number} [queuedMax] upper bound of that; 0 if it is the same
 * @property {number} [statusCode] 0: none
 * @property {string} [route]
 */

/**
 * Returns the attributes specific to a request span.
 * @param {Facts} facts
 * @returns {Record<string, unknown>}
 */
function attributesOf ({ path, peer, queued = 0, queuedMax = 0, statusCode = 0, route }) {
  // One literal: V8 changes the shape of an object with each added property.
  /** @type {Record<string, unknown>} */
  const attributes = path !== undefined && peer?.peer !== undefined && peer.peerPort !== undefined
    ? { 'url.path': path, 'network.peer.address': peer.peer, 'network.peer.port': peer.peerPort }
    : defined({ 'url.path': path, 'network.peer.address': peer?.peer, 'network.peer.port': peer?.peerPort })
  if (queued > 0 || queuedMax > 0) attributes['longstack.queued_ms'] = queued / 1000
  if (queuedMax > 0) attributes['longstack.queued_max_ms'] = queuedMax / 1000
  if (statusCode !== 0) attributes['http.response.status_code'] = statusCode
  if (route !== undefined) attributes['http.route'] = route
  return attributes
}

module.exports = {
  MAX_MICROS,
  PACKED_BYTES: BYTES,
  PackedSpans,
  attributesOf,
  unpack
}
