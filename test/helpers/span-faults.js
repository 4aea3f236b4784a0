'use strict'

// Invariants of all spans read from a run log, whatever ran: the parts of each span add up to its duration,
// and no figure contradicts another.

const { inspect } = require('node:util')
const layout = require('../../lib/core/run-log-words')
const { NONE } = require('../../report/path/entries')
const { SpanReader } = require('../../report/path/window')

const US = 1e-3 // ms
const MAX_LOOKS = 1e7 // comparisons with slices of spans
const ALL = 1 << 20 // entries

/**
 * @param {any[]} list
 * @param {string} key
 * @returns {number}
 */
const sum = (list, key) => list.reduce((total, each) => total + each[key], 0)

/**
 * Reads a log block by block.
 * @param {Uint8Array} bytes
 * @param {number} first number of the first entry
 * @param {number} [size] entries per block
 * @param {number} [kept] entries kept at once
 */
function read (bytes, first, size = 1000, kept = 1024) {
  const reader = new SpanReader(kept, 0)
  const count = Math.floor(bytes.length / layout.WORDS / 4)
  for (let from = 0; from < count; from += size) {
    const entries = bytes.slice(from * layout.WORDS * 4, (from + size) * layout.WORDS * 4)
    reader.push({ first: (first + from) | 0, entries })
  }
  reader.end()
  return { reader, spans: reader.ended() }
}

/**
 * Returns the ms of a request's own code, slice by slice.
 * @param {SpanReader} reader
 * @param {import('../../report/path/requests').Request} request
 */
function ownOf ({ recording, spans }, { begin, end, number }) {
  let ms = 0
  for (let i = 0; i < recording.count; i++) {
    if (recording.run[i] === NONE || !spans.isInside(recording.request[i], number)) continue
    ms += Math.max(0, Math.min(end, recording.end[i]) - Math.max(begin, recording.at[i]))
  }
  return ms
}

/**
 * Returns the violated invariants of a recording.
 * @param {ReturnType<typeof read>} told
 * @param {boolean} [isNoise] random entries, not written by a program
 * @returns {string[]}
 */
function faultsOf ({ reader, spans }, isNoise = false) {
  const { recording } = reader
  /** @type {string[]} */
  const faults = []
  /** @param {boolean} holds @param {string} what @param {object} [all] */
  const check = (holds, what, all) => { if (!holds) faults.push(`${what}: ${inspect(all, { depth: 4 })}`) }
  const isMuch = spans.length * recording.count > MAX_LOOKS
  let now = -Infinity
  for (let i = 0; i < recording.count; i++) {
    if (recording.run[i] === NONE) continue
    check(recording.at[i] >= now && recording.end[i] >= recording.at[i], `slice ${i}`)
    now = recording.end[i]
  }
  for (const span of spans) {
    const { request, path, figures, delays, queries } = span
    const all = span
    const scale = Math.max(US, 1e-9 * Math.abs(request.end)) // rounding error of sums of large times
    const isNear = (/** @type {number} */ a, /** @type {number} */ b) => Math.abs(a - b) <= scale
    const { duration, run, waited, delayed, delayedMax, beside, unknown } = figures
    check(run + waited + delayed === duration, 'the figures add up', all)
    check([duration, run, waited, delayed, beside, delayedMax - delayed].every((us) => us >= 0), '>= 0', all)
    check(unknown === 0, 'all is known', all)
    const [ms, late] = [sum(path.waits, 'ms'), sum(path.waits, 'delayed')]
    const own = sum(path.ran, 'ms') + path.beside
    check(isNear(own + ms + late, request.end - request.begin), `${own} + ${ms} + ${late} ms are all`, all)
    // In noise, a span may turn out to be inside another one after it was reported. In a long log, the reader
    // has dropped reported spans.
    const isDropped = request.slice === NONE && request.firstRun === NONE
    check(isNoise || isMuch || isDropped || isNear(own, ownOf(reader, request)), `${own} ms of own code`, all)
    check(Math.abs(own - run / 1000) <= scale + US, `${own} ms of own code, rounded`, all)
    check(isNear(sum(delays, 'ms'), late), 'delayers', all)
    check(isNear(sum(delays, 'max'), sum(path.waits, 'delayedMax')), 'most of delayers', all)
    let until = request.end
    for (const wait of path.waits) {
      check(wait.until <= until && wait.begin <= wait.until && wait.begin >= request.begin, 'in order', all)
      const { cameAfter, cameBy } = wait
      check(wait.begin <= cameAfter && cameAfter <= cameBy && cameBy <= wait.until, 'came', all)
      check(wait.ms >= 0 && wait.delayed >= 0 && wait.delayedMax >= wait.delayed - scale, 'parts', all)
      check(wait.unsent >= 0 && wait.unsent <= wait.ms && wait.beside >= 0, 'unsent', all)
      until = wait.begin
    }
    for (const { start, end, unsent } of queries) {
      const isOrdered = start >= request.begin && end >= start && end <= request.end
      check(isOrdered && unsent >= 0, `query ${start} ${end}`, all)
    }
  }
  return faults
}

/**
 * Throws if the complete log of a program violates an invariant.
 * @param {Uint8Array} bytes
 * @param {number} first number of the first entry
 */
function checkSpans (bytes, first) {
  const faults = faultsOf(read(bytes, first, 1000, ALL))
  if (faults.length > 0) throw new Error(faults.slice(0, 3).join('\n'))
}

module.exports = { checkSpans, faultsOf, read }
