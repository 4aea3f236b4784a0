'use strict'

// What is open now and was not open at an earlier moment. A snapshot holds the handles weakly, and how many
// there were of each chain.

const { queriedAt } = require('../core/clock')
const { groupKey, inspectableReports, printed } = require('../format/handles')
const { list, walk } = require('./list')
const { report } = require('./why')

/**
 * @typedef {import('./subject').Subject} Subject
 * @typedef {import('./why').Why} Why
 *
 * @typedef {object} Snapshot what was open at a moment: it has no properties
 *
 * @typedef {Why & { perMinute: number }} NewHandle perMinute: by how many the handles of this kind and chain
 *   have grown since the snapshot, those that were closed taken off, per minute
 */

const MINUTE_MS = 60_000

/** What was open at a moment. It has no properties, and keeps no handle alive. */
class OpenHandles {
  /** @type {WeakSet<object>} */
  #open = new WeakSet()
  /** by type and chain @type {Map<string, number>} */
  #counts = new Map()
  #time

  /** @param {number} time ms of the clock */
  constructor (time) {
    this.#time = time
    Object.freeze(this)
  }

  /** @param {OpenHandles} snapshot @param {Subject} subject that is open */
  static add (snapshot, subject) {
    const held = subject.handle ?? subject.object
    if (held !== undefined) snapshot.#open.add(held)
    count(snapshot.#counts, chainKey(subject))
  }

  /** @param {unknown} value @returns {value is OpenHandles} */
  static isInstance (value) {
    return typeof value === 'object' && value !== null && #open in value
  }

  /** @param {OpenHandles} snapshot @returns {number} ms of the clock */
  static timeOf (snapshot) {
    return snapshot.#time
  }

  /** @param {OpenHandles} snapshot @param {Subject} subject @returns {boolean} it was open then */
  static has (snapshot, { handle, object }) {
    const held = handle ?? object
    return held !== undefined && snapshot.#open.has(held)
  }

  /** @param {OpenHandles} snapshot @param {string} key @returns {number} how many there were then */
  static countOf (snapshot, key) {
    return snapshot.#counts.get(key) ?? 0
  }
}

const selectAll = () => true

/**
 * Reports on what is open and was not, with pauses.
 * @param {import('./snapshots').OpenHandles} before
 * @returns {Generator<undefined, import('./snapshots').NewHandle[]>}
 */
function * compare (before) {
  /** still open, by type and chain @type {Map<string, number>} */
  const remaining = new Map()
  /** @type {Map<string, { reports: Why[], keys: Set<string> }>} */
  const groups = new Map()
  for (const subject of walk(selectAll)) {
    yield
    if (subject === undefined) continue
    if (OpenHandles.has(before, subject)) {
      count(remaining, chainKey(subject))
      continue
    }
    const why = report(subject)
    const key = groupKey(/** @type {import('../format/handles').Printed} */ (printed.read(why)))
    const group = groups.get(key) ?? { reports: [], keys: new Set() }
    groups.set(key, group)
    group.reports.push(why)
    group.keys.add(chainKey(subject))
  }
  const elapsedMs = Math.max(1, queriedAt() - OpenHandles.timeOf(before))
  for (const { reports, keys } of groups.values()) {
    let more = reports.length
    for (const key of keys) {
      more -= Math.max(0, OpenHandles.countOf(before, key) - (remaining.get(key) ?? 0))
    }
    for (const why of reports) addGrowth(why, more, elapsedMs)
  }
  return /** @type {NewHandle[]} */ ([...groups.values()].flatMap(({ reports }) => reports))
}

/** Takes a snapshot, with pauses. @returns {Generator<undefined, import('./snapshots').OpenHandles>} */
function * record () {
  const snapshot = new OpenHandles(queriedAt())
  for (const subject of walk(selectAll)) {
    yield
    if (subject !== undefined) OpenHandles.add(snapshot, subject)
  }
  return snapshot
}

const take = () => resultOf(record())

/** @param {import('./snapshots').OpenHandles} before @returns {import('./snapshots').NewHandle[]} */
const diff = (before) => /** @type {NewHandle[]} */ (inspectableReports(resultOf(compare(before))))

/**
 * @param {import('./snapshots').OpenHandles} before
 * @returns {import('./subject').Subject[]} what is open and was not
 */
const opened = (before) => list(selectAll).filter((subject) => !OpenHandles.has(before, subject))

/**
 * Runs a generator to its end.
 * @template T
 * @param {Generator<unknown, T>} generator
 * @returns {T}
 */
function resultOf (generator) {
  for (;;) {
    const { done, value } = generator.next()
    if (done) return value
  }
}

/**
 * Whether what is open is a leak where nobody waits for it: it keeps the process alive, or a file open.
 * Streams of zlib and the like are memory, which a collection frees.
 * @param {{ type: string, referenced: boolean | undefined }} handle
 */
function isLeaking ({ type, referenced }) {
  return referenced === true || type === 'FILEHANDLE' || type === 'DIRHANDLE'
}

/** @param {Why} why @param {number} more @param {number} elapsedMs since the snapshot */
function addGrowth (why, more, elapsedMs) {
  Object.assign(why, { perMinute: more * MINUTE_MS / elapsedMs })
  const facts = printed.read(why)
  if (facts !== undefined) facts.growth = { more, elapsedMs }
}

/** Returns what handles of one place have in common. @param {Subject} subject */
function chainKey ({ type, context }) {
  return `${type} ${context?.chain ?? 0}`
}

/** @param {Map<string, number>} counts @param {string} key */
function count (counts, key) {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

module.exports = { OpenHandles, compare, diff, isLeaking, opened, record, take }
