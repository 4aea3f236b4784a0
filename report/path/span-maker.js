'use strict'

// Builds span records (lib/encoding/span-form.js) of one source from its log (window.js) and its texts. It
// needs no state of the traced process, so commands and workers can use it.

const {
  MIN_RANGE, MIN_SHARE, delaysOf, rangeEnd, runsBySite, sorted, sumsOf, us, waitIn
} = require('../../lib/encoding/span-figures')
const { SpanForm, textsOf } = require('../../lib/encoding/span-form')
const { unpack } = require('../../lib/encoding/packed-spans')
const { withAttributes } = require('../../lib/encoding/serialize')
const { CLIENT, SERVER } = require('../../lib/core/run-log-words')
const { getOrAdd } = require('../../lib/group-by')
const { AfterResponse } = require('./after-response')
const { Background } = require('./background')
const { factsRecord } = require('./facts-record')
const { Latest } = require('./latest')
const { PoolTasks } = require('./pool-tasks')
const { NO_CHAIN, SourceTexts } = require('./source-texts')

const MAX_DELAYERS = 5
const MAX_WAITING = 4_000 // spans whose text or end has not come
const MAX_HELD_MS = 200 // for the name of another request, which is reported once that request is long

/**
 * @typedef {import('./window').EndedSpan} EndedSpan
 * @typedef {import('./source-texts').ToldSpan} ToldSpan
 * @typedef {import('../../lib/encoding/span-form').Figures} Figures
 * @typedef {import('../../lib/encoding/span-figures').SiteWait} SiteWait
 *
 * @typedef {object} MadeSpan span as passed to sinks (lib/sinks/sinks.js)
 * @property {number} ms
 * @property {boolean} failed
 * @property {string} traceId
 * @property {() => any} record
 * @property {(definitions: any, weight: number, onReplaced: () => void) => string} [line]
 * @property {import('../../lib/encoding/span-form').Told} [span] undefined for other records
 */

class SpanMaker {
  #texts = new SourceTexts()
  /** by number, until the log has its end @type {Latest<ToldSpan>} */
  #told = new Latest(MAX_WAITING)
  /** by number, until their texts have come @type {Latest<EndedSpan>} */
  #untold = new Latest(MAX_WAITING)
  /** until the names of others are known @type {Array<{ span: ToldSpan, ended: EndedSpan }>} */
  #held = []
  /** @type {MadeSpan[]} */
  #records = []
  #after = new AfterResponse()
  #tasks = new PoolTasks()
  #background = new Background()
  /** open requests that still wait for the last that is known @type {Set<number>} */
  #pending = new Set()

  /**
   * Description of the recording thread, as reported by itself.
   * @returns {{ pid?: unknown, thread?: unknown }}
   */
  get source () { return { ...this.#texts.source, thread: this.#texts.resource['longstack.thread'] } }

  /** The last report of the thread other than spans; counts and times are NaN if unknown. */
  get latest () {
    const { handles: { all, latest: handles, lookedAt }, load: { vitals }, open, resource } = this.#texts
    const { waits } = open
    const service = String(resource['service.name'] ?? '')
    return { service, handles, handleCount: Number(all), countedAt: Number(lookedAt), vitals, waits }
  }

  /** @param {number} origin ms since 1970 when the clock was 0 */
  setOrigin (origin) { this.#texts.origin = origin }

  /** @returns {number} spans whose end, or the name of another request, has not come */
  get waiting () {
    return this.#told.size + this.#held.length
  }

  get isWaiting () {
    return this.#held.length > 0
  }

  /**
   * Forgets that connections were idle when open requests were looked at, if they were used after that.
   * @param {import('./window').SpanReader} reader of the whole log
   */
  dropUsed (reader) {
    const { open, open: { idle, since } } = this.#texts
    if (idle === undefined || since === undefined) return
    const used = new Set(reader.writtenSince(since).map((ref) => this.#texts.peerOf(ref)))
    open.idle = idle.filter(({ peer }) => !used.has(peer))
  }

  /** Adds the texts of a block. @param {string[]} lines */
  add (lines) {
    for (const line of lines) {
      if (line === '') continue
      try {
        const text = JSON.parse(line)
        if (text.record !== undefined) this.#records.push(recordOf(text.record))
        this.#tell(this.#texts.add(text))
        if (text.spans !== undefined) {
          for (const packed of unpack(text.spans)) this.#tell(this.#texts.packedSpan(packed))
        }
      } catch {} // damaged, or of a later version
    }
  }

  /** Adds a span that has ended, or is reported as open. @param {ToldSpan} span */
  addSpan (span) {
    this.#texts.addName(span.number, span.name, span.spanId)
    this.#tell(span)
  }

  /** @param {ToldSpan | undefined} span */
  #tell (span) {
    if (span === undefined) return
    const { number } = span
    const ended = this.#untold.get(number)
    if (ended === undefined) {
      this.#told.set(number, span)
    } else {
      this.#untold.delete(number)
      this.#held.push({ span, ended })
    }
  }

  /**
   * Builds spans, and the records that came as texts.
   * @param {EndedSpan[]} ended
   * @param {number} [now] ms of the clock
   * @returns {MadeSpan[]}
   */
  make (ended, now = Infinity) {
    const made = this.#records
    this.#records = []
    const held = this.#held
    this.#held = []
    for (const each of ended) {
      const { number } = each.request
      const span = this.#told.get(number)
      if (span === undefined) {
        this.#untold.set(number, each)
      } else {
        this.#told.delete(number)
        held.push({ span, ended: each })
      }
    }
    for (const each of held) {
      if (this.#isNamed(each.ended) || now - each.span.end > MAX_HELD_MS) made.push(this.#formOf(each))
      else this.#held.push(each)
    }
    return made
  }

  /** @param {import('./after-response').After} after */
  addAfter (after) { this.#after.add(after, this.#texts) }

  /** @param {number} chain of code outside of requests @param {number} ms */
  addBackground (chain, ms) { this.#background.add(chain, ms) }

  /**
   * @param {number} chain of a callback that the event loop called
   * @param {number} start of its operation, ms of the clock
   * @param {number} due
   */
  addCalled (chain, start, due) { this.#tasks.add(chain, start, due, this.#texts) }

  /** @returns {object | undefined} the last that a black box knows of its process */
  #deathRecord () {
    const texts = this.#texts
    const { death } = texts
    if (death === undefined) return undefined
    const { all, routes } = death.buffers ?? { all: 0, routes: [] }
    const known = Array.isArray(routes) ? routes : []
    const named = known.map((one) => ({ ...one, ...textsOf(texts.siteOf(Number(one?.chain))) }))
    const { all: open, latest: handles, lookedAt } = texts.handles
    const at = death.unixMs - texts.origin
    const counted = lookedAt !== undefined && { open, countedMs: Math.max(0, at - lookedAt) }
    const own = { handles, ...counted, buffers: named, allocated: all }
    const facts = { ...death, ...own, ...textsOf(texts.siteOf(death.chain)) }
    const attributes = { 'longstack.death': [facts] }
    return factsRecord('end of the box', attributes, at, texts)
  }

  /** @returns {object | undefined} which open requests waited for each other at the end */
  #waitsRecord () {
    const texts = this.#texts
    const { graph, waits } = texts.open
    if (graph === undefined) return undefined
    /** Whether all requests that waited at a place still do. @param {{ at: string }} member */
    const isPresent = ({ at: place }) => {
      const there = waits.filter((one) => one.waits.some(([what]) => what.endsWith(` at ${place}`)))
      return there.length > 0 && there.every(({ span }) => this.#pending.has(span))
    }
    const cycles = graph.cycles.filter(({ members }) => members.every(isPresent))
    const convoys = graph.convoys.filter(isPresent)
    if (cycles.length + convoys.length === 0) return undefined
    return factsRecord('open requests', { 'longstack.waits_for': [{ cycles, convoys }] }, 0, texts)
  }

  /**
   * Builds the rest at the end. Spans whose ends are lost have unknown figures.
   * @param {import('./thread-load').LoopLoad} [load] of the thread, for records of it
   * @param {boolean} [withOpen] also requests in flight that the thread could not report
   */
  finish (load, withOpen = false) {
    const texts = this.#texts
    const ofLoad = load &&
      [this.#background.record(load, texts), texts.load.record(load, texts), texts.handles.record(texts)]
    const ofThread = [this.#deathRecord(), this.#after.record(texts), this.#tasks.record(texts)]
    for (const record of [...ofThread, ...ofLoad ?? []]) {
      if (record !== undefined) this.#records.push(recordOf(record))
    }
    const made = this.make([])
    for (const ended of withOpen ? this.#untold.values() : []) {
      const span = this.#openSpanOf(ended)
      if (span !== undefined) made.push(this.#formOf({ span, ended }))
    }
    for (const span of this.#told.values()) made.push(this.#formWith(this.#withState(span), noFigures(span)))
    this.#told.clear()
    this.#untold.clear()
    const waits = load && this.#waitsRecord()
    return waits === undefined ? made : [...made, recordOf(waits)]
  }

  /**
   * Returns a request that was open at the end of a thread that was killed.
   * @param {EndedSpan} ended
   * @returns {ToldSpan | undefined} undefined if it is unknown, or its end may be in entries that are missing
   */
  #openSpanOf ({ request, figures: { unknown } }) {
    const { begin: start, end, isCut, isOpen, kind, number, outermost } = request
    const { name, spanId, traceId } = this.#texts.nameOf(number) ?? NO_NAME
    if (!isOpen || isCut || outermost !== number || traceId === undefined || unknown > 0) return undefined
    return {
      number,
      traceId,
      spanId,
      parentSpanId: undefined,
      name,
      kind: kind === SERVER ? 'SERVER' : kind === CLIENT ? 'CLIENT' : 'INTERNAL',
      origin: this.#texts.origin,
      shared: undefined,
      start,
      end,
      status: { code: 'UNSET' },
      attributes: {},
      events: undefined,
      open: true
    }
  }

  /** Whether the names of all other requests in a span are known. @param {EndedSpan} ended */
  #isNamed ({ request: { begin, end }, path: { waits }, delays }) {
    const texts = this.#texts
    const min = (end - begin) * MIN_SHARE
    for (const { settler } of waits) {
      if (settler !== 0 && !texts.isNamed(settler)) return false
    }
    for (const { max, request } of delays) {
      if (max < min) break // the longest come first
      if (request !== 0 && !texts.isNamed(request)) return false
    }
    return true
  }

  /** @param {{ span: ToldSpan, ended: EndedSpan }} known @returns {MadeSpan} */
  #formOf ({ span, ended }) {
    const { figures: { unknown }, request: { begin, end, isCut, isOpen } } = ended
    if (!isCut) span.start = begin // exactly
    if (!isCut && (!isOpen || span.open)) span.end = end
    const figures = isCut ? noFigures(span) : this.#figuresOf(ended)
    return this.#formWith(this.#withState(span, unknown, ended), figures)
  }

  /** @param {ToldSpan} span @param {Figures} figures */
  #formWith (span, figures) {
    return new SpanForm(span, figures, this.#texts.resource)
  }

  /** @param {EndedSpan} ended @returns {Figures} */
  #figuresOf (ended) {
    const { request, path, figures: { duration, run, beside, waited, delayed, delayedMax }, queries } = ended
    const texts = this.#texts
    const isOutermost = request.outermost === request.number
    const ms = duration / 1000
    /** @type {SiteWait[]} */
    const waits = []
    const merged = path.waits.map((wait) => this.#mergeWait(waits, wait, request))
    sorted(waits)
    const { sums, summed } = sumsOf(waits, waited)
    return {
      trace: texts.chainAt(request.chain).stack,
      duration: ms,
      run,
      beside: isOutermost ? beside : 0,
      sums,
      summed,
      waited,
      delayed,
      delayedMax: delayedMax - delayed >= us(MIN_RANGE) ? delayedMax : delayed,
      delayers: this.#delayersOf(ended, ms * MIN_SHARE),
      delays: delaysOf(path.waits, -request.begin, ms),
      waits,
      ran: isOutermost ? runsBySite(path.ran, (chain) => texts.placeOf(chain)) : undefined,
      asked: queries.length === 0 ? undefined : this.#askedOf(queries, request),
      runs: this.#runsOf(ended, merged)
    }
  }

  /**
   * @param {SiteWait[]} waits
   * @param {import('./critical-path').Wait} wait
   * @param {import('./requests').Request} request
   * @returns {SiteWait} the one in the list that it was merged into
   */
  #mergeWait (waits, wait, { kind, chain }) {
    const texts = this.#texts
    const { ended, settler, connection, isProven } = wait
    const { ends, isConnection } = this.#chainOf(ended)
    const site = texts.siteOf(wait.site || (kind === CLIENT ? chain : 0))
    const request = settler === 0 ? undefined : texts.nameOf(settler)?.name
    const reference = connection !== 0 || ended === undefined ? connection : ended.id << 1
    const merged = waitIn(
      waits,
      site,
      !isProven && site.at !== undefined,
      ends,
      isConnection && request === undefined ? texts.peerOf(reference) : undefined,
      request
    )
    merged.add(wait)
    if (isConnection) merged.addConnection(texts.idOf(reference))
    return merged
  }

  /** @param {import('./runs').Callback | undefined} callback */
  #chainOf (callback) {
    return callback === undefined || callback.outside ? NO_CHAIN : this.#texts.chainAt(callback.chain)
  }

  /**
   * Returns the delayers of a span, longest first.
   * @param {EndedSpan} ended
   * @param {number} min ms of a reported delayer
   */
  #delayersOf ({ delays }, min) {
    const texts = this.#texts
    /** @type {import('./delays').Delayer[]} */
    const told = []
    /** sum for code without a named request @type {import('./delays').Delayer | undefined} */
    let nameless
    for (const delay of delays) {
      if (delay.max < min) break // the longest come first
      if (texts.isNamed(delay.request)) {
        told.push(delay)
      } else if (nameless === undefined) {
        told.push(nameless = { ...delay })
      } else {
        nameless.ms += delay.ms
        nameless.max += delay.max
        if (delay.longest > nameless.longest) {
          nameless.start = delay.start
          nameless.longest = delay.longest
        }
      }
    }
    if (told.length === 0) return undefined
    if (nameless !== undefined) told.sort((a, b) => b.max - a.max)
    return told.slice(0, MAX_DELAYERS).map(({ request, ms, max, start, longest }) => {
      const { name, spanId } = texts.nameOf(request) ?? NO_NAME
      const at = texts.frameDuring(start, start + longest)
      return { spanId, name, us: us(ms), max: us(rangeEnd(ms, max)), at }
    })
  }

  /**
   * @param {import('./queries').Query[]} queries
   * @param {import('./requests').Request} request
   * @returns {import('../../lib/encoding/span-form').Asked[]}
   */
  #askedOf (queries, { begin }) {
    const texts = this.#texts
    /** number of queries that share a write, and how many of them are built @type {Map<number, number[]>} */
    const shares = new Map()
    for (const { sent } of queries) getOrAdd(shares, sent, () => [0, 0])[0]++
    return queries.map((query) => {
      const { start, end, connection, sent, unsent, unanswered, out = 0, in: read = 0 } = query
      const share = /** @type {number[]} */ (shares.get(sent))
      return {
        start: start - begin,
        ms: end - start,
        unanswered,
        site: texts.siteOfQuery(query),
        peer: texts.peerOf(connection),
        connection: texts.idOf(connection),
        unsent,
        out,
        in: read,
        operation: texts.operationOf(sent, share[1]++, share[0])
      }
    })
  }

  /**
   * @param {ToldSpan} span
   * @param {number} [unknown] microseconds without entries
   * @param {EndedSpan} [ended]
   */
  #withState (span, unknown = 0, ended = undefined) {
    if (!span.open && unknown === 0) return span
    const { waits: all, since = Infinity, idle = [] } = this.#texts.open
    const { waits, responding, stopped } =
      all.find((waiting) => span.open && waiting.span === span.number) ?? {}
    const hasRunSince = (ended?.runs.at(-1)?.end ?? 0) > since
    const isKnown = waits !== undefined && !hasRunSince
    if (isKnown) this.#pending.add(span.number)
    const pending = isKnown && {
      'longstack.pending': waits.map((wait) => pendingOf(wait, span.end)),
      ...(responding === true && { 'longstack.responding': true }),
      ...(stopped !== undefined && { 'longstack.stopped': stopped }),
      ...(idle.length > 0 && waits.some(isInPackage) && { 'longstack.idle': idle })
    }
    const end = span.open && { 'longstack.end': 'open' }
    const part = unknown > 0 && { 'longstack.unrecorded_ms': unknown / 1000 }
    return { ...span, attributes: withAttributes(span.attributes, { ...end, ...pending, ...part }) }
  }

  /**
   * @param {EndedSpan} ended
   * @param {SiteWait[]} merged entry that each wait was merged into
   * @returns {import('../../lib/encoding/span-form').Run[] | undefined}
   */
  #runsOf ({ path: { waits }, request, runs }, merged) {
    if (runs.length === 0) return undefined
    let next = waits.length - 1
    return runs.map(({ begin, end, callback }) => {
      let longest = -1 // longest wait between this run and the previous one
      for (; next >= 0 && waits[next].until < end; next--) {
        if (longest === -1 || waits[next].ms > waits[longest].ms) longest = next
      }
      const wait = longest === -1 ? undefined : merged[longest]
      const { type } = this.#chainOf(callback)
      return { start: us(begin - request.begin), us: us(end - begin), type, wait }
    })
  }
}

const NO_NAME = { spanId: undefined, name: undefined, traceId: undefined }

/**
 * @param {[what: string, since: number | undefined]} wait
 * @param {number} end ms of the clock
 */
const pendingOf = ([what, since], end) =>
  ({ what, ms: typeof since === 'number' ? Math.round(Math.max(0, end - since) * 1000) / 1000 : undefined })

/** Whether a wait is in a package, which may be a driver with connections. @param {[string, ...any]} wait */
const isInPackage = ([what]) => / via \S+$/.test(what)

/** Figures of a span whose entries are lost. @param {ToldSpan} span @returns {any} */
const noFigures = ({ start, end }) => ({ duration: end - start, waits: [], ran: undefined, beside: 0 })

/** @param {any} record @returns {MadeSpan} */
function recordOf (record) {
  const ms = Number(record.attributes?.['longstack.blocked_ms'] ?? 0)
  return { ms, failed: record.status?.code === 'ERROR', traceId: record.traceId, record: () => record }
}

module.exports = { SpanMaker }
