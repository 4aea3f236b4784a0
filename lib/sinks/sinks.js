'use strict'

// Passes ended spans to all outputs: decides which outputs get a span, builds the record and its line only if
// one does, and keeps all failures away from the program.
//
// The head decision is OpenTelemetry's ratio sampling: it compares the last 56 bits of the trace id, which
// are random, with the ratio. All outputs and all services decide alike without communicating, and the sample
// of a small ratio is a subset of the sample of a larger one.

const guard = require('../core/guard')
const { safe, targetOf } = require('./outputs')
const { lineOf, withAttributes } = require('../encoding/serialize')

const BITS = 52 // 52 of the 56 bits: a double holds such integers

/**
 * @typedef {import('./outputs').Output} Output
 * @typedef {import('../encoding/serialize').SpanRecord} SpanRecord
 * @typedef {import('./file').SinkContext} SinkContext
 * @typedef {import('../encoding/definitions').Definitions} Definitions
 *
 * @typedef {{ ms: number, failed: boolean, traceId: string }} Candidate
 *
 * @typedef {object} EndedSpan
 * @property {number} ms duration
 * @property {boolean} failed status ERROR
 * @property {string} traceId
 * @property {() => SpanRecord} record returns the record, the same each time
 * @property {(definitions: Definitions, weight: number, onReplaced: () => void) => string} [line] the span as
 *   a line of a file; the record is written if omitted
 *
 * @typedef {object} OutputStats
 * @property {string} to
 * @property {number} written
 * @property {number} waiting not written yet: lost if the process ends first
 * @property {number} dropped
 * @property {string} [fault] why nothing can be written now
 *
 * @typedef {object} SinkStats
 * @property {number} written in all outputs
 * @property {number} waiting
 * @property {number} dropped
 * @property {number} replaced attributes that could not be written as JSON
 * @property {OutputStats[]} outputs
 *
 * @typedef {object} Sink
 * @property {(line: any) => void} write gets a line after the definitions it needs, or the record if the
 *   sink has no definitions
 * @property {Definitions} [definitions] of a file
 * @property {(goesOn?: boolean) => void} flush
 * @property {() => Promise<void>} [settled]
 * @property {() => void} close
 * @property {() => { written: number, waiting: number, dropped: number, fault?: string }} stats
 *
 * @typedef {{ output: Output, sink: Sink, lost: number }} Destination
 */

/** Whether an output takes a span. @param {Output[]} outputs @param {Candidate} span */
const isWantedBy = (outputs, span) => outputs.some((output) => weightFor(output, span) !== 0)

/**
 * @param {Output[]} outputs
 * @param {SinkContext} context
 */
function createSinks (outputs, context) {
  let replaced = 0
  /** @type {Destination[]} */
  const destinations = guard.run(() =>
    outputs.map((output) => ({ output, sink: sinkFor(output, context), lost: 0 })))

  /** @param {EndedSpan} span */
  function deliver (span) {
    for (const destination of destinations) {
      try {
        const weight = weightFor(destination.output, span)
        if (weight !== 0) destination.sink.write(formOf(span, destination.sink, weight, countReplaced))
      } catch {
        destination.lost++ // an attribute, or a built-in replaced by the program, threw
      }
    }
  }

  const countReplaced = () => { replaced++ }

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
    wants: (/** @type {Candidate} */ span) => isWantedBy(outputs, span),

    /** @param {EndedSpan} span */
    write: (span) => guard.run(() => deliver(span)),

    /**
     * Writes pending spans, synchronously and in bounded time.
     * @param {boolean} [goesOn] the program continues: does not wait for responses
     */
    flush: (goesOn) => forEachSink((sink) => sink.flush(goesOn)),

    /** Waits for responses after a flush, in a thread of longstack's own. */
    settled: () => Promise.all(destinations.map(({ sink }) => sink.settled?.())),
    close: () => forEachSink((sink) => sink.close()),

    /** Writes the spans of this event loop iteration, and counts. @returns {SinkStats} */
    stats () {
      const list = guard.run(() => destinations.map(statsOf))
      const sum = (/** @type {'written' | 'waiting' | 'dropped'} */ key) =>
        list.reduce((total, stats) => total + stats[key], 0)
      return {
        written: sum('written'), waiting: sum('waiting'), dropped: sum('dropped'), replaced, outputs: list
      }
    }
  }
}

/** @param {Output} output @param {SinkContext} context @returns {Sink} */
function sinkFor (output, context) {
  const { to, target = targetOf(to) } = output
  try {
    if (target.url !== undefined) {
      return new (require('./otlp').OtlpSink)(output, context.warn, context.isOwnThread)
    }
    return new (require('./file').LineSink)(target, to === '-' ? 'stdout' : to, context)
  } catch (error) {
    const reason = String(/** @type {any} */ (error)?.message ?? error).split('\n', 1)[0]
    context.warn('SPANS_FAILED', `spans cannot be written to ${safe(to)}: ${reason}`)
    return brokenSink(reason)
  }
}

/** Replaces a sink that could not be created; counts dropped spans. @param {string} fault @returns {Sink} */
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
 * Returns a span in the form of an output: a line after the definitions it needs, or the record.
 * @param {EndedSpan} span
 * @param {{ definitions?: Definitions }} output
 * @param {number} weight
 * @param {() => void} onReplaced called for each attribute that cannot be written
 * @returns {any}
 */
function formOf (span, { definitions }, weight, onReplaced) {
  if (definitions !== undefined && span.line !== undefined) return span.line(definitions, weight, onReplaced)
  let record = span.record()
  if (weight !== 1) {
    const attributes = withAttributes(record.attributes, { 'longstack.sample_ratio': weight })
    record = { ...record, attributes }
  }
  return definitions === undefined ? record : lineOf(record, onReplaced)
}

/**
 * Returns whether a trace is in the sample.
 * @param {string} traceId 32 hexadecimal digits
 * @param {number} ratio 0 to 1
 */
function inSample (traceId, ratio) {
  if (ratio >= 1 || typeof traceId !== 'string') return true
  return parseInt(traceId.slice(18, 31), 16) >= (1 - ratio) * 2 ** BITS
}

/**
 * Returns the weight of a span for an output: 0 if it is omitted, 1 if it represents only itself, or the
 * ratio if it is part of a sample.
 * @param {Output} output
 * @param {Candidate} span
 * @returns {number} its inverse is the number of spans that the line represents
 */
function weightFor ({ slower, errors, sample, keep }, span) {
  const { ms, failed } = span
  if ((slower !== undefined && !(ms >= slower)) || (errors && !failed)) return 0
  if (sample === undefined || (keep !== undefined && (failed || ms >= keep))) return 1
  return inSample(span.traceId, sample) ? sample : 0
}

module.exports = { isWantedBy, createSinks, inSample, weightFor }
