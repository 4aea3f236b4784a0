'use strict'

// Ended spans to all outputs: decides which output gets a span, builds the record and its line only if one
// does, and keeps everything that can fail away from the program.

const guard = require('../context/guard')
const { safe, targetOf } = require('./outputs')
const { weightFor } = require('./sampling')
const { MAX_LINE, byteLineOf, byteLineOfJson } = require('./serialize')
const bytes = require('../encoding/bytes')

/**
 * @typedef {import('./outputs').Output} Output
 * @typedef {import('./serialize').SpanRecord} SpanRecord
 * @typedef {import('./file').SinkContext} SinkContext
 *
 * @typedef {object} EndedSpan
 * @property {number} ms duration
 * @property {boolean} failed status ERROR
 * @property {string} traceId
 * @property {() => SpanRecord} record builds the record, once
 * @property {(weight: number, onReplaced: () => void) => string | undefined} [json] the record's JSON as a
 *   text of bytes, where it is known without the record
 * @property {(weight: number, onReplaced: () => void) => boolean} [put] the same, put into the buffer of
 *   encoding/bytes.js
 *
 * @typedef {object} OutputStats
 * @property {string} to
 * @property {number} written
 * @property {number} waiting not written yet: lost where the process ends before that
 * @property {number} dropped
 * @property {string} [fault] why nothing can be written now
 *
 * @typedef {object} SinkStats
 * @property {number} written over all outputs
 * @property {number} waiting
 * @property {number} dropped
 * @property {number} replaced attributes that could not be written as JSON
 * @property {OutputStats[]} outputs
 *
 * @typedef {object} Sink
 * @property {(line: any) => void} write gets a line as a text of bytes, or the record where `raw`
 * @property {(bytes: Buffer, length: number) => void} [writeBytes] gets a line as bytes that are good until
 *   this returns
 * @property {() => void} [reopen]
 * @property {(goesOn?: boolean) => void} flush
 * @property {() => void} close
 * @property {() => { written: number, waiting: number, dropped: number, fault?: string }} stats
 *
 * @typedef {{ output: Output, sink: Sink, raw: boolean, lost: number }} Destination
 */

/** @param {Output[]} outputs @param {SinkContext} context */
function createSinks (outputs, context) {
  let replaced = 0
  const destinations = guard.run(() => outputs.map((output) => destinationFor(output, context)))

  /** @param {EndedSpan} span */
  function deliver (span) {
    /** @type {ReturnType<typeof createCopies> | undefined} */
    let copies
    for (const destination of destinations) {
      try {
        const weight = weightFor(destination.output, span)
        if (weight === 0) continue
        if (destinations.length === 1 && putLine(destination.sink, span, weight)) return
        copies ??= createCopies(span, countReplaced)
        destination.sink.write(destination.raw ? copies.record(weight) : copies.line(weight))
      } catch {
        destination.lost++ // an attribute or a built-in of the program's throws
      }
    }
  }

  /**
   * The short way to the only output.
   * @param {Sink} sink
   * @param {EndedSpan} span
   * @param {number} weight
   * @returns {boolean} false: the long way is to be used
   */
  function putLine (sink, span, weight) {
    const before = replaced
    if (sink.writeBytes === undefined || span.put === undefined) return false
    if (!span.put(weight, countReplaced)) return false
    bytes.put('\n')
    if (bytes.length() > MAX_LINE) { // it is shortened on the long way, where all is counted again
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
  function forEachSink (work) {
    guard.run(() => {
      for (const { sink } of destinations) {
        try {
          work(sink)
        } catch {}
      }
    })
  }

  return {
    /** @param {EndedSpan} span */
    write (span) {
      guard.run(() => deliver(span))
    },

    reopen () {
      forEachSink((sink) => sink.reopen?.())
    },

    /**
     * Writes what waits, synchronously and in bounded time.
     * @param {boolean} [goesOn] the program does not end: no answer is waited for
     */
    flush (goesOn) {
      forEachSink((sink) => sink.flush(goesOn))
    },

    close () {
      forEachSink((sink) => sink.close())
    },

    /** Writes what this iteration of the event loop has collected, and counts. @returns {SinkStats} */
    stats () {
      const list = guard.run(() => destinations.map(statsOf))
      const sum = (/** @type {'written' | 'waiting' | 'dropped'} */ key) => {
        return list.reduce((total, stats) => total + stats[key], 0)
      }
      const [written, waiting, dropped] = [sum('written'), sum('waiting'), sum('dropped')]
      return { written, waiting, dropped, replaced, outputs: list }
    }
  }
}

/** @param {Output} output @param {SinkContext} context @returns {Destination} */
function destinationFor (output, context) {
  const target = targetOf(output.to)
  return { output, sink: sinkFor(output, target, context), raw: target.url !== undefined, lost: 0 }
}

/**
 * @param {Output} output
 * @param {ReturnType<typeof targetOf>} target
 * @param {SinkContext} context
 * @returns {Sink}
 */
function sinkFor (output, target, context) {
  try {
    if (target.url !== undefined) return new (require('./otlp').OtlpSink)(output, context.warn)
    return require('./file').createLineSink(target, nameOf(output.to), context)
  } catch (error) {
    const reason = String(/** @type {any} */ (error)?.message ?? error).split('\n', 1)[0]
    context.warn('SPANS_FAILED', `spans cannot be written to ${safe(output.to)}: ${reason}`)
    return brokenSink(reason)
  }
}

/** @param {string} to */
function nameOf (to) {
  return to === '-' ? 'stdout' : to
}

/** Replaces a sink that could not be made: counts what it drops. @param {string} fault @returns {Sink} */
function brokenSink (fault) {
  let dropped = 0
  const stats = () => ({ written: 0, waiting: 0, dropped, fault })
  return { write () { dropped++ }, flush () {}, close () {}, stats }
}

/** @param {Destination} destination @returns {OutputStats} */
function statsOf ({ output, sink, lost }) {
  const { written, waiting, dropped, fault } = sink.stats()
  const cause = fault !== undefined && { fault }
  return { to: safe(output.to), written, waiting, dropped: dropped + lost, ...cause }
}

/**
 * A span as record and as line, made once for all outputs; a sampled one has its ratio in it.
 * @param {EndedSpan} span
 * @param {() => void} onReplaced
 */
function createCopies (span, onReplaced) {
  /** @type {SpanRecord | undefined} */
  let record
  /** @type {string | undefined} */
  let fullLine
  /** @type {Map<number, string> | undefined} */
  let weightedLines

  /** @param {number} weight */
  const recordFor = (weight) => {
    record ??= span.record()
    return weight === 1 ? record : withRatio(record, weight)
  }

  /** @param {number} weight */
  const lineFor = (weight) => {
    const json = span.json?.(weight, onReplaced)
    return json === undefined ? byteLineOf(recordFor(weight), onReplaced) : byteLineOfJson(json)
  }

  /** @param {number} weight */
  const weightedLine = (weight) => {
    weightedLines ??= new Map()
    const line = weightedLines.get(weight) ?? lineFor(weight)
    weightedLines.set(weight, line)
    return line
  }

  return {
    record: recordFor,
    /** @param {number} weight */
    line: (weight) => weight === 1 ? (fullLine ??= lineFor(1)) : weightedLine(weight)
  }
}

/** @param {SpanRecord} record @param {number} ratio */
function withRatio (record, ratio) {
  // Spreading would run getters of the program.
  const attributes = Object.defineProperties({}, Object.getOwnPropertyDescriptors(record.attributes ?? {}))
  const property = { value: ratio, enumerable: true, configurable: true, writable: true }
  Object.defineProperty(attributes, 'longstack.sample_ratio', property)
  return { ...record, attributes }
}

module.exports = { createSinks }
