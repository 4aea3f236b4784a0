'use strict'

// Texts of one source of a recording (docs/record.md): definitions of the numbers in its entries. Memory is
// bounded: the oldest texts are evicted.

const { attributesOf } = require('../../lib/encoding/packed-spans')
const { getOrAdd } = require('../../lib/group-by')
const { connectionTypes } = require('../../lib/subsystems')
const { Latest } = require('./latest')
const { HandleCounts } = require('./handle-counts')
const { ThreadLoad } = require('./thread-load')

const MAX_CHAINS = 50_000
const NAMES = 1 << 13 // known spans, a power of two, since numbers are consecutive
const MAX_OTHERS = 20_000 // connections, statements, forms and frames
const [MAX_IDLE, MAX_IDLE_CHARS] = [10, 20_000] // peers with idle connections; each open span has a copy
const IDS = 2 ** 31 // asyncIds that differ in the bits that entries have of them
const ACCEPTED = 202
const TRACE = 32 // digits of the trace id, which precedes the span id
const UNKNOWN_TYPES = new Set(['process', 'unknown'])

/**
 * @typedef {import('../../lib/encoding/span-figures').Site} Site
 *
 * @typedef {object} Chain
 * @property {Site} site
 * @property {string} type resource type of its newest step
 * @property {string | undefined} ends subsystem for which its callbacks end a wait, if known
 * @property {boolean} isConnection
 * @property {boolean} isOwn the newest step has code of the program
 * @property {string | undefined} stack long stack of the place
 *
 * @typedef {object} Name
 * @property {string} name
 * @property {string} spanId
 * @property {string} [traceId] of a span that was open when its name was written
 * @property {boolean} isAccepted its response says that work continues
 * @typedef {object} Form common part of spans
 * @property {string} name
 * @property {ToldSpan['kind']} kind
 * @property {number} origin
 * @property {Record<string, unknown> | undefined} shared attributes
 * @property {string} [path]
 * @property {number} [statusCode]
 * @property {string} [route]
 * @typedef {{ operation: string, system: string }} Operation
 * @typedef {Operation & { commands: unknown }} Written
 * @typedef {import('../../lib/encoding/span-form').Told & { number: number, open: boolean }} ToldSpan
 */

/** @type {Site} */
const NO_SITE = { at: undefined, callers: undefined, label: undefined }
/** @type {Chain} */
const NO_CHAIN = {
  site: NO_SITE, type: 'unknown', ends: undefined, isConnection: false, isOwn: false, stack: undefined
}

class SourceTexts {
  /** @type {Latest<Chain>} */
  #chains = new Latest(MAX_CHAINS)
  /** one object for equal sites, by JSON @type {Map<string, Site>} */
  #sites = new Map()
  /** by the lowest bits of the span's number, and these numbers @type {Name[]} */
  #names = []
  #named = new Int32Array(NAMES).fill(-1)
  /** by reference of the connection @type {Latest<string>} */
  #peers = new Latest(MAX_OTHERS)
  /** by number of the write @type {Latest<Written>} */
  #operations = new Latest(MAX_OTHERS)
  /** @type {Latest<Form>} */
  #forms = new Latest(MAX_OTHERS)
  /** ends of connections, by number @type {Latest<{ peer: string | undefined, peerPort: unknown }>} */
  #ends = new Latest(MAX_OTHERS)
  /** one object for equal attributes of forms, by JSON @type {Latest<Record<string, unknown>, string>} */
  #shared = new Latest(MAX_OTHERS)
  /** references of promises that failed after the end of their span @type {Latest<boolean>} */
  #rejected = new Latest(MAX_OTHERS)
  /** @type {Array<[start: number, end: number, frame: string]>} */
  #frames = []
  /** approximate, as last reported */
  #newestId = 0
  load = new ThreadLoad()
  handles = new HandleCounts()
  /** the end of a black box @type {import('../read/box-file').Death | undefined} */
  death = undefined
  /** what open requests waited for @type {import('../../lib/handles/requests-in-flight').OpenWaits} */
  open = { waits: [] }
  /** start of the newest form's clock, ms since 1970 */
  origin = 0
  /** @type {Record<string, unknown>} */
  resource = {}
  /** the last one reported @type {Record<string, unknown> | undefined} */
  source

  /**
   * Adds a text.
   * @param {Record<string, any>} text
   * @returns {ToldSpan | undefined} the span that it describes
   */
  add (text) {
    const { chain, connection, end, form, frame, name, newestId, rejected, sent, source, span } = text
    if (isNumber(chain)) this.#addChain(chain, text)
    else if (isNumber(span)) return this.#spanOf(span, text)
    else if (isNumber(name)) this.#addNameOf(name, text)
    else if (isNumber(connection)) this.#peers.set(connection, String(text.peer))
    else if (isNumber(sent)) {
      const { operation, system, commands } = text
      this.#operations.set(sent, { operation: String(operation), system: String(system), commands })
    } else if (isNumber(form)) this.#addForm(form, text)
    else if (isNumber(end)) this.#ends.set(end, { peer: text.peer, peerPort: text.peerPort })
    else if (Array.isArray(frame)) this.#addFrame(frame)
    else if (isNumber(newestId)) this.#newestId = newestId
    else if (isNumber(rejected)) this.#rejected.set(rejected, true)
    else if (text.vitals !== undefined) this.load.add(text.vitals)
    else if (Array.isArray(text.growth)) this.load.addGrowth(text)
    else if (Array.isArray(text.handles)) this.handles.add(text.handles)
    else if (isObject(text.death)) this.death = text.death
    else if (Array.isArray(text.waits)) this.open = openOf(text)
    else if (source !== undefined) {
      this.source = source
      this.resource = text.resource ?? {}
    }
  }

  /** @param {number} number @param {Record<string, any>} text */
  #addChain (number, { at: place, callers, label, type = 'unknown', subsystem, own = false, stack }) {
    const known = this.#chains.get(number)
    const site = this.#equalTo({ at: place, callers, label })
    const ends = UNKNOWN_TYPES.has(type) ? undefined : subsystem ?? type
    const isConnection = connectionTypes.has(type)
    this.#chains.set(number, { site, type, ends, isConnection, isOwn: own, stack: stack ?? known?.stack })
  }

  /** @param {Site} site @returns {Site} */
  #equalTo (site) {
    if (site.at === undefined && site.callers === undefined && site.label === undefined) return NO_SITE
    if (this.#sites.size >= MAX_CHAINS) this.#sites.clear()
    return getOrAdd(this.#sites, JSON.stringify(site), () => site)
  }

  /** @param {number} number @param {Record<string, any>} text */
  #addForm (number, { of: base, path, statusCode, route, name, kind, origin, attributes }) {
    const known = this.#forms.get(base)
    if (known !== undefined) this.#forms.set(number, { ...known, path, statusCode, route })
    else if (base === undefined) {
      this.#forms.set(number, { name, kind, origin, shared: attributes && this.#sharedOf(attributes) })
      this.origin = origin
    }
  }

  /**
   * Returns the same object for equal attributes, because files compare objects.
   * @param {Record<string, unknown>} attributes
   */
  #sharedOf (attributes) {
    return getOrAdd(this.#shared, JSON.stringify(attributes), () => attributes)
  }

  /** @param {any[]} frame */
  #addFrame ([start, end, text]) {
    if (!isNumber(start) || !isNumber(end)) return
    if (this.#frames.length >= MAX_OTHERS) this.#frames.splice(0, MAX_OTHERS / 2)
    this.#frames.push([start, end, String(text)])
  }

  /**
   * @param {number} number
   * @param {Record<string, any>} text
   * @returns {ToldSpan | undefined} undefined if its form is unknown
   */
  #spanOf (number, { form, ids, parentSpanId, us, status = UNSET, attributes = {}, events, open = false }) {
    const known = this.#forms.get(form)
    if (known === undefined) return undefined
    const [traceId, spanId] = [ids.slice(0, TRACE), ids.slice(TRACE)]
    const start = us[0] / 1000
    const end = start + us[1] / 1000
    return this.#toldOf(known, {
      number, traceId, spanId, parentSpanId, start, end, status, attributes, events, open
    })
  }

  /**
   * @param {import('../../lib/encoding/packed-spans').UnpackedSpan} span
   * @returns {ToldSpan | undefined} undefined if its form is unknown
   */
  packedSpan ({ number, form, peer, start, duration, traceId, spanId, parentSpanId, queued, queuedMax }) {
    const known = this.#forms.get(form)
    if (known === undefined) return undefined
    const { path, statusCode, route } = known
    return this.#toldOf(known, {
      number,
      traceId,
      spanId,
      parentSpanId,
      start,
      end: start + duration / 1000,
      status: UNSET,
      attributes: attributesOf({ path, peer: this.#ends.get(peer), queued, queuedMax, statusCode, route }),
      events: undefined,
      open: false
    })
  }

  /**
   * @param {Form} form
   * @param {Omit<ToldSpan, 'name' | 'kind' | 'origin' | 'shared'>} own
   * @returns {ToldSpan}
   */
  #toldOf ({ name, kind, origin, shared }, own) {
    this.addName(own.number, name, own.spanId, own.attributes['http.response.status_code'] === ACCEPTED)
    return { ...own, name, kind, origin, shared }
  }

  /** @param {number} reference of a resource @returns {number} the newest asyncId that it can be */
  idOf (reference) {
    const bits = reference >>> 1
    const wraps = Math.floor((this.#newestId + IDS / 2 - bits) / IDS)
    return bits + Math.max(0, wraps) * IDS
  }

  /**
   * @param {number} number of a span
   * @param {string} name
   * @param {string} spanId
   * @param {boolean} [isAccepted]
   * @param {string} [traceId]
   */
  addName (number, name, spanId, isAccepted = false, traceId = undefined) {
    const slot = number & (NAMES - 1)
    this.#named[slot] = number
    this.#names[slot] = { name, spanId, isAccepted, traceId }
  }

  /** @param {number} number @param {Record<string, any>} text */
  #addNameOf (number, { request, spanId, ids }) {
    if (ids === undefined) this.addName(number, String(request), String(spanId))
    else this.addName(number, String(request), ids.slice(TRACE), false, ids.slice(0, TRACE))
  }

  /** @param {number} number */
  chainAt (number) { return this.#chains.get(number) ?? NO_CHAIN }

  /** @param {number} chain */
  siteOf (chain) { return this.chainAt(chain).site }

  /** @param {import('./queries').Query} query */
  siteOfQuery ({ chain, writer }) { return this.siteOf(this.chainAt(writer).isOwn ? writer : chain) }

  /** @param {number} promise reference */
  isRejected (promise) { return this.#rejected.has(promise) }

  /** Returns the site of a chain if it has a program frame. @param {number} chain */
  placeOf (chain) {
    const site = this.siteOf(chain)
    return site.at === undefined ? NO_SITE : site
  }

  /** Whether the name of a span is known. @param {number} span */
  isNamed (span) { return this.#named[span & (NAMES - 1)] === span }

  /** @param {number} span @returns {Name | undefined} */
  nameOf (span) {
    return this.isNamed(span) ? this.#names[span & (NAMES - 1)] : undefined
  }

  /** @param {number} connection reference */
  peerOf (connection) { return this.#peers.get(connection) }

  /**
   * Returns the operation of a query. Queries that share a write have one each, if as many are known.
   * @param {number} sent number of the write
   * @param {number} place of the query among those
   * @param {number} count of them
   * @returns {Operation | undefined}
   */
  operationOf (sent, place, count) {
    const written = this.#operations.get(sent)
    if (written === undefined) return undefined
    const { operation, system, commands } = written
    const isEach = Array.isArray(commands) && commands.length === count
    return { operation: isEach ? String(commands[place]) : operation, system }
  }

  /**
   * Returns the frame of the longest blocking callback in an interval.
   * @param {number} start ms of the clock
   * @param {number} end
   */
  frameDuring (start, end) {
    let longest
    for (const frame of this.#frames) {
      if (frame[1] <= start || frame[0] >= end) continue
      if (longest === undefined || frame[1] - frame[0] > longest[1] - longest[0]) longest = frame
    }
    return longest?.[2]
  }
}

/**
 * Returns what open requests waited for, without damaged parts. Of idle connections, keeps those to peers
 * whose connections were all idle.
 * @param {Record<string, any>} text
 * @returns {SourceTexts['open']}
 */
function openOf ({ waits, since, idle, graph }) {
  const peers = objectsOf(idle).filter(({ open, idle }) => idle === open).slice(0, MAX_IDLE)
  return {
    waits: objectsOf(waits).filter((one) => Array.isArray(one.waits))
      .map((one) => ({ ...one, waits: one.waits.filter(isWait) })),
    since: isNumber(since) ? since : undefined,
    idle: JSON.stringify(peers).length > MAX_IDLE_CHARS ? undefined : peers,
    graph: isObject(graph) ? { cycles: cyclesOf(graph.cycles), convoys: placesOf(graph.convoys) } : undefined
  }
}

/** @param {unknown} wait */
const isWait = (wait) => Array.isArray(wait) && typeof wait[0] === 'string'

/** @param {unknown} cycles */
const cyclesOf = (cycles) =>
  objectsOf(cycles).map((cycle) => ({ ...cycle, members: placesOf(cycle.members) }))

/** @param {unknown} list */
const placesOf = (list) => objectsOf(list).filter(({ at: place }) => typeof place === 'string')

/** @param {unknown} list @returns {any[]} its objects; empty if it is no list */
const objectsOf = (list) => Array.isArray(list) ? list.filter(isObject) : []

/** @type {import('../../lib/encoding/span-form').Status} */
const UNSET = { code: 'UNSET' }

/** @param {unknown} value @returns {value is any} */
const isObject = (value) => typeof value === 'object' && value !== null

/** @param {unknown} value @returns {value is number} */
const isNumber = (value) => typeof value === 'number'

module.exports = { NO_CHAIN, SourceTexts }
