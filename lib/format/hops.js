'use strict'

// Formats hops as text, and copies them for the program as data that util.inspect prints as text. Frames look
// exactly as V8 prints them. The line between two hops starts with text that no stack parser takes for a
// frame.

const { createTag } = require('../core/tag')
const { unfold } = require('../stacks/hop-folding')
const { AT, baseName } = require('../stacks/text-scan')
const { formatDuration, clean, shortFrame } = require('../text')
const { createInspectable, printedOf } = require('./inspect')

/**
 * @typedef {import('../stacks/chain').Hop} Hop
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 */

/** @type {Record<string, string>} */
const remarks = {
  settled: 'settled here',
  rejected: 'rejected here',
  thrown: 'thrown here',
  reader: 'reader: only where .stack was read is known',
  worker: 'in the parent thread',
  early: 'early'
}

/** Text before the label of an appended chain's first hop. @type {Record<string, string>} */
const introductions = {
  awaited: 'awaited by',
  triggered: 'triggered by',
  idle: 'on a connection opened by',
  ended: 'ended by',
  destroyed: 'destroyed by',
  sent: 'headers sent by',
  aborted: 'aborted by'
}

/** Origins printed at most once. */
const printedOnce = new Set(['registered', 'rejected', 'thrown', ...Object.keys(introductions)])

/**
 * @typedef {object} Manner
 * @property {boolean} [timeless] without ages
 * @property {boolean} [whole] full text instead of the short one
 *
 * @param {PrintedHop} hop
 * @param {PrintedHop} [previous] the hop above, which may have the same origin
 * @param {Manner} [manner]
 */
function separator (hop, previous, { timeless = false, whole = false } = {}) {
  if (connectionLines[hop.origin] !== undefined) return connectionLine(hop, timeless)
  const isFirst = previous === undefined || hop.isMarked || previous.origin !== hop.origin ||
    previous.pid !== hop.pid || previous.threadId !== hop.threadId
  const introduction = isFirst ? introductions[hop.origin] : undefined
  let line = introduction === undefined ? '  ──' : `  ── ${introduction}`
  const isLabelled = hop.label !== hop.type
  if (isLabelled) line += ` ${clean(hop.label)}${hop.repeats > 1 ? ` × ${hop.repeats}` : ''}`
  if (!isLabelled) line += ` ${clean(hop.type)}`
  else if (whole || hop.short === undefined) line += ` · ${clean(hop.type)}`
  if (!timeless && Number.isFinite(hop.ageMs)) line += ` · ${formatDuration(hop.ageMs)} earlier`
  const remark = isFirst ? remarkOf(hop) : printedOnce.has(hop.origin) ? undefined : hop.origin
  line += remark === undefined ? ' ──' : ` · ${remark} ──`
  // Sentry takes text after "at " anywhere for a frame, even in "GET /chat · 9 ms earlier".
  return whole || !line.includes('at ') ? line : line.replaceAll('at ', 'at\u00a0')
}

/**
 * Text before and after the opener, or the users, of the connection of a hop.
 * @type {Record<string, [string, string]>}
 */
const connectionLines = {
  opened: ['opened by', ''],
  unasked: ['opened by', '; who asked is not known'],
  shared: ['shared by', '']
}

/** @param {PrintedHop} hop @param {boolean} timeless */
function connectionLine ({ origin, label, ageMs }, timeless) {
  const [verb, remark] = connectionLines[origin]
  const age = timeless || !Number.isFinite(ageMs) ? '' : `, ${formatDuration(ageMs)} earlier`
  return `  ── on a connection ${verb} ${clean(label)}${age}${remark} ──`
}

/**
 * Returns a remark on the process or thread of a hop and on how it is known, if needed.
 * @param {PrintedHop} hop
 * @returns {string | undefined}
 */
function remarkOf ({ origin, pid, threadId }) {
  if (origin === 'process') return pid === undefined ? undefined : `in process ${pid}`
  if (threadId === undefined) return remarks[origin]
  const thread = threadId === 0 ? 'in the main thread' : `in thread ${threadId}`
  return origin === 'worker' || remarks[origin] === undefined ? thread : `${thread} · ${remarks[origin]}`
}

/**
 * Formats a hop in one line.
 * @param {string} introduction
 * @param {PrintedHop} hop
 */
function oneLine (introduction, { label, ageMs, frames }) {
  const parts = [`${introduction}: ${clean(label)}`]
  if (Number.isFinite(ageMs)) parts.push(`${formatDuration(ageMs)} earlier`)
  const functions = frames.map(({ functionName }) => clean(functionName ?? 'anonymous'))
  if (frames.length > 0) {
    const { fileName = '', lineNumber } = frames[0]
    functions[0] += ` (${clean(baseName(fileName))}:${lineNumber})`
    parts.push(functions.join(' < '))
  }
  return `  ── ${parts.join(' · ')} ──`
}

/**
 * Returns the place of a chain in one line: the innermost frame of the program, up the chain if necessary, or
 * the innermost frame of a package if there is none.
 * @param {PrintedHop[]} hops newest first
 * @returns {string | undefined} `connect (db.js:3)`, or `db.js:3` of a function without a name
 */
function placeOf (hops) {
  const request = hops.findIndex(({ isRequest }) => isRequest)
  const own = unfold(request === -1 ? hops : hops.slice(0, request + 1))
  const frame = own.find(({ place }) => place !== undefined)?.place ??
    own.find(({ lines }) => lines[0]?.startsWith(AT))?.lines[0].slice(AT.length)
  return frame === undefined ? undefined : clean(shortFrame(frame))
}

/**
 * @param {PrintedHop[]} hops
 * @param {Manner} [manner]
 * @returns {string} lines; empty for no hops
 */
function formatHops (hops, manner = {}) {
  const { whole = false } = manner
  const lines = []
  /** @type {PrintedHop | undefined} */
  let previous
  for (const hop of whole ? unfold(hops) : hops) {
    if (hop.isBehindRequest === true && !whole) continue
    if (hop.origin === 'first' && !hop.isFolded) {
      lines.push(oneLine('first rejected', hop))
      continue
    }
    if (!hop.isFolded) lines.push(separator(hop, previous, manner))
    for (const line of whole ? hop.lines : hop.short ?? hop.lines) lines.push(line)
    previous = hop
  }
  return lines.join('\n')
}

/** @type {ReturnType<typeof createTag<PrintedHop>>} printed data of a hop, invisible on the program's copy */
const printedHop = createTag()

const inspectableChain = createInspectable((/** @type {Hop[]} */ chain) => {
  const hops = [...new Set(printedOf(chain, printedHop) ?? [])]
  return hops.length === 0 ? undefined : { text: formatHops(hops), title: `${hops.length} hops` }
})

/** Copies the public data of a hop. @param {PrintedHop} hop @returns {Hop} */
function copyHop (hop) {
  const { lines, short, place, packages, alone, members, isFolded, isRequest, isBehindRequest, ...data } = hop
  return { ...data, frames: data.frames.map((frame) => ({ ...frame })) }
}

/** Copies the public data of hops, including hops folded in text. @param {PrintedHop[]} hops */
const copyHops = (hops) => unfold(hops).map(copyHop)

/**
 * Copies a chain for the program.
 * @param {PrintedHop[]} hops
 * @param {(label: string) => string} [edit] applied to labels
 * @returns {Hop[]}
 */
function copyChain (hops, edit = (label) => label) {
  return inspectableChain(hops.flatMap((hop) => copyHops([hop]).map((copy) => {
    copy.label = edit(copy.label)
    printedHop.write(copy, hop)
    return copy
  })))
}

module.exports = { copyChain, copyHops, formatHops, placeOf, separator }
