'use strict'

// Resources opened since an earlier snapshot. A snapshot holds handles weakly, with counts per chain. Also
// contains the error of trace.assertNoLeaks and of the test runner plug-ins.

const { queriedAt } = require('../core/clock')
const { createTag } = require('../core/tag')
const { groupKey, inspectableReports, listText, printed } = require('../format/handles')
const { getOrAdd } = require('../group-by')
const { isAnyObject } = require('../objects')
const { drain, isTraced, list, walk } = require('./list')
const { report } = require('./why')

/**
 * @typedef {import('./subject').Subject} Subject
 * @typedef {import('./why').Why} Why
 * @typedef {import('../format/handles').Printed} Printed
 *
 * @typedef {object} Snapshot resources open at one moment; has no properties
 *
 * @typedef {Why & { perMinute: number }} NewHandle perMinute: net growth of handles of this kind and chain
 *   since the snapshot, per minute
 */

const MINUTE_MS = 60_000
const LEAK_CODE = 'ERR_LONGSTACK_LEAK'

/** Resources open at one moment. Has no properties and keeps no handle alive. */
class OpenHandles {}

/**
 * @typedef {object} Contents
 * @property {WeakSet<object>} open
 * @property {Set<string>} descriptors by their keys
 * @property {Map<string, number>} counts by type and chain
 * @property {number} time ms of the clock
 */

/** contents of a snapshot, invisible on it @type {ReturnType<typeof createTag<Contents>>} */
const contentsTag = createTag()

/** @param {Snapshot} snapshot @returns {Contents} */
const contentsOf = (snapshot) => /** @type {Contents} */ (contentsTag.read(snapshot))

/** @param {unknown} value @returns {value is Snapshot} */
function isSnapshot (value) {
  return isAnyObject(value) && contentsTag.read(value) !== undefined
}

/** @param {Contents} contents @param {Subject} subject @returns {boolean} whether it was open then */
function wasOpen ({ open, descriptors }, { handle, object, descriptor }) {
  if (descriptor !== undefined) return descriptors.has(descriptor.key)
  const held = handle ?? object
  return held !== undefined && open.has(held)
}

const selectAll = () => true

/**
 * Reports on resources opened since a snapshot, with pauses.
 * @param {Snapshot} before
 * @returns {Generator<undefined, NewHandle[]>}
 */
function * compare (before) {
  /** still open, by type and chain @type {Map<string, number>} */
  const remaining = new Map()
  /** @type {Map<string, { members: Array<{ why: Why, facts: Printed }>, keys: Set<string> }>} */
  const groups = new Map()
  const contents = contentsOf(before)
  for (const subject of walk(selectAll)) {
    yield
    if (subject === undefined) continue
    if (wasOpen(contents, subject)) {
      count(remaining, chainKey(subject))
      continue
    }
    const why = report(subject)
    const facts = /** @type {Printed} */ (printed.read(why))
    const group = getOrAdd(groups, groupKey(facts), () => ({ members: [], keys: new Set() }))
    group.members.push({ why, facts })
    group.keys.add(chainKey(subject))
  }
  const elapsedMs = Math.max(1, queriedAt() - contents.time)
  for (const { members, keys } of groups.values()) {
    let more = members.length
    for (const key of keys) {
      more -= Math.max(0, (contents.counts.get(key) ?? 0) - (remaining.get(key) ?? 0))
    }
    for (const { why, facts } of members) {
      Object.assign(why, { perMinute: more * MINUTE_MS / elapsedMs })
      facts.growth = { more, elapsedMs }
    }
  }
  const reports = [...groups.values()].flatMap(({ members }) => members.map(({ why }) => why))
  return /** @type {NewHandle[]} */ (reports)
}

/** Takes a snapshot, with pauses. @returns {Generator<undefined, Snapshot>} */
function * record () {
  /** @type {Contents} */
  const contents = { open: new WeakSet(), descriptors: new Set(), counts: new Map(), time: queriedAt() }
  for (const subject of walk(selectAll)) {
    yield
    if (subject === undefined) continue
    const held = subject.handle ?? subject.object
    if (held !== undefined) contents.open.add(held)
    if (subject.descriptor !== undefined) contents.descriptors.add(subject.descriptor.key)
    count(contents.counts, chainKey(subject))
  }
  const snapshot = new OpenHandles()
  contentsTag.write(snapshot, contents)
  return Object.freeze(snapshot)
}

const take = () => drain(record())

/** @param {Snapshot} before @returns {NewHandle[]} */
const diff = (before) => /** @type {NewHandle[]} */ (inspectableReports(drain(compare(before))))

/**
 * @param {Snapshot} before
 * @returns {Subject[]} resources opened since then and still open
 */
const opened = (before) => list(isTraced).filter((subject) => !wasOpen(contentsOf(before), subject))

/**
 * Whether an open resource is a leak if nothing waits for it: it keeps the process alive, or a file open.
 * zlib streams and the like are only memory, which garbage collection frees.
 * @param {{ type: string, referenced: boolean | undefined }} handle
 */
function isLeaking ({ type, referenced }) {
  return referenced === true || type === 'FILEHANDLE' || type === 'DIRHANDLE'
}

/**
 * Returns the message of trace.assertNoLeaks.
 * @param {Why[]} leaks
 */
function leakMessage (leaks) {
  const subject = leaks.length === 1 ? '1 handle' : `${leaks.length} handles`
  const verb = leaks.length === 1 ? 'is' : 'are'
  return `${subject} opened since the snapshot ${verb} still open:\n\n${listText(leaks)}`
}

/**
 * Creates an error that reports leaks.
 * @param {string} message
 * @param {Why[]} leaks becomes the property `handles`, which is not printed with the error
 * @param {Function} above the error's frames start below this function
 * @returns {Error & { code: string, handles: Why[] }}
 */
function createLeakError (message, leaks, above) {
  const error = Object.assign(new Error(message), { code: LEAK_CODE })
  Error.captureStackTrace(error, above)
  Object.defineProperty(error, 'handles', { value: leaks, enumerable: false })
  return /** @type {any} */ (error)
}

/** Returns the key shared by handles opened at one place. @param {Subject} subject */
function chainKey ({ type, context, descriptor }) {
  return descriptor === undefined ? `${type} ${context?.chain ?? 0}` : `${type} ${descriptor.path}`
}

/** @param {Map<string, number>} counts @param {string} key */
function count (counts, key) {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

module.exports = {
  compare, createLeakError, diff, isLeaking, isSnapshot, leakMessage, opened, record, take
}
