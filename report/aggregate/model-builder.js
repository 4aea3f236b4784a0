'use strict'

// Aggregates spans one by one, and builds the model of a report. A span counts once: if it was written while
// it was open, it is held until its end is read. Copies in other files are ignored.

const { Blockers, MAX_GROUPS } = require('./blockers')
const { Calls } = require('./calls')
const { convoysOf } = require('./convoys')
const { delayersOf, digest } = require('./digest')
const { Failures } = require('./failures')
const { IdTable } = require('./id-table')
const { Sums } = require('./lists')
const { insert, isLarge } = require('./numbers')
const { Recordings } = require('./recording')
const { Replay } = require('./replay')
const { Renames } = require('./route-names')
const { MAX_ROUTES, Routes, isOutermost, labelOf } = require('./routes')
const { MAX_PLACES } = require('./sites')
const { TimeAxis, Times } = require('./time-axis')
const { verdictOf } = require('./verdict')
const { isCrowded } = require('./verdict/crowding')
const { AfterFacts } = require('./verdict/after')
const { BackgroundFacts } = require('./verdict/background')
const { DeathFacts } = require('./verdict/death')
const { IntervalFacts } = require('./verdict/facts')
const { GrowthFacts } = require('./verdict/grows')
const { LoadFacts } = require('./verdict/load')
const { TaskFacts } = require('./verdict/threads')
const { WaitFacts } = require('./verdict/waiting')
const { peersOf, resized } = require('./what-if')
const { amount } = require('../read/values')

/**
 * @typedef {import('../read/span-line').Span} Span
 * @typedef {import('../read/span-files').FileReport} FileReport
 * @typedef {import('./model').Model} Model
 * @typedef {import('./digest').Digest} Digest
 */

const MAX_BLOCKERS = 100
const MAX_OPEN = 100
const MAX_HELD_CHARS = 64 << 20 // for open spans
const MAX_THRESHOLDS = 10 // in a note

class ModelBuilder {
  #axis = new TimeAxis()
  #routes
  #blocked = new Times(this.#axis, 1) // ms
  /** learned from the added spans */
  renames = new Renames()
  #blockers = new Blockers(this.#axis, this.renames)
  #failures = new Failures(this.#axis)
  #calls = new Calls()
  /** records that are not spans; each takes those with its attribute */
  #facts = {
    intervals: new IntervalFacts(),
    growth: new GrowthFacts(),
    after: new AfterFacts(),
    tasks: new TaskFacts(),
    background: new BackgroundFacts(),
    load: new LoadFacts(),
    death: new DeathFacts(),
    waits: new WaitFacts()
  }

  #recordings = new Recordings()
  #endedIds = new IdTable()
  #open = new OpenSpans()
  /** the slowest @type {Digest[]} */
  #requests = []
  /** the slowest @type {Digest[]} */
  #otherSpans = []
  #maxSlowest
  #start = Infinity
  #end = -Infinity
  #sampledLines = 0
  /** ms of the option `blocked`, 0 for none @type {Set<number>} */
  #thresholds = new Set()
  /** @type {Sums<FileReport>} */
  #copies = new Sums()

  /** @param {number} maxSlowest @param {boolean} isTimed whether sites have sums over time */
  constructor (maxSlowest, isTimed) {
    this.#routes = new Routes(this.#axis, isTimed)
    this.#maxSlowest = maxSlowest
  }

  /**
   * @param {Span} span
   * @param {FileReport} file
   */
  add (span, file) {
    this.#start = Math.min(this.#start, span.startMs)
    this.#end = Math.max(this.#end, span.startMs + span.ms)
    if (this.#thresholds.size < MAX_THRESHOLDS) {
      this.#thresholds.add(amount(span.record.resource?.['longstack.blocked']) ?? 0)
    }
    const [high, low] = hashOf(span)
    if (span.open) {
      if (!this.#endedIds.has(high, low)) this.#open.add(span)
    } else if (this.#endedIds.add(high, low)) {
      this.#open.remove(span)
      this.#addEnded(span)
    } else {
      this.#copies.add(file, 1)
    }
  }

  /** @param {Span} record that is not a span */
  addFacts (record) {
    for (const facts of Object.values(this.#facts)) facts.add(record)
  }

  /** @param {{ pid: number, thread: number }} worker */
  addBusyWorker (worker) { this.#facts.load.addBusy(worker) }

  /**
   * @param {FileReport[]} files
   * @returns {Model}
   */
  build (files) {
    const open = this.#open.list()
    for (const span of open) this.#addOpen(span)
    const [start, end] = [this.#start, this.#end]
    for (const [file, count] of this.#copies) file.problems.push(copied(count))
    this.#routes.rename(this.renames)
    const series = this.#routes.series(this.#blocked)
    const { tree, slowTree, isSlowExact } = this.#routes.trees()
    /** @type {Model} */
    const model = {
      files,
      span: start <= end ? { fromUnixMs: start, toUnixMs: end } : undefined,
      notes: this.#notes(open.length, isSlowExact),
      verdict: [],
      blocked: this.#blockedText(),
      convoys: convoysOf(this.#routes.facts()),
      routes: this.#routes.list(end > start ? (end - start) / 1000 : undefined),
      slowest: this.#requests.length > 0 ? this.#requests : this.#otherSpans,
      tree,
      slowTree,
      failures: this.#failures.list(),
      series,
      blockers: this.#blockers.list().slice(0, MAX_BLOCKERS),
      open: open.slice(0, MAX_OPEN).map(digest),
      openCount: open.length,
      traces: {}
    }
    for (const span of [...model.slowest, ...model.open]) this.renames.apply(span)
    const { deaths } = this.#facts.death
    if (deaths.length > 0) model.handles = deaths.flatMap(({ handles }) => handles)
    const others = { ...this.#facts, calls: this.#calls }
    model.verdict = verdictOf(model, this.#routes.facts(), others, this.#recordings)
    return model
  }

  /**
   * Predicts changes of pools, after `build`.
   * @param {import('./what-if').PoolChange[]} changes
   * @returns {import('./model').Experiments}
   */
  predict (changes) {
    const recordings = this.#recordings.list() ?? [] // empty if lines are missing
    const replay = new Replay(recordings)
    const isStarved = this.#facts.load.starved.length > 0
    const routes = this.#routes.facts()
    const predicted = changes.map((change) => {
      const crowded = isCrowded(routes, change.peer) ? 'crowded' : undefined
      return resized(change, replay, isStarved ? 'starved' : crowded)
    })
    return { peers: peersOf(recordings), changes: predicted }
  }

  /** @param {Span} span */
  #addEnded (span) {
    if (span.weight !== 1) this.#sampledLines++
    if (span.blocked) return this.#addCallback(span)
    this.#calls.add(span)
    this.#routes.add(span, this.#calls.triesOf(span))
    this.#addDelays(span)
    this.#failures.add(span, labelOf(span))
    this.renames.learn(span)
    const slowest = span.kind === 'SERVER' ? this.#requests : this.#otherSpans
    if (isLarge(slowest, this.#maxSlowest, span.ms)) insert(slowest, this.#maxSlowest, digest(span))
  }

  /** Adds a span that no later line ended. @param {Span} span */
  #addOpen (span) {
    if (span.blocked) return this.#addCallback(span)
    this.#calls.add(span)
    this.#routes.addOpen(span)
    this.#addDelays(span)
  }

  /** @param {Span} span */
  #addCallback (span) {
    this.#blockers.addCallback(span)
    this.#recordings.addCallback(span)
    this.#blocked.add(this.#axis.bucketOf(span.startMs), Number(span.attributes['longstack.blocked_ms']))
  }

  /** Adds the delayers of a request; the spans inside it were delayed with it. @param {Span} span */
  #addDelays (span) {
    const { spanId, name, attributes, weight } = span
    this.#blockers.setName(spanId, name)
    if (!isOutermost(span)) return
    this.#blockers.addDelays(delayersOf(attributes), weight)
    this.#recordings.add(span, labelOf(span))
  }

  /** @returns {string} empty without spans */
  #blockedText () {
    const texts = [...this.#thresholds].sort((a, b) => a - b)
      .map((ms) => ms === 0 ? 'without --blocked' : `with --blocked ${ms}`)
    return texts.join(' and ')
  }

  /** @param {number} openCount @param {boolean} isExact whether the tree of the slowest is exact */
  #notes (openCount, isExact) {
    const { others, omittedPlaces, isSampled } = this.#routes.limited()
    const [sampled, open] = [this.#sampledLines, this.#open.omitted]
    const [errors, delays] = [this.#failures.omitted, this.#blockers.omitted]
    /** @type {Array<[boolean, string]>} */
    const notes = [
      [sampled > 0, `${sampled} lines are sampled and stand for several spans each: counts, ` +
        'rates, errors and quartiles are estimates for all of them.'],
      [others > 0, `More than ${MAX_ROUTES} names: ${others} spans are grouped as "(other names)".`],
      [openCount > MAX_OPEN, `Only the ${MAX_OPEN} oldest of ${openCount} open spans are listed.`],
      [open > 0, `${open} lines of open spans are omitted: too many to hold in memory.`],
      [!isExact, 'The tree of the slowest 1 % lacks some of them: too many to hold in memory.'],
      [isSampled, 'Quartiles of waits at sites with very many requests are those of a sample.'],
      [omittedPlaces > 0, `More than ${MAX_PLACES} sites: what came later is in "other sites".`],
      [errors > 0, `${errors} errors are omitted: too many different ones.`],
      [delays > 0, `${delays} delays are omitted: more than ${MAX_GROUPS} blockers.`]
    ]
    return notes.filter(([isTrue]) => isTrue).map(([, note]) => note)
  }
}

/** Open spans whose end line has not been read. */
class OpenSpans {
  omitted = 0 // lines
  /** @type {Map<string, Span>} */
  #spans = new Map()
  #chars = 0

  /** @param {Span} span */
  add (span) {
    const id = idOf(span)
    const chars = this.#chars + span.size - (this.#spans.get(id)?.size ?? 0)
    if (chars > MAX_HELD_CHARS) {
      this.omitted++
    } else {
      this.#chars = chars
      this.#spans.set(id, span)
    }
  }

  /** @param {Span} span that ended */
  remove (span) {
    if (this.#spans.size === 0) return
    const id = idOf(span)
    this.#chars -= this.#spans.get(id)?.size ?? 0
    this.#spans.delete(id)
  }

  /** @returns {Span[]} oldest first */
  list () {
    return [...this.#spans.values()].sort((a, b) => a.startMs - b.startMs)
  }
}

/** @param {number} count */
function copied (count) {
  return count === 1
    ? 'one span was read before; counted once'
    : `${count} spans were read before; counted once: the files contain the same run, or a part of it, twice`
}

/** @param {Span} span */
function idOf ({ traceId, spanId }) {
  return `${traceId} ${spanId}`
}

/** Mixes both ids into 64 bits. @param {Span} span @returns {[high: number, low: number]} */
function hashOf ({ traceId, spanId }) {
  const high = wordAt(spanId, 0) ^ wordAt(traceId, 0) ^ wordAt(traceId, 16)
  const low = wordAt(spanId, 8) ^ wordAt(traceId, 8) ^ Math.imul(wordAt(traceId, 24), 0x9e3779b1)
  return [high, low]
}

/** Reads eight hexadecimal digits of a text. @param {string} text @param {number} start */
function wordAt (text, start) {
  return parseInt(text.slice(start, start + 8), 16)
}

module.exports = { ModelBuilder }
