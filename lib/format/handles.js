'use strict'

// Formats reports of handles as text, with equal handles grouped. Data in, string out.

const { getOrAdd, groupBy } = require('../group-by')
const { ownManifest } = require('../platform')
const { DESCRIPTOR } = require('../subsystems')
const { formatDuration, clean } = require('../text')
const { createTag } = require('../core/tag')
const { formatHops, placeOf } = require('./hops')
const { createInspectable, printedOf } = require('./inspect')

/**
 * @typedef {import('../handles/why').Why} Why
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 *
 * Data of a report, with hops as printed.
 * @typedef {object} Printed
 * @property {string} what
 * @property {string} noun kind of the handle
 * @property {string} type
 * @property {string} origin
 * @property {string | undefined} side
 * @property {string | undefined} state
 * @property {string | undefined} local
 * @property {string | undefined} remote
 * @property {PrintedHop[]} opened
 * @property {{ request: string, hops: PrintedHop[] } | undefined} usedBy
 * @property {{ at: string | undefined, agoMs: number, hops: PrintedHop[] } | undefined} writtenBy
 * @property {Array<{ name: string, at: string | undefined }>} through
 * @property {boolean} enabled whether longstack is enabled
 * @property {number | undefined} ageMs
 * @property {number | undefined} idleMs
 * @property {number | undefined} bytesRead
 * @property {number | undefined} bytesWritten
 * @property {boolean | undefined} referenced
 * @property {string | undefined} hint
 * @property {boolean} ran whether it has had an event
 * @property {boolean} pooled whether requests use it one after another
 * @property {boolean} filtered whether the filter leaves out its type
 * @property {{ more: number, elapsedMs: number }} [growth] of its group since a snapshot
 * @property {string} [where] process and thread, if there are several
 */

/** @type {ReturnType<typeof createTag<Printed>>} printed data of a report, invisible on the report */
const printed = createTag()

const inspectableReport = createInspectable((/** @type {Why} */ why) => {
  const facts = printed.read(why)
  return facts && { text: formatGroup([facts]), title: facts.what }
})

const inspectableReports = createInspectable((/** @type {Why[]} */ reports) => {
  const facts = printedOf(reports, printed) ?? []
  if (facts.length === 0) return undefined
  return { text: groupsOf(facts).join('\n\n'), title: `${facts.length} handles` }
})

const MAX_NAMED = 5 // per group
const MIN_RATE_MS = 1000 // a rate over a shorter time means nothing

/** @param {Why[]} list @returns {string} */
function summary (list) {
  if (list.length === 0) return `longstack: nothing is open in process ${process.pid}.\n`
  return `longstack: ${list.length} open in process ${process.pid}\n\n${listText(list)}\n`
}

/**
 * @param {Printed[]} list
 * @returns {string[]} text of each group of equal handles, largest first. Since a snapshot: fastest growing
 *   first, then one line for each group with as many closed as opened
 */
function groupsOf (list) {
  const sorted = groupBy(list, groupKey).sort((a, b) => growthOf(b) - growthOf(a) || b.length - a.length)
  const steady = sorted.filter(([{ growth }]) => growth !== undefined && growth.more <= 0)
  const texts = sorted.filter((group) => !steady.includes(group)).map(formatGroup)
  return steady.length === 0 ? texts : [...texts, steadyText(steady)]
}

/** @param {Printed[]} group */
const growthOf = ([{ growth }]) => Math.max(0, growth?.more ?? 0)

/** @param {Printed[][]} groups without growth since a snapshot */
function steadyText (groups) {
  const elapsedMs = Math.max(...groups.map(([{ growth }]) => growth?.elapsedMs ?? 0))
  const lines = groups.map((group) => {
    const place = placeOf(group[0].opened)
    return `  ${headOf(group)}${place === undefined ? '' : `, at ${place}`}`
  })
  return `Balanced since the snapshot ${formatDuration(elapsedMs)} ago:\n${lines.join('\n')}`
}

/** Returns a key that is equal for all members of a group. @param {Printed} facts */
function groupKey (facts) {
  const { type, side, state, origin, referenced, through, opened, writtenBy } = facts
  const { what, noun, local, remote } = facts
  const end = side === 'server' || type === DESCRIPTOR ? local : side === 'client' ? remote : undefined
  const place = end === undefined ? what : [noun, end]
  const opener = opened.length > 0 ? openerKey(opened) : place
  const writer = writtenBy && (requestOf(writtenBy.hops) ?? writtenBy.at)
  return JSON.stringify([type, side, state, origin, referenced, through, opener, writer])
}

/** keys of hops that many handles share @type {WeakMap<PrintedHop[], string>} */
const openerKeys = new WeakMap()

/** @param {PrintedHop[]} opened @returns {string} */
function openerKey (opened) {
  return getOrAdd(openerKeys, opened, () => JSON.stringify(opened.map((hop) => [hop.type, hop.lines])))
}

/** @param {Why[]} list @returns {string} text with equal handles grouped */
function listText (list) {
  return groupsOf(list.map((why) => /** @type {Printed} */ (printed.read(why)))).join('\n\n')
}

/** @param {Printed[]} group equal in all but their figures and addresses */
function formatGroup (group) {
  const [first] = group
  const lines = [headOf(group)]
  const figures = [
    first.state,
    ages(group),
    first.state === 'closed' ? undefined : idle(group),
    bytes(group, 'bytesRead', 'in'),
    bytes(group, 'bytesWritten', 'out'),
    first.referenced && 'keeps the process alive',
    first.referenced === false && 'does not keep the process alive'
  ].filter(Boolean)
  if (figures.length > 0) lines.push(`  ${figures.join(', ')}`)
  if (first.growth !== undefined) lines.push(`  ${growthText(first.growth)}`)
  const places = countWords(group.map(({ where }) => where))
  if (places.length > 0) lines.push(`  in ${list(places)}`)
  lines.push(...remotesOf(group), ...openerLines(first), ...userLines(group), ...writerLines(group))
  lines.push(...transformLines(first))
  if (first.hint !== undefined) lines.push(`  to close it: ${first.hint}`)
  return lines.join('\n')
}

/** @param {Printed[]} group */
function headOf (group) {
  return `${group.length > 1 ? `${group.length} × ` : ''}${sharedDescription(group)} · ${group[0].type}`
}

/** Describes the common properties of a group. @param {Printed[]} group */
function sharedDescription (group) {
  const [first] = group
  if (group.every(({ what }) => what === first.what)) return first.what
  const sharedEnd = (/** @type {'local' | 'remote'} */ end) => {
    return group.every((member) => member[end] === first[end]) ? first[end] : undefined
  }
  const [local, remote] = [sharedEnd('local'), sharedEnd('remote')]
  let text = first.noun
  if (first.side !== undefined) text += `, ${first.side}`
  if (remote !== undefined) text += ` ${first.side === 'server' ? 'of' : 'to'} ${remote}`
  return local === undefined ? text : `${text}, at ${local}`
}

/** Lists the remote ends of a group, if they differ. @param {Printed[]} group */
function remotesOf (group) {
  const remotes = countWords(group.map((member) => member.remote))
  return remotes.length < 2 ? [] : [`  ${group[0].side === 'server' ? 'from' : 'to'} ${list(remotes)}`]
}

/**
 * @param {Array<string | undefined>} words
 * @returns {string[]} distinct words, most frequent first, with their counts if more than 1
 */
function countWords (words) {
  const groups = groupBy(words.filter((word) => word !== undefined), (word) => word)
  return groups.sort((a, b) => b.length - a.length)
    .map((same) => same.length > 1 ? `${same[0]} (${same.length} ×)` : same[0])
}

/** @param {string[]} words */
function list (words) {
  const text = words.slice(0, MAX_NAMED).join(', ')
  return words.length > MAX_NAMED ? `${text} and ${words.length - MAX_NAMED} more` : text
}

/** @param {Printed[]} group */
function ages (group) {
  const range = rangeOf(group.map(({ ageMs }) => ageMs))
  if (range === undefined) return group[0].origin === 'early' || group[0].filtered ? 'age unknown' : undefined
  return group[0].state === 'closed' ? `made ${range} ago` : `${range} old`
}

/** @param {NonNullable<Printed['growth']>} growth */
function growthText ({ more, elapsedMs }) {
  const since = `since the snapshot ${formatDuration(elapsedMs)} ago`
  if (elapsedMs < MIN_RATE_MS) return `${more} more ${since}`
  const perMinute = more * 60_000 / elapsedMs
  return `${more} more ${since}, ${perMinute < 10 ? perMinute.toFixed(1) : Math.round(perMinute)} per minute`
}

const withoutIdleTime = /^(Immediate|WORKER|PROCESSWRAP|FILEHANDLE|DIRHANDLE)$/

/** @param {Printed[]} group */
function idle (group) {
  const [{ type }] = group
  const waiting = group.every(({ ran }) => !ran)
  const range = rangeOf(group.map(({ idleMs }) => idleMs))
  if (type === 'Timeout') return waiting ? undefined : `ran ${range} ago`
  if (range === undefined || withoutIdleTime.test(type)) return undefined
  if (!/SERVERWRAP$/.test(type)) return `idle for ${range}`
  return waiting ? 'no connection yet' : `last connection ${range} ago`
}

/** @param {Printed[]} group @param {'bytesRead' | 'bytesWritten'} name @param {string} direction */
function bytes (group, name, direction) {
  const counts = group.map((member) => member[name]).filter((value) => value !== undefined)
  if (counts.length === 0) return undefined
  const sum = counts.reduce((a, b) => a + b, 0)
  return `${sum} byte${sum === 1 ? '' : 's'} ${direction}`
}

/** @param {Array<number | undefined>} times in ms @returns {string | undefined} */
function rangeOf (times) {
  const numbers = times.filter((time) => time !== undefined)
  if (numbers.length === 0) return undefined
  const [min, max] = [formatDuration(Math.min(...numbers)), formatDuration(Math.max(...numbers))]
  if (min === max) return max
  const [number, unit] = min.split(' ')
  return max.endsWith(` ${unit}`) ? `${number} to ${max}` : `${min} to ${max}`
}

const madeNotOpened = /^(Timeout|Immediate|PROMISE|REQUEST|WORKER|PROCESSWRAP|MESSAGEPORT|unknown)$/

/** @param {Printed} facts */
function openerLines ({ type, origin, side, state, opened, enabled, filtered }) {
  const verb = madeNotOpened.test(type) ? 'made' : 'opened'
  if (opened.length > 0) return [`  ${verb} by`, formatHops(opened)]
  if (type === DESCRIPTOR) {
    return ['  opened by: unknown, not by fs.open or fs.openSync while tracing was on']
  }
  if (origin === 'early' && !enabled) {
    return [`  early: ${verb} while longstack is off, so by whom is unknown; ` +
      `node -r ${ownManifest().name}/register enables it`]
  }
  if (origin === 'early') {
    return [`  early: ${verb} before longstack was enabled, so by whom is unknown`]
  }
  if (side === 'server' && origin === 'registered') {
    return ['  accepted by a server that is older than tracing']
  }
  if (filtered) return [`  ${verb} by: unknown, excluded by the filter`]
  if (state === 'closed' && origin === 'unknown') return ['  not opened yet']
  if (type === 'unknown') return ['  unknown: this object has no async resource']
  return [`  ${verb} by: unknown`]
}

/** @param {Printed[]} group */
function userLines (group) {
  const used = group.filter(({ usedBy }) => usedBy !== undefined)
  const [first] = group
  if (used.length === 0) return first.pooled && first.state !== 'closed' ? ['  not in use by a request'] : []
  const line = `  used now by ${list(countWords(used.map(({ usedBy }) => usedBy?.request)))}`
  const unused = group.length - used.length
  if (group.length > 1) return [unused > 0 ? `${line}; ${unused} by none` : line]
  const hops = first.usedBy?.hops ?? []
  if (hops.length === 0) return [line]
  if (isSameChain(hops, first.opened)) return [`${line}, for which it was opened`]
  return [`${line}, made by`, formatHops(hops)]
}

/** Names the last writer, if no request is known to use the handle. @param {Printed[]} group */
function writerLines (group) {
  const [{ writtenBy, opened }] = group
  if (writtenBy === undefined) return []
  const { at: place, hops } = writtenBy
  const request = requestOf(hops)
  let line = `  last written ${rangeOf(group.map((facts) => facts.writtenBy?.agoMs))} ago`
  if (place !== undefined) line += ` at ${place}`
  if (request !== undefined) line += `, for ${request}`
  return hops.length === 0 || isSameChain(hops, opened) ? [line] : [`${line}, by`, formatHops(hops)]
}

/** @param {PrintedHop[]} hops @returns {string | undefined} server request at their end */
function requestOf (hops) {
  const label = hops.find(({ isRequest }) => isRequest)?.label
  return label && clean(label)
}

/** @param {PrintedHop[]} first @param {PrintedHop[]} second */
function isSameChain (first, second) {
  return JSON.stringify(first.map(({ lines }) => lines)) === JSON.stringify(second.map(({ lines }) => lines))
}

/** @param {Printed} facts */
function transformLines ({ through }) {
  return through.map(({ name, at: place }, i) => {
    const line = `  ${i === 0 ? 'its bytes go through' : 'then through'} ${name}`
    return place === undefined ? line : `${line}, set ${place}`
  })
}

module.exports = {
  groupKey,
  groupsOf,
  inspectableReport,
  inspectableReports,
  listText,
  madeNotOpened,
  printed,
  requestOf,
  summary
}
