'use strict'

// Evicts older entries when a recording is full. Entries of spans that were not returned yet stay, and so do
// runs of other requests that may have delayed them.

const { SENT } = require('../../lib/core/run-log-words')
const { getOrAdd, newList } = require('../../lib/group-by')
const { NONE } = require('./entries')
const { SETTLED } = require('./query-writes')
const { entryBefore, findArrival } = require('./timeline')

const MAX_WRITES = 32 // per connection, not claimed by a promise
const MAX_QUERIES = 256 // answered by the same data
const IS_RUN = 2 // mark of a run whose related entries are all marked

/**
 * @typedef {import('./requests').Request} Request
 * @typedef {import('./queries').Log} Log
 */

class Marks {
  #arrival = { after: 0, by: 0 }

  /** @param {Log} log @param {number} from index from which all are kept */
  constructor (log, from) {
    this.log = log
    this.recording = log.recording
    this.from = from
    /** by index, nonzero if kept */
    this.entries = new Uint8Array(log.recording.count)
    /** by index, ranges that begin there minus ranges that ended before */
    this.ranges = new Int32Array(log.recording.count + 1)
  }

  /**
   * Marks the entries that unreported spans need.
   * @param {Request[]} spans in order of start
   * @param {number} limit per span, of older slices and of writes and queries
   * @returns {number} number of older entries kept
   */
  mark (spans, limit) {
    for (const span of spans) {
      const { asked, endEntry, firstRun, lastRun } = span
      this.#markRun(firstRun)
      this.#markRun(lastRun)
      if (endEntry !== NONE) this.#markEnd(endEntry)
      this.#eachAsked(asked, limit, (i) => this.#markAsked(i))
    }
    for (const [top, inner] of byTop(spans)) {
      this.#eachSlice(top, beginOf(inner), limit, (i) => {
        this.#mark(i)
        this.#markRun(this.recording.run[i])
      })
    }
    for (const { write, call } of this.log.traffic.connections.values()) {
      this.#markWrites(write)
      this.#mark(call)
    }
    this.markPresent()
    const { head, poll } = this.log.timeline
    if (head !== NONE) this.#markCallback(head)
    // The next callback may have been due since the previous poll.
    const before = poll === NONE ? NONE : this.recording.poll[poll]
    this.#markRange(before === NONE ? 0 : before, this.recording.count - 1)
    return this.#count()
  }

  /**
   * Removes entries beyond the limit from the lists of spans, and notes for how long they ran then.
   * @param {Request[]} spans in order of start
   * @param {number} limit
   */
  cut (spans, limit) {
    const { asked, at, end, previous, request } = this.recording
    for (const span of spans) {
      const last = this.#eachAsked(span.asked, limit, () => {})
      if (last === NONE) span.asked = NONE
      else asked[last] = NONE
    }
    for (const [top, inner] of byTop(spans)) {
      const last = this.#eachSlice(top, beginOf(inner), limit, () => {})
      const newest = last === NONE ? top.slice : previous[last]
      if (last === NONE) top.slice = NONE
      else previous[last] = NONE
      if (newest === NONE) continue
      for (const span of inner) {
        if (span.begin >= end[newest]) continue
        span.droppedUntil = end[newest]
        for (let i = newest; i !== NONE && end[i] > span.begin; i = previous[i]) {
          if (!this.log.spans.isInside(request[i], span.number)) continue
          const stop = span.isOpen ? end[i] : Math.min(end[i], span.end)
          span.dropped += Math.max(0, stop - Math.max(at[i], span.begin))
        }
      }
    }
  }

  /**
   * Calls a function with the slices of a request.
   * @param {Request} top
   * @param {number} since ms
   * @param {number} limit maximum number of older ones
   * @param {(i: number) => void} use
   * @returns {number} the last of them
   */
  #eachSlice (top, since, limit, use) {
    const { end, previous } = this.recording
    let last = NONE
    let older = 0
    for (let i = top.slice; i !== NONE && end[i] >= since; i = previous[i]) {
      if (i < this.from && older++ >= limit) break
      use(last = i)
    }
    return last
  }

  /**
   * Calls a function with the writes and queries of a span.
   * @param {number} newest
   * @param {number} limit maximum number of older ones
   * @param {(i: number) => void} use
   * @returns {number} the last of them
   */
  #eachAsked (newest, limit, use) {
    const { asked } = this.recording
    let last = NONE
    let older = 0
    for (let i = newest; i !== NONE; i = asked[i]) {
      if (i < this.from && older++ >= limit) break
      use(last = i)
    }
    return last
  }

  /** Marks the ranges, and the runs of all slices. Returns how many older entries have a mark. */
  #count () {
    const { entries, ranges, recording: { count, run } } = this
    for (let i = 0, depth = 0; i < count; i++) {
      depth += ranges[i]
      if (depth > 0 || i >= this.from) this.#mark(i)
    }
    let kept = 0
    for (let i = count - 1; i >= 0; i--) {
      if (entries[i] === 0) continue
      this.#mark(run[i])
      if (i < this.from) kept++
    }
    return kept
  }

  /** @param {number} i entry, or NONE */
  #mark (i) {
    if (i !== NONE && this.entries[i] === 0) this.entries[i] = 1
  }

  /** Marks only a run and its callback. @param {number} run */
  #markStep (run) {
    if (run === NONE) return
    const { head, last } = this.recording
    this.#mark(run)
    this.#mark(last[run])
    this.#mark(head[run])
    this.#mark(last[head[run]])
  }

  /** Marks the entries that new ones belong to. */
  markPresent () {
    const { head, open, poll, slice } = this.log.timeline
    if (slice !== NONE) this.#markStep(this.recording.run[slice])
    this.#markStep(head)
    for (const each of [open, slice, poll]) this.#mark(each)
    if (poll !== NONE) this.#mark(this.recording.poll[poll])
    let left = this.from >> 2
    for (const { write } of this.log.traffic.connections.values()) if (left-- > 0) this.#mark(write)
  }

  /** Marks a run, the time its callback was due, and what ran since then. @param {number} run */
  #markRun (run) {
    if (run === NONE || this.entries[run] === IS_RUN) return
    this.#markStep(run)
    this.entries[run] = IS_RUN
    const { caller, head, last, registered, settled } = this.recording
    const callback = head[run]
    const trigger = Math.max(settled[run], caller[run])
    const cause = trigger === NONE ? callback : head[trigger]
    const due = Math.min(run, this.#dueOf(callback), this.#dueOf(cause))
    this.#markStep(registered[run])
    this.#markStep(trigger)
    this.#markCallback(callback)
    if (cause !== callback) this.#markCallback(cause)
    // It may have called others.
    this.#markRange(this.#isOwn(trigger, run) ? trigger : due, last[run])
  }

  /**
   * Whether a run was caused by another one of the same request.
   * @param {number} trigger
   * @param {number} run
   */
  #isOwn (trigger, run) {
    const { last, outer, registered } = this.recording
    return trigger > registered[run] && outer[last[trigger]] === outer[last[run]]
  }

  /**
   * Marks the entries that say when a callback was due, and the data it brought.
   * @param {number} run that the event loop called
   */
  #markCallback (run) {
    if (run === NONE) return
    const { arrived, came, poll } = this.recording
    this.#markStep(run)
    this.#mark(arrived[run])
    this.#mark(poll[run])
    if (poll[run] !== NONE) this.#mark(poll[poll[run]])
    if (came[run] !== NONE) this.#markData(came[run])
  }

  /** Returns the entry since which a callback may have been due. @param {number} run NONE if unknown */
  #dueOf (run) {
    if (run === NONE) return Infinity
    const { came, poll, previous, registered, sent } = this.recording
    const data = came[run]
    const isFirst = data === NONE || sent[data] === NONE || previous[sent[data]] === NONE
    // Only the last of several responses is known to have come then.
    if (!isFirst && poll[run] !== NONE && poll[poll[run]] !== NONE) return poll[poll[run]]
    findArrival(this.recording, run, this.#arrival)
    const { after } = this.#arrival
    const due = after === -Infinity ? registered[run] : entryBefore(this.recording, after, run)
    return due === NONE ? run : due
  }

  /** Marks all between two entries. @param {number} from @param {number} until */
  #markRange (from, until) {
    this.#mark(this.recording.slice[from])
    this.ranges[from]++
    this.ranges[until + 1]--
  }

  /** @param {number} i end of a span */
  #markEnd (i) {
    const { run, slice } = this.recording
    this.#mark(i)
    if (slice[i] !== NONE) this.#markRun(run[slice[i]])
    this.#mark(slice[i])
  }

  /** @param {number} i write or query */
  #markAsked (i) {
    const { came, kind, registered, sent } = this.recording
    this.#mark(i)
    this.#markStep(registered[i])
    this.#mark(sent[i])
    if (kind[i] !== SENT) this.#markStep(registered[sent[i]])
    if (came[i] !== NONE) this.#markData(came[i])
  }

  /** Marks data that came, and the queries it answered. @param {number} i */
  #markData (i) {
    if (this.entries[i] !== 0) return
    const { asked, previous, registered, sent } = this.recording
    this.#mark(i)
    this.#mark(asked[i])
    if (asked[i] !== NONE) this.#mark(sent[asked[i]])
    let query = sent[i]
    for (let count = 0; query !== NONE && count < MAX_QUERIES; count++, query = previous[query]) {
      this.#mark(query)
      this.#mark(sent[query])
    }
    this.#markCallback(registered[i])
  }

  /** Marks writes on a connection that may still be claimed. @param {number} newest write */
  #markWrites (newest) {
    const { flags, previous, registered } = this.recording
    let write = newest
    for (let i = 0; i < MAX_WRITES && write !== NONE; i++, write = previous[write]) {
      if (i > 0 && (flags[write] & SETTLED) !== 0) continue
      this.#mark(write)
      this.#markStep(registered[write])
    }
  }
}

/**
 * Groups spans by their outermost one.
 * @param {Request[]} spans
 * @returns {Map<Request, Request[]>}
 */
function byTop (spans) {
  /** @type {Map<Request, Request[]>} */
  const tops = new Map()
  for (const span of spans) getOrAdd(tops, span.top, newList).push(span)
  return tops
}

/** Returns the start of the first of some spans. @param {Request[]} spans */
const beginOf = (spans) => spans.reduce((first, { begin }) => Math.min(first, begin), Infinity)

module.exports = { Marks }
