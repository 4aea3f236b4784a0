'use strict'

// Ended spans to all outputs: judges which output takes a span, builds the record and its line only if one does, and
// keeps everything that can go wrong away from the program.

const guard = require('../context/guard')
const { isMainThread } = require('../hooks/threads')
const { safe, targetOf } = require('./outputs')
const { weightFor } = require('./sampling')
const { MOST, byteLineOf, byteLineOfJson } = require('./serialize')
const bytes = require('../encoding/bytes')

/**
 * @typedef {import('./outputs').Output} Output
 *
 * @typedef {object} EndedSpan
 * @property {number} ms duration
 * @property {boolean} failed status ERROR
 * @property {string} traceId
 * @property {() => import('./serialize').SpanRecord} record builds the record, once
 * @property {(weight: number, replaced: () => void) => string | undefined} [json] the record's JSON as a text of bytes, where it is known without the record
 * @property {(weight: number, replaced: () => void) => boolean} [put] the same, put into the buffer of encoding/bytes.js
 *
 * @typedef {object} OutputStats
 * @property {string} to
 * @property {number} written
 * @property {number} dropped
 * @property {string} [fault] why nothing can be written now
 *
 * @typedef {object} SinkStats
 * @property {number} written over all outputs
 * @property {number} dropped
 * @property {number} replaced attributes that could not be written as JSON
 * @property {OutputStats[]} outputs
 *
 * @typedef {object} Sink
 * @property {boolean} [named] has a name to be opened again by
 * @property {(given: any) => void} write a line as a text of bytes, or the record where `raw`
 * @property {(bytes: Buffer, length: number) => void} [writeBytes] a line, in so many bytes that are good until this returns
 * @property {() => void} [reopen]
 * @property {(goesOn?: boolean) => void} flush
 * @property {() => void} close
 * @property {() => { written: number, dropped: number, fault?: string }} stats
 *
 * @typedef {{ output: Output, sink: Sink, raw: boolean, lost: number }} Place
 * @typedef {import('./file').Rooms} Rooms
 */

/** @param {Output[]} outputs @param {Rooms} rooms */
function createSinks (outputs, rooms) {
  let replaced = 0
  const places = guard.run(() => outputs.map((output) => placeFor(output, rooms)))
  const hearsSignal = places.some(({ sink }) => sink.named) && isMainThread()
  if (hearsSignal) guard.run(() => process.on('SIGHUP', reopen))

  /** @param {EndedSpan} span */
  function deliver (span) {
    /** @type {ReturnType<typeof createCopies> | undefined} */
    let copies
    for (const place of places) {
      try {
        const weight = weightFor(place.output, span)
        if (weight === 0) continue
        if (places.length === 1 && putLine(place.sink, span, weight)) return
        copies ??= createCopies(span, countReplaced)
        place.sink.write(place.raw ? copies.record(weight) : copies.line(weight))
      } catch {
        place.lost++ // what the program put into it, or made of the built-ins, is none of its own business here
      }
    }
  }

  /** The short way to the only output. @param {Sink} sink @param {EndedSpan} span @param {number} weight @returns {boolean} it was open */
  function putLine (sink, span, weight) {
    const before = replaced
    if (sink.writeBytes === undefined || span.put === undefined || !span.put(weight, countReplaced)) return false
    bytes.put('\n')
    if (bytes.length() > MOST) { // it is shortened on the long way, where all is counted again
      replaced = before
      return false
    }
    sink.writeBytes(bytes.buffer(), bytes.length())
    return true
  }

  function countReplaced () {
    replaced++
  }

  /** @param {(sink: Sink) => void} work */
  function each (work) {
    guard.run(() => {
      for (const { sink } of places) {
        try {
          work(sink)
        } catch {}
      }
    })
  }

  function reopen () {
    each((sink) => sink.reopen?.())
  }

  return {
    /** @param {EndedSpan} span */
    write (span) {
      guard.run(() => deliver(span))
    },

    reopen,

    /** Gets rid of what waits, synchronously and in bounded time. @param {boolean} [goesOn] the program does not end: no answer is waited for */
    flush (goesOn) {
      each((sink) => sink.flush(goesOn))
    },

    close () {
      if (hearsSignal) process.off('SIGHUP', reopen)
      each((sink) => sink.close())
    },

    /** Writes what this iteration of the event loop has collected, and counts. @returns {SinkStats} */
    stats () {
      const list = guard.run(() => places.map(statsOf))
      const sum = (/** @type {'written' | 'dropped'} */ key) => list.reduce((total, one) => total + one[key], 0)
      return { written: sum('written'), dropped: sum('dropped'), replaced, outputs: list }
    }
  }
}

/** @param {Output} output @param {Rooms} rooms @returns {Place} */
function placeFor (output, rooms) {
  const target = targetOf(output.to)
  const raw = target.url !== undefined
  return { output, sink: sinkFor(output, target, rooms), raw, lost: 0 }
}

/** @param {Output} output @param {ReturnType<typeof targetOf>} target @param {Rooms} rooms @returns {Sink} */
function sinkFor (output, target, { warn, loopIterations }) {
  try {
    if (target.url !== undefined) return require('./otlp').createOtlpSink(output, { warn })
    return require('./file').createLineSink(target, nameOf(output.to), { warn, loopIterations })
  } catch (error) {
    const why = String(/** @type {any} */ (error)?.message ?? error).split('\n', 1)[0]
    warn('SPANS_FAILED', `spans cannot be written to ${safe(output.to)}: ${why}`)
    return broken(why)
  }
}

/** @param {string} to */
function nameOf (to) {
  return to === '-' ? 'stdout' : to
}

/** Stands in for a sink that could not be made. @param {string} why @returns {Sink} */
function broken (why) {
  let dropped = 0
  return { write () { dropped++ }, flush () {}, close () {}, stats: () => ({ written: 0, dropped, fault: why }) }
}

/** @param {Place} place @returns {OutputStats} */
function statsOf ({ output, sink, lost }) {
  const { written, dropped, fault } = sink.stats()
  return { to: safe(output.to), written, dropped: dropped + lost, ...(fault !== undefined && { fault }) }
}

/**
 * A span as record and as line, made once for all outputs; what stands for others says for how many.
 * @param {EndedSpan} span
 * @param {() => void} replaced
 */
function createCopies (span, replaced) {
  /** @type {import('./serialize').SpanRecord | undefined} */
  let record
  /** @type {string | undefined} */
  let plain
  /** @type {Map<number, string> | undefined} */
  let weighed

  /** @param {number} weight */
  const recordFor = (weight) => {
    record ??= span.record()
    return weight === 1 ? record : weigh(record, weight)
  }

  /** @param {number} weight */
  const lineFor = (weight) => {
    const json = span.json?.(weight, replaced)
    return json === undefined ? byteLineOf(recordFor(weight), replaced) : byteLineOfJson(json)
  }

  /** @param {number} weight */
  const weighedLine = (weight) => {
    weighed ??= new Map()
    const line = weighed.get(weight) ?? lineFor(weight)
    weighed.set(weight, line)
    return line
  }

  return {
    record: recordFor,
    /** @param {number} weight */
    line: (weight) => weight === 1 ? (plain ??= lineFor(1)) : weighedLine(weight)
  }
}

/** @param {import('./serialize').SpanRecord} record @param {number} weight */
function weigh (record, weight) {
  // Spreading would run getters of the program.
  const attributes = Object.defineProperties({}, Object.getOwnPropertyDescriptors(record.attributes ?? {}))
  Object.defineProperty(attributes, 'longstack.sample_ratio', { value: weight, enumerable: true, configurable: true, writable: true })
  return { ...record, attributes }
}

module.exports = { createSinks }
