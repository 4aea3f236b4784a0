'use strict'

// Builds recordings with known answers: one method per kind of entry of the run log.

const layout = require('../../lib/core/run-log-words')
const { SpanReader } = require('../../report/path/window')

const { DATA, DUE, KIND_BITS, POLLED, WORDS } = layout

const CALLBACK = layout.CALLED
const SOCKET = layout.CALLED | layout.CONNECTION

class Log {
  constructor (first = 1) {
    this.first = first
    /** @type {number[][]} */
    this.entries = []
    this.now = 0
  }

  /** @param {number} kind @param {Record<string, number>} words @returns {number} its number */
  add (kind, words) {
    const { flags = 0, ref = 0, chain = 0, request = 0, registered = 0, settled = 0 } = words
    const { at = this.now, a = 0, b = 0, x = 0 } = words
    this.entries.push([kind | flags << KIND_BITS, ref, chain, request, registered, settled, at, a, b, x])
    return (this.first + this.entries.length - 1) | 0
  }

  /** @param {number} at */
  move (at) {
    this.now = at
    return at
  }

  /** A callback of the event loop. @param {number} at @param {object} words */
  callback (at, { flags = 0, id = 1000 + this.entries.length, ...words } = /** @type {any} */ ({})) {
    return this.add(layout.RUN, { at: this.move(at), flags: flags | CALLBACK, b: id, ...words })
  }

  /** What runs after an await, in the same callback. @param {number} at @param {object} words */
  awaited (at, words) {
    return this.add(layout.RUN, { at: this.move(at), flags: layout.AWAITED, ...words })
  }

  /** A tick, or with `caller` what runs inside of another run. @param {number} at @param {object} words */
  step (at, { caller = 0, id = 1000 + this.entries.length, ...words } = /** @type {any} */ ({})) {
    return this.add(layout.RUN, { at: this.move(at), a: caller, b: id, ...words })
  }

  /** @param {number} at @param {number} request @param {number} run that goes on */
  resume (at, request, run) {
    return this.add(layout.RESUME, { at: this.move(at), request, registered: run })
  }

  /** @param {number} at @param {number} slept ms */
  poll (at, slept) {
    return this.add(layout.POLL, { at: this.move(at), x: slept })
  }

  /**
   * A request is read: a callback, of which the rest is the request's.
   * @param {number} at
   * @param {number} request
   * @param {object} words
   * @returns {number} its first run
   */
  serve (at, request, { unread = 0, ...words } = /** @type {any} */ ({})) {
    const id = 50_000 + request
    const run = this.callback(at, { flags: CALLBACK | layout.PARSER, id, ...words })
    const own = this.add(layout.RUN, { flags: CALLBACK | layout.PARSER, request, registered: run, b: id })
    const { chain = 0 } = words
    this.add(layout.BEGIN, { request, chain, registered: run, settled: own, a: layout.SERVER, x: unread })
    return own
  }

  /**
   * @param {number} request
   * @param {number} parent
   * @param {number} run in which it is made
   * @param {object} words
   */
  client (request, parent, run, words = {}) {
    this.add(layout.BEGIN, { request, registered: run, a: layout.CLIENT, b: parent, ...words })
  }

  /** @param {number} at @param {number} request @param {number} run @param {object} words */
  end (at, request, run, words = {}) {
    this.add(layout.END, { at, request, registered: run, ...words })
  }

  /** @param {number} connection @param {number} run @param {object} words */
  sent (connection, run, words = {}) {
    return this.add(layout.SENT, { ref: connection << 1, registered: run, ...words })
  }

  /**
   * Data comes, in a callback of its own.
   * @param {number} at
   * @param {number} connection
   * @param {object} words of the run
   * @param {object} bytes
   */
  came (at, connection, words = {}, bytes = {}) {
    const run = this.callback(at, { flags: SOCKET, id: connection, ...words })
    this.add(layout.CAME, { ref: connection << 1, registered: run, ...bytes })
    return run
  }

  /**
   * @param {number} by run that settles a promise
   * @param {number} made run in which it was made
   * @param {object} words
   */
  settle (by, made, words = {}) {
    const ref = 2 * this.entries.length + 1
    return this.add(layout.SETTLED_BY_ANSWER, { at: 0, ref, registered: made, settled: by, ...words })
  }

  /** @param {number} run @param {number} at when what it waited for had come @param {number} later ms */
  arrived (run, at, later = 0) {
    this.add(layout.ARRIVED, { at, registered: run, a: DATA, x: later })
  }

  /** @param {number} run @param {number} at when it was due */
  due (run, at) {
    this.add(layout.ARRIVED, { at, registered: run, a: DUE, x: 1 })
  }

  /** @param {number} run @param {number} at @param {number} range ms that it may have come earlier */
  polledBy (run, at, range) {
    this.add(layout.ARRIVED, { at, registered: run, a: POLLED, x: range })
  }

  /** Returns the entries as they lie in memory. */
  bytes () {
    const words = new Int32Array(this.entries.length * WORDS)
    const doubles = new Float64Array(words.buffer)
    this.entries.forEach(([head, ref, chain, request, registered, settled, time, a, b, x], i) => {
      words.set([head, ref, chain, request, registered, settled], i * WORDS)
      words.set([a, b], i * WORDS + layout.A)
      doubles[i * WORDS / 2 + layout.TIME] = time
      doubles[i * WORDS / 2 + layout.X] = x
    })
    return new Uint8Array(words.buffer)
  }

  /** Returns all spans that it tells, as ended when it is over. */
  spans () {
    const reader = new SpanReader(undefined, 0)
    reader.push({ first: this.first, entries: this.bytes(), isLast: true })
    return reader.ended()
  }
}

/**
 * Reads what a recording says about a request.
 * @param {Log} log
 * @param {number} number of the request
 */
function told (log, number) {
  const span = log.spans().find(({ request }) => request.number === number)
  if (span === undefined) throw new Error(`there is no request ${number}`)
  // In their order, without what was too short to see
  return { ...span, waits: span.path.waits.filter(({ ms, delayedMax }) => ms + delayedMax > 0.001).reverse() }
}

module.exports = { Log, SOCKET, told }
