'use strict'

// Reads a black box (lib/record/box.js): converts it to a recording, with a last block for what was in memory
// only, and says what is known of the end of the process.

const { LAST, encode, maxBytesOf, readHeader, ENTRY_BYTES } = require('../../lib/record/block')
const { isAlive } = require('../../lib/record/box-files')
const layout = require('../../lib/record/box-layout')
const log = require('../../lib/core/run-log-words')
const { framesOf, growthOf } = require('../../lib/record/growth-text')
const { parseJson } = require('./values')

const { HALVES, PAGE, RING, SLOTS, SLOT_BYTES, TABLE, head: of, part: at, slot } = layout
const KIND = (1 << log.KIND_BITS) - 1
const MIN_BYTES = PAGE + layout.MIN_PART
const MAX_PARTS = 300
const MAGIC_BYTES = 4
const MAX_BYTES = 2 ** 31 // larger ones are no boxes
const NO_LIMIT = 2 ** 50 // bytes: Node reports more than this if there is no limit
const FIRST_FORM = 1e9 // beyond those of the process

/**
 * @typedef {import('../../lib/record/growth-text').HeapGrowth & ThreadEnd} Death
 *
 * @typedef {object} ThreadEnd the last that is known of a thread, and of its process
 * @property {boolean} lives the process does
 * @property {number} pid
 * @property {number} thread 0: the main thread
 * @property {number} unixMs the last sign of life
 * @property {number | undefined} runningMs how long a callback had run at least; undefined: none was running
 * @property {number} chain of that callback, 0: none, or unknown
 * @property {string | undefined} request that it belonged to
 * @property {string | undefined} inside innermost frame of the program in it, if it lasted
 * @property {number} requests in flight
 * @property {number} used bytes of the heap after the last full collection
 * @property {number} limit of the old generation
 * @property {number} collections full ones
 * @property {number} collectedMs from the last full collection to the last sign of life
 * @property {number} resident bytes of memory
 * @property {number | undefined} residentLimit of its container
 * @property {import('../../lib/record/box-buffers').Buffers | undefined} buffers
 *
 * @typedef {object} OpenRequest
 * @property {number} number
 * @property {string} name
 * @property {boolean} isServer
 * @property {boolean} isEnded its texts may be in a block
 * @property {string} ids
 * @property {number} start ms of the clock
 */

/** @param {Uint8Array} bytes of the beginning of a file */
function isBox (bytes) {
  return viewOf(bytes).getUint32(of.magic, true) === layout.HEAD_MAGIC
}

/** @param {Uint8Array} bytes */
const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length)

/**
 * Converts a black box to a recording; passes on all others.
 * @param {AsyncIterable<Buffer>} source bytes of a file
 * @param {string} name of the file
 * @param {{ problems: string[], unreadable?: boolean }} report to add problems to
 * @returns {AsyncGenerator<Buffer>}
 */
async function * unboxed (source, name, report) {
  /** @type {Buffer[]} */
  let chunks = []
  let size = 0
  /** @type {boolean | undefined} */
  let isKnown
  for await (const chunk of source) {
    if (isKnown === false) {
      yield chunk
      continue
    }
    chunks.push(chunk)
    size += chunk.length
    if (size < MAGIC_BYTES) continue
    isKnown ??= isBox(Buffer.concat(chunks))
    if (isKnown && size <= MAX_BYTES) continue
    yield * chunks
    chunks = []
  }
  if (isKnown !== true) return yield * chunks
  const { recording, problem } = recordingOf(Buffer.concat(chunks), isAlive(name))
  if (problem !== undefined) {
    report.problems.push(problem)
    report.unreadable = true
  }
  if (recording.length > 0) yield recording
}

/**
 * @param {Buffer} bytes the whole file
 * @param {boolean} isAlive its process lives
 * @returns {{ recording: Buffer, problem: string | undefined }}
 */
function recordingOf (bytes, isAlive) {
  const { parts, problem } = partsOf(bytes, isAlive)
  return { recording: Buffer.concat(parts.flatMap((part) => part.blocks())), problem }
}

/**
 * Returns the parts of a box, of the main thread and of each worker that has not ended.
 * @param {Buffer} bytes the whole file
 * @param {boolean} isAlive its process lives
 * @returns {{ parts: Part[], problem: string | undefined }}
 */
function partsOf (bytes, isAlive) {
  const fail = (/** @type {string} */ problem) => ({ parts: [], problem })
  const view = viewOf(bytes)
  if (bytes.length < MIN_BYTES) return fail('the box is cut off')
  const version = view.getUint32(of.version, true)
  if (version !== layout.VERSION) return fail(`the box has format ${version}, which this version cannot read`)
  const isOver = view.getUint32(of.isOver, true) !== 0
  /** @type {Part[]} */
  const parts = []
  let start = PAGE
  for (let i = 0; i < MAX_PARTS && start + layout.MIN_PART <= bytes.length; i++) {
    const size = view.getFloat64(start + at.bytes, true)
    if (!(size >= layout.MIN_PART) || size % PAGE !== 0 || start + size > bytes.length) break
    const part = Buffer.from(bytes.buffer, bytes.byteOffset + start, size)
    const isOfEndedThread = start > PAGE && viewOf(part).getUint32(at.isUsed, true) === 0
    if (viewOf(part).getUint32(at.magic, true) === layout.PART_MAGIC && !isOfEndedThread) {
      parts.push(new Part(part, view, isOver ? undefined : isAlive))
    }
    start += size
  }
  if (parts.length === 0) return fail('the box is empty')
  return { parts, problem: start < bytes.length ? 'the box is damaged' : undefined }
}

/** The part of a thread. */
class Part {
  #bytes
  #view
  #head
  #isAlive
  #ring
  #times
  #aliveAt

  /**
   * @param {Buffer} bytes
   * @param {DataView} head of the file
   * @param {boolean | undefined} isAlive the process lives; undefined: it ended in order
   */
  constructor (bytes, head, isAlive) {
    this.#bytes = bytes
    this.#view = viewOf(bytes)
    this.#head = head
    this.#isAlive = isAlive
    const ring = new Uint8Array(log.BYTES) // a copy, aligned
    ring.set(bytes.subarray(RING, RING + log.BYTES))
    this.#ring = new Int32Array(ring.buffer)
    this.#times = new Float64Array(ring.buffer)
    const originMs = this.#view.getFloat64(at.originMs, true)
    this.#aliveAt = Math.max(head.getFloat64(of.aliveAt, true) - originMs, this.#times[log.LATEST])
  }

  get source () { return this.#view.getUint32(at.source, true) }

  /** ms of the clock: the last sign of life */
  get aliveAt () { return this.#aliveAt }

  /** @returns {number} number of the newest entry of the log */
  get newest () { return this.#ring[log.COUNT] }

  /** Lists the blocks that were written, in order. */
  written () {
    const half = this.#view.getUint32(at.half, true) & 1
    return [1 - half, half].flatMap((each) => this.#blocksOf(each))
  }

  /** Returns the state of the thread, and its open requests, oldest first. */
  state () {
    const open = this.#openRequests().filter(({ isEnded }) => !isEnded)
    return { open, end: this.#death(open, this.#view.getFloat64(at.origin, true)) }
  }

  /** @returns {Buffer[]} blocks of the recording, in order */
  blocks () {
    const written = this.written()
    const last = written.at(-1)
    const blocks = written.map(({ block }) => block)
    blocks.push(this.#lastBlock(last?.header))
    return blocks
  }

  /** @param {number} half */
  #blocksOf (half) {
    const size = layout.halfOf(this.#bytes.length)
    const start = HALVES + half * size
    const end = start + Math.min(size, this.#view.getUint32(at.written + 4 * half, true))
    const source = this.#view.getUint32(at.source, true)
    const found = []
    for (let offset = start; offset < end;) {
      const header = readHeader(this.#bytes, offset)
      if (header === undefined || header.source !== source || offset + header.bytes > end) break
      found.push({ header, block: this.#bytes.subarray(offset, offset + header.bytes) })
      offset += header.bytes
    }
    return found
  }

  /**
   * Makes a block of what was in memory only: the newest entries, and the ends of open requests.
   * @param {import('../../lib/record/block').Header | undefined} last block
   */
  #lastBlock (last) {
    const newest = this.#ring[log.COUNT]
    const oldest = (newest - log.ENTRIES + 1) | 0
    const next = last === undefined ? Math.max(1, oldest) : (last.first + last.entries) | 0
    const lost = Math.max(0, (oldest - next) | 0)
    const first = (next + lost) | 0
    const count = Math.max(0, (newest - first + 1) | 0)
    const all = this.#openRequests()
    const requests = all.filter(({ isEnded }) => !isEnded)
    const ends = this.#endsIn(first, count)
    const ended = all.filter(({ isEnded, number }) => isEnded && ends.has(number))
    const entries = new Uint8Array((count + requests.length) * ENTRY_BYTES)
    for (let i = 0; i < count; i++) entries.set(this.#entry((first + i) | 0), i * ENTRY_BYTES)
    requests.forEach(({ number }, i) => this.#writeEnd(entries, count + i, number))
    const origin = last?.origin ?? this.#view.getFloat64(at.origin, true)
    const death = this.#isAlive === undefined ? [] : [{ death: this.#death(requests, origin) }]
    const known = [...requests, ...ended].flatMap((request, i) =>
      textsOf(request, ends.get(request.number) ?? this.#aliveAt, origin, FIRST_FORM + i))
    const texts = [...death, ...known].map((line) => `${JSON.stringify(line)}\n`).join('')
    const target = Buffer.alloc(maxBytesOf(texts, count + requests.length))
    const length = encode(target, {
      source: this.#view.getUint32(at.source, true),
      number: (last?.number ?? 0) + 1,
      first,
      flags: LAST,
      now: this.#aliveAt,
      origin,
      lost
    }, texts, [entries])
    return target.subarray(0, length)
  }

  /**
   * Returns when the spans ended that have an end among entries, ms of the clock.
   * @param {number} first
   * @param {number} count
   */
  #endsIn (first, count) {
    /** @type {Map<number, number>} */
    const ends = new Map()
    for (let i = 0; i < count; i++) {
      const place = this.#placeOf((first + i) | 0)
      if ((this.#ring[place + log.HEAD] & KIND) !== log.END) continue
      ends.set(this.#ring[place + log.REQUEST], this.#times[(place >> 1) + log.TIME])
    }
    return ends
  }

  /** @param {number} number @returns {Uint8Array} */
  #entry (number) {
    const start = this.#placeOf(number) * 4
    return new Uint8Array(this.#ring.buffer, start, ENTRY_BYTES)
  }

  /** @param {number} number @returns {number} word */
  #placeOf (number) {
    return log.HEADER + ((number - 1) & (log.ENTRIES - 1)) * log.WORDS
  }

  /** @param {Uint8Array} entries @param {number} index @param {number} span */
  #writeEnd (entries, index, span) {
    const view = viewOf(entries)
    const offset = index * ENTRY_BYTES
    view.setInt32(offset, log.END, true)
    view.setInt32(offset + 4 * log.REQUEST, span, true)
    view.setFloat64(offset + 8 * log.TIME, this.#aliveAt, true)
  }

  /** @returns {OpenRequest[]} oldest first */
  #openRequests () {
    /** @type {OpenRequest[]} */
    const requests = []
    for (let i = 0; i < SLOTS; i++) {
      const start = TABLE + i * SLOT_BYTES
      const number = this.#view.getInt32(start, true)
      const time = this.#view.getFloat64(start + slot.start, true)
      const bytes = this.#view.getUint32(start + slot.nameBytes, true)
      const kind = this.#view.getUint32(start + slot.kind, true)
      if (number === 0 || !Number.isFinite(time) || bytes > layout.MAX_NAME) continue
      requests.push({
        number,
        start: time,
        name: this.#bytes.toString('utf8', start + slot.name, start + slot.name + bytes),
        ids: this.#bytes.toString('hex', start + slot.ids, start + slot.ids + 24),
        isServer: (kind & layout.SERVER) !== 0,
        isEnded: (kind & layout.ENDED) !== 0
      })
    }
    return requests.sort((a, b) => a.start - b.start)
  }

  /** @param {OpenRequest[]} requests @param {number} origin @returns {Death} */
  #death (requests, origin) {
    const view = this.#view
    const limit = this.#head.getFloat64(of.memoryLimit, true)
    const running = this.#running()
    const originMs = view.getFloat64(at.originMs, true)
    return {
      lives: this.#isAlive === true,
      pid: this.#head.getUint32(of.pid, true),
      thread: view.getUint32(at.thread, true),
      unixMs: origin + this.#aliveAt,
      runningMs: running && Math.max(0, this.#aliveAt - running.since),
      chain: running?.chain ?? 0,
      inside: running && innermost(this.#stack()),
      request: requests.find(({ number }) => number === running?.request)?.name,
      requests: requests.filter(({ isServer }) => isServer).length + view.getUint32(at.leftOut, true),
      used: view.getFloat64(at.used, true),
      limit: view.getFloat64(at.limit, true) - view.getFloat64(at.young, true),
      collections: view.getUint32(at.collections, true),
      collectedMs: Math.max(0, this.#aliveAt - (view.getFloat64(at.collectedAt, true) - originMs)),
      resident: this.#head.getFloat64(of.resident, true),
      residentLimit: limit > 0 && limit < NO_LIMIT ? limit : undefined,
      sampled: view.getFloat64(at.sampled, true),
      growth: growthOf(this.#growth()),
      buffers: parseJson(this.#textAt(at.buffers, at.buffersBytes, at.stack))
    }
  }

  #growth () {
    const half = PAGE / 2
    const start = layout.GROWTH + (this.#view.getUint32(at.growthText, true) & 1) * half
    return this.#textAt(start, at.growthBytes, start + half)
  }

  /** @param {number} start @param {number} bytes offset of their number @param {number} end */
  #textAt (start, bytes, end) {
    return this.#bytes.toString('utf8', start, Math.min(end, start + this.#view.getUint32(bytes, true)))
  }

  #stack () {
    const isOfNewest = this.#view.getInt32(at.stackEntry, true) === this.#ring[log.COUNT]
    return isOfNewest ? this.#textAt(at.stack, at.stackBytes, PAGE) : ''
  }

  /**
   * The step that ran at the end, and since when its callback did.
   * @returns {{ chain: number, request: number, since: number } | undefined}
   */
  #running () {
    const newest = this.#ring[log.COUNT]
    const returned = this.#ring[log.RETURNED]
    const count = Math.min(log.ENTRIES, (newest - returned) | 0)
    for (let i = 0; i < count; i++) {
      const place = this.#placeOf((newest - i) | 0)
      const kind = this.#ring[place + log.HEAD] & KIND
      const [chain, request, run] = [log.CHAIN, log.REQUEST, log.REGISTERED]
        .map((word) => this.#ring[place + word])
      if (kind === log.POLL || (kind === log.RESUME && run === 0)) return undefined
      if (kind === log.RUN) return { chain, request, since: this.#begunAt((newest - i) | 0) }
      if (kind === log.RESUME) return { chain, request, since: this.#begunAt(run) }
    }
  }

  /** Returns when the callback began to which a run belongs. @param {number} run */
  #begunAt (run) {
    const isKept = (/** @type {number} */ number) => {
      const age = (this.#ring[log.COUNT] - number) | 0
      return number !== 0 && age >= 0 && age < log.ENTRIES
    }
    let first = run
    for (let outer = run, i = 0; isKept(outer) && i < log.ENTRIES; i++) {
      first = outer
      outer = this.#ring[this.#placeOf(outer) + log.A]
    }
    return isKept(first) ? this.#times[(this.#placeOf(first) >> 1) + log.TIME] : this.#aliveAt
  }
}

/** @param {string} stack @returns {string | undefined} */
function innermost (stack) {
  const frames = framesOf(stack)
  return frames.find((frame) => !/^(.* \()?node:/.test(frame)) ?? frames[0]
}

/**
 * @param {OpenRequest} request
 * @param {number} end ms of the clock
 * @param {number} origin
 * @param {number} form number of its form
 * @returns {object[]} lines, see lib/record/texts.js
 */
function textsOf ({ number, name, ids, isServer, isEnded, start }, end, origin, form) {
  const us = [Math.round(start * 1000), Math.round(Math.max(0, end - start) * 1000)]
  return [
    { form, name, kind: isServer ? 'SERVER' : 'INTERNAL', origin },
    { span: number, form, ids, us, status: { code: 'UNSET' }, attributes: {}, open: !isEnded }
  ]
}

module.exports = { partsOf, recordingOf, unboxed }
