'use strict'

// Texts of a recording: definitions of the numbers in its log (chains, connections, spans) as lines of JSON.
// Each line precedes or accompanies the first entry that needs it, and is repeated in a new file. Chains are
// looked up when entries are taken from the ring, not when they are written; a span's line is added when the
// span ends. Data shared by many spans is written once, as a form.

const { framesAfter } = require('../blocked/wanted')
const { ChainValues } = require('../core/chain-values')
const { now } = require('../core/clock')
const { typeOfStep } = require('../core/context')
const { spanNumber } = require('../core/current-step')
const { on } = require('../core/on')
const { FIRST_CHAIN, ROOT_CHAIN, ids, newestId } = require('../core/records')
const registry = require('../core/registry')
const runLog = require('../core/run-log')
const {
  B, BEGIN, CALLED, CHAIN, CONNECTION, ENTRIES, HEAD, HEADER, KIND_BITS, RUN, WORDS
} = require('../core/run-log-words')
const { source } = require('../core/source')
const { MAX_MICROS, PACKED_BYTES, PackedSpans } = require('../encoding/packed-spans')
const { lineOf } = require('../encoding/serialize')
const { attempt } = require('../files')
const { placeStack } = require('../format/chain-texts')
const { addressOf } = require('../node-objects')
const { settings } = require('../settings')
const { siteOf } = require('../spans/path-sites')
const { subsystemOf } = require('../subsystems')
const heapGrowth = require('./heap-growth')
const { vitals } = require('./vitals')

const KIND = (1 << KIND_BITS) - 1
const OF_CONNECTION = RUN | (CALLED | CONNECTION) << KIND_BITS // in its callback, without an explaining query
const MAX_PEERS = 10_000 // connections with an already written peer
const MIN_OPEN = 100 // ms that a request has been open when its name is written
const LONG_MS = 5000 // that a request has been open when what it waits for is written
const LONG_PART = 100 // this may take that part of the time
const VITALS_MS = 1000
const ID_STEP = 2 ** 29 // between two written ids
const MAX_FORMS = 2000
const MAX_TOLD = 10_000 // definitions: readers remember more
const MAX_SHORT = 1 << 12 // characters of attributes that need no shortening

// Parts of a chain that are written.
const PLACE = 1
const STACK = 2 // place and stack

/**
 * @typedef {import('../spans/span').Span} Span
 *
 * @typedef {object} Definition a text that others refer to by number
 * @property {number} number
 * @property {string} line
 * @property {Definition | undefined} base definition that the line refers to
 * @property {number} toldAt value of toldCount when it was written; 0 if never
 * @property {boolean} isWanted texts not taken yet refer to it
 *
 * @typedef {object} Common data shared by spans
 * @property {string} name
 * @property {Span['kind']} kind
 * @property {number} origin
 * @property {object | undefined} shared attributes
 *
 * @typedef {Common & { definition: Definition, next: Form | undefined }} Form next: form with the same name
 * @typedef {Common & { statusCode: number, route: string | undefined, definition: Definition,
 *   next: PathForm | undefined }} PathForm of spans without other attributes; next: form with the same path
 */

/** runs are recorded */
let isOn = false
let sourceLine = ''
/** lines not taken yet */
let lines = ''
let chains = new ChainValues()
/** written chains below FIRST_CHAIN @type {Set<number>} */
const special = new Set()
/** references of connections with a written peer @type {Set<number>} */
const peers = new Set()
/** by name @type {Map<string, Form>} */
const forms = new Map()
/** by path @type {Map<string | undefined, PathForm>} */
const pathForms = new Map()
let formCount = 0
let peerCount = 0
/** definitions with isWanted @type {Definition[]} */
let wanted = []
let toldCount = 0
/** definitions written before this count must be written again */
let toldFrom = 1
const packed = new PackedSpans()
/** spans and other records waiting to be taken */
let spanCount = 0
/**
 * attributes of the program's own spans by span id, for listeners, which get them unchanged
 * @type {Map<string, Record<string, unknown>> | undefined}
 */
let kept
/** receives spans of requests as objects, in place of lines @type {((span: Span) => void) | undefined} */
let direct
/** whether to write only the spans that span outputs take */
let isPartial = false
/** approximately the newest asyncId written: entries hold the lowest 31 bits of ids; 0: none yet */
let toldId = 0
/** ms of the clock when the names of open requests were last checked */
let namedAt = 0
/** open requests that began up to then had been open for long when what they wait for was written */
let longUntil = -Infinity
/** ms of the clock: that is not written earlier */
let longAt = 0
let vitalsAt = -Infinity // ms of the clock
let hasHandles = true // when they were last counted; the first count is written anyway
let isCountDue = false // whether the program has run since then
/** ms of the clock up to which the frames of blocking callbacks are written */
let framesUpTo = 0
/** source of spans */
let spans = {
  /** adds the lines of ended spans */
  drain: () => {},
  /** @type {() => Span[]} */
  openSpans: () => []
}

on('forgetting', () => {
  if (isOn) {
    runLog.takeNow()
    runLog.goesOn()
    chains = new ChainValues()
    runLog.forgetTold()
  }
})

// A query that fails after its request's response: no other entry shows it.
on('rejected', (reason, context, { ref, span }) => {
  if (isOn && span !== 0 && source.spanAt(span) === undefined) add({ rejected: ref })
})

/** @param {object} text */
function add (text) {
  lines += `${lineOf(text, onReplaced)}\n`
}

/** Ignores replacements: the line shows them. */
const onReplaced = () => {}

/** Defines the numbers used in entries. @param {number} first @param {number} last numbers of entries */
function addNumbers (first, last) {
  const words = runLog.ring()
  const count = Math.min(ENTRIES, (last - first + 1) | 0)
  for (let i = 0; i < count; i++) {
    const place = HEADER + ((last - 1 - i) & (ENTRIES - 1)) * WORDS
    const chain = words[place + CHAIN]
    if ((words[place + HEAD] & OF_CONNECTION) === OF_CONNECTION) addAccepted(words[place + B])
    const wanted = (words[place + HEAD] & KIND) === BEGIN ? STACK : PLACE
    if (chain !== 0 && chains.get(chain) < wanted && !special.has(chain)) addChain(chain, wanted)
  }
}

/**
 * Writes the peer of a connection, once.
 * @param {number} ref of the connection's record
 * @param {import('../core/entry').Entry} entry
 * @param {boolean} isConnected
 */
function notePeer (ref, entry, isConnected) {
  if (!isOn || peers.has(ref)) return
  let peer = entry.remote
  if (peer === undefined && isConnected) {
    const handle = entry.resource.deref()
    peer = entry.remote = handle === undefined ? undefined : addressOf(handle, 'getpeername')
  }
  if (peer === undefined && !isConnected) return
  if (peers.size >= MAX_PEERS) peers.clear()
  peers.add(ref)
  if (peer !== undefined) add({ connection: ref, peer })
}

/** Writes the peer of a connection that a server accepted, while it is open. @param {number} id */
function addAccepted (id) {
  const entry = peers.has(id << 1) ? undefined : registry.get(id)
  if (entry?.isAccepted) notePeer(id << 1, entry, true)
}

/** @param {number} chain @param {number} wanted PLACE or STACK */
function addChain (chain, wanted) {
  if (chain < FIRST_CHAIN) special.add(chain)
  else chains.set(chain, wanted)
  const type = chain === ROOT_CHAIN ? 'process' : typeOfStep(chain, 0)
  const frames = chain < FIRST_CHAIN ? undefined : source.chainAt(chain)?.stack?.frames
  const own = frames?.some(({ kind }) => kind === 'user') === true ? true : undefined
  const stack = wanted === STACK ? placeStack(chain) : undefined
  add({ chain, type, subsystem: subsystemOf(type), own, ...siteOf(chain), stack })
}

/** Writes the chain of the entry that comes next. @param {number} chain 0: unknown */
function addChainOfNext (chain) {
  if (chain !== 0 && chains.get(chain) < PLACE && !special.has(chain)) addChain(chain, PLACE)
}

/** Writes the names of requests that have been open for a while: others may have waited for them. */
function addNames () {
  const time = now()
  if (time - namedAt < MIN_OPEN / 2) return
  namedAt = time
  const since = time - MIN_OPEN
  for (const span of spans.openSpans()) {
    if (span.start > since || span.toldName === span.name || span.outermost !== span) continue
    span.toldName = span.name
    add({ name: span.seq, request: span.name, ids: span.ids })
  }
}

/** Writes the frames of callbacks that blocked. */
function addFrames () {
  for (const { start, end, text } of framesAfter(framesUpTo)) {
    add({ frame: [start, end, text] })
    framesUpTo = Math.max(framesUpTo, end)
  }
}

/**
 * @param {number} number
 * @param {object} text
 * @param {Definition} [base]
 * @returns {Definition}
 */
function define (number, text, base) {
  return { number, line: `${lineOf(text, onReplaced)}\n`, base, toldAt: 0, isWanted: false }
}

/** Writes a definition before the text that refers to it. @param {Definition} definition */
function refer (definition) {
  if (definition.toldAt < toldFrom) {
    if (definition.base !== undefined) refer(definition.base)
    lines += definition.line
    definition.toldAt = ++toldCount
    toldFrom = Math.max(toldFrom, toldCount - MAX_TOLD)
  }
  if (!definition.isWanted) {
    definition.isWanted = true
    wanted.push(definition)
  }
  return definition.number
}

/** @returns {number} of a new form */
function nextForm () {
  if (formCount % MAX_FORMS === 0) {
    forms.clear()
    pathForms.clear()
  }
  return ++formCount
}

/** @param {Common} a @param {Common} b */
const isAlike = (a, b) => {
  return a.name === b.name && a.shared === b.shared && a.kind === b.kind && a.origin === b.origin
}

/** Returns the form of a span. @param {Span} span */
function formOf (span) {
  const { name, kind, origin, shared } = span
  for (let form = forms.get(name); form !== undefined; form = form.next) {
    if (isAlike(form, span)) return form.definition
  }
  const number = nextForm()
  const definition = define(number, { form: number, name, kind, origin, attributes: shared })
  forms.set(name, { name, kind, origin, shared, definition, next: forms.get(name) })
  return definition
}

/** Returns the form of a span that has only the attributes of a request. @param {Span} span */
function pathFormOf (span) {
  const { name, kind, origin, shared, path, statusCode, route } = span
  for (let form = pathForms.get(path); form !== undefined; form = form.next) {
    if (form.statusCode === statusCode && form.route === route && isAlike(form, span)) return form.definition
  }
  const base = formOf(span)
  const number = nextForm()
  const status = statusCode === 0 ? undefined : statusCode
  const text = { form: number, of: base.number, path, statusCode: status, route }
  const definition = define(number, text, base)
  const next = pathForms.get(path)
  pathForms.set(path, { name, kind, origin, shared, statusCode, route, definition, next })
  return definition
}

/** @param {import('../spans/http-attributes').Peer} end */
function peerOf (end) {
  const { peer, peerPort } = end
  end.definition ??= define(++peerCount, { end: peerCount, peer, peerPort })
  return end.definition
}

/** Writes the packed spans. */
function addPacked () {
  if (packed.count > 0) lines += `{"spans":"${packed.take()}"}\n`
}

/**
 * @param {Record<string, unknown>} attributes
 * @returns {string | undefined} JSON, or undefined if some cannot be written or the text is long
 */
function shortJson (attributes) {
  try {
    const json = JSON.stringify(attributes)
    return json.length < MAX_SHORT ? json : undefined
  } catch {
    return undefined
  }
}

/** Notes that no waiting text refers to a definition any longer. */
function unwant () {
  for (const definition of wanted) definition.isWanted = false
  wanted = []
}

/** Writes the size that ids have reached. */
function addNewestId () {
  const newest = toldId === 0 ? newestId() : ids[0]
  if (toldId !== 0 && newest < toldId + ID_STEP) return
  toldId = newest || 1
  add({ newestId: newest })
}

/** Adds the CPU time, garbage collection and heap of this thread, once a second. Spans do not need them. */
function addVitals () {
  if (isPartial) return
  const at = now()
  if (at - vitalsAt < VITALS_MS) return
  vitalsAt = at
  heapGrowth.start()
  const growth = heapGrowth.read()
  if (growth !== undefined) add(growth)
  const present = vitals()
  if (present !== undefined) add({ vitals: [at, ...present] })
  addHandles(at)
}

/** Adds the open handles. Commands that request a log count handles themselves. @param {number} at */
function addHandles (at) {
  const { box, record } = settings.options
  if (record === undefined && box === undefined) return
  const open = attempt(() => require('./open-handles').read(box !== undefined))
  if (open === undefined) return
  isCountDue = false
  const [groups] = open
  if (groups.length > 0 || hasHandles || box !== undefined) add({ handles: [at, ...open] })
  hasHandles = groups.length > 0
}

/**
 * Writes a span that has ended, or is open when the program ends.
 * @param {Span} span
 * @param {number} [openAt] ms of the clock: it is open
 */
function addSpan (span, openAt) {
  if (!isOn) return
  if (kept !== undefined && span.kind === 'INTERNAL') kept.set(span.spanId, span.attributes)
  if (direct !== undefined && span.kind !== 'INTERNAL') return direct(span)
  if (openAt === undefined) spanCount++
  const { attributes, events, ids, parentSpanId, sampled, seq, start } = span
  const end = openAt ?? span.end
  const status = openAt === undefined ? span.status : span.openStatus
  const form = refer(formOf(span))
  const us = [Math.round(start * 1000), Math.round((end - start) * 1000)] // entries have exact times
  const isOpen = openAt !== undefined || attributes['longstack.end'] === 'open'
  const isPlain = status.code === 'UNSET' && events === undefined && sampled && !isOpen
  const json = isPlain ? shortJson(attributes) : undefined
  if (json !== undefined) {
    // By hand: JSON.stringify takes twice as long for an object with so many members
    const parent = parentSpanId === undefined ? '' : `,"parentSpanId":"${parentSpanId}"`
    lines += `{"span":${seq},"form":${form},"ids":"${ids}"${parent},"us":[${us[0]},${us[1]}],` +
      `"attributes":${json}}\n`
    return
  }
  add({
    span: seq,
    form,
    ids,
    parentSpanId,
    us,
    sampled: sampled ? undefined : false,
    status,
    attributes,
    events,
    open: isOpen ? true : undefined
  })
}

/**
 * Writes what open requests wait for, if there are any.
 * @param {(span: Span) => boolean} [isWanted] whether one that justifies it is open; default: any
 */
function addWaits (isWanted = () => true) {
  if (!isOn || isPartial) return
  if (!spans.openSpans().some((span) => span.kind === 'SERVER' && isWanted(span))) return
  const open = attempt(() => require('../handles/requests-in-flight').openWaits(true))
  if (open === undefined) return
  const running = source.spanAt(spanNumber())?.outermost.seq // waits for nothing
  add({ ...open, waits: open.waits.filter(({ span }) => span !== running) })
}

/**
 * Writes what open requests wait for once another one has been open for long: a process that is killed cannot
 * write it at its end.
 */
function addLongWaits () {
  const time = now()
  if (time < longAt) return
  const [from, until] = [longUntil, time - LONG_MS]
  longUntil = until
  addWaits(({ start }) => start > from && start <= until)
  longAt = now() + (now() - time) * LONG_PART
}

/** Repeats each text with the next entry that needs it. @returns {string} the beginning of a file */
function all () {
  chains = new ChainValues()
  special.clear()
  peers.clear()
  toldId = 0
  namedAt = longAt = 0
  longUntil = -Infinity
  for (const span of spans.openSpans()) span.toldName = undefined
  toldFrom = ++toldCount
  const waiting = lines
  lines = sourceLine
  for (let i = 0; i < wanted.length; i++) refer(wanted[i])
  const text = lines
  lines = waiting
  return text
}

module.exports = {
  addChainOfNext,
  addLongWaits,
  addWaits,
  all,

  /** Whether there is a recording, which needs texts. */
  isOn: () => isOn,

  /** @param {Partial<typeof spans>} functions that access spans */
  set (functions) { spans = { ...spans, ...functions } },

  /**
   * Starts collecting texts and logging runs.
   * @param {{ source: Record<string, unknown>, resource: Record<string, unknown> }} source this process
   */
  begin (source) {
    isOn = true
    sourceLine = `${JSON.stringify(source)}\n`
    lines = ''
    framesUpTo = now()
    vitalsAt = -Infinity
    hasHandles = true
    all()
  },

  /** Stops collecting texts: the recording has ended. */
  end () {
    isOn = false
    heapGrowth.stop()
    lines = ''
    packed.count = 0
    unwant()
    forms.clear()
    pathForms.clear()
  },

  /** Adds texts for everything up to now, before entries are taken. */
  prepare () {
    spans.drain()
    addNames()
    addFrames()
  },

  /**
   * Returns the texts for the entries being taken.
   * @param {number} first number
   * @param {number} last
   * @returns {string} lines
   */
  takeNew (first, last) {
    if (!isOn) return ''
    addNewestId()
    if (((last - first) | 0) >= 0) isCountDue = true
    addVitals()
    addNumbers(first, last)
    addPacked()
    const taken = lines
    lines = ''
    spanCount = 0
    unwant()
    return taken
  },

  /**
   * Passes spans of requests to a function, or writes all spans as lines.
   * @param {((span: Span) => void) | undefined} receiver
   */
  setDirect (receiver) { direct = receiver },

  /** Limits the written spans to those that span outputs take. @param {boolean} isWanted */
  setPartial (isWanted) {
    isPartial = isWanted
    if (isPartial) heapGrowth.stop()
  },

  hasOpenSpans: () => spans.openSpans().length > 0,

  /** Whether a span has been open for some time. @param {number} ms */
  hasSpanOpenFor (ms) {
    const since = now() - ms
    return spans.openSpans().some(({ start }) => start <= since)
  },

  /** Whether the program has run since open handles were last counted. */
  isCountDue: () => isCountDue,

  /** Whether all spans are written, whatever span outputs take. */
  isForAll: () => isOn && !isPartial,

  /** Writes the name of a span that no output takes: others may have waited for it. @param {Span} span */
  addName ({ seq, name, spanId }) {
    if (isOn) add({ name: seq, request: name, spanId })
  },

  /** Keeps attributes of the program's own spans, until they are taken. @param {boolean} isWanted */
  keepAttributes (isWanted) {
    if (!isWanted) kept = undefined
    else kept ??= new Map()
  },

  /** @param {string} spanId @returns {Record<string, unknown> | undefined} */
  takeAttributes (spanId) {
    const attributes = kept?.get(spanId)
    kept?.delete(spanId)
    return attributes
  },

  /** Number of spans and other records waiting to be taken. */
  spans: () => spanCount,

  /** Number of characters waiting to be taken. */
  size: () => lines.length + packed.count * PACKED_BYTES,

  /**
   * Writes an ended span as numbers only, if there is a recording and the span has no other data.
   * @param {Span} span
   * @returns {boolean}
   */
  pack (span) {
    if (!isOn || direct !== undefined || span.object !== undefined || !span.sampled) return false
    if (span.status.code !== 'UNSET' || span.events !== undefined) return false
    const micros = Math.round((span.end - span.start) * 1000)
    const { peer } = span
    const isNone = peer === undefined || peer.peer === undefined
    if (micros > MAX_MICROS || (!isNone && peer.id === undefined)) return false
    if (packed.isFull) addPacked()
    packed.add(span, refer(pathFormOf(span)), isNone ? 0 : refer(peerOf(peer)), micros)
    spanCount++
    return true
  },

  /** Writes what is open when a process may end. */
  addOpen () {
    addWaits()
    const time = now()
    for (const span of spans.openSpans()) if (span.isCounted) addSpan(span, time)
  },

  addSpan,

  /** Writes a record that is not one of the program's spans, unchanged. @param {object} record */
  addRecord (record) {
    if (!isOn) return
    spanCount++
    add({ record })
  },

  notePeer,

  /**
   * Writes the operation that a write requests.
   * @param {number} number of its entry
   * @param {import('../requests/peek').Operation} operation
   */
  noteOperation (number, { operation, system, commands }) {
    if (isOn) add({ sent: number, operation, system, commands })
  }
}
