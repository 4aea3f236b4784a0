'use strict'

// Reports of what is open, one or many, equal ones grouped. Data in, string out.

const { formatDuration, clean } = require('../text')
const { formatHops } = require('./hops')
const { createTag } = require('../context/tag')

/**
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 *
 * What a report says, with the hops as they are printed.
 * @typedef {object} Printed
 * @property {string} what
 * @property {string} noun what it is, without what tells it from others
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
 * @property {boolean} enabled longstack is
 * @property {number | undefined} ageMs
 * @property {number | undefined} idleMs
 * @property {number | undefined} bytesRead
 * @property {number | undefined} bytesWritten
 * @property {boolean | undefined} referenced
 * @property {string | undefined} hint
 * @property {boolean} ran it had an event since it was made
 * @property {boolean} pooled requests use it one after another
 * @property {boolean} filtered the filter leaves its type out
 */

/** @type {ReturnType<typeof createTag<Printed>>} what a report prints, unseen on the report */
const printed = createTag()

const MOST = 5 // of a group that are named

/** @param {import('../handles/why').Why[]} list @returns {string} */
function summary (list) {
  if (list.length === 0) return `longstack: nothing is open in process ${process.pid}.\n`
  /** @type {Map<string, Printed[]>} */
  const groups = new Map()
  for (const why of list) {
    const one = /** @type {Printed} */ (printed.read(why))
    const story = one.opened.length > 0 ? one.opened.map((hop) => [hop.type, hop.lines]) : one.what
    const key = JSON.stringify([one.type, one.side, one.state, one.origin, one.referenced, one.through, story])
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [one])
    else group.push(one)
  }
  const parts = [...groups.values()].sort((a, b) => b.length - a.length).map(several)
  return `longstack: ${list.length} open in process ${process.pid}\n\n${parts.join('\n\n')}\n`
}

/** @param {Printed} one */
function report (one) {
  return several([one])
}

/** @param {Printed[]} group equal in all but their figures and addresses */
function several (group) {
  const [first] = group
  const lines = [`${group.length > 1 ? `${group.length} × ` : ''}${shared(group)} · ${first.type}`]
  const figures = [
    first.state,
    ages(group),
    first.state === 'closed' ? undefined : idle(group),
    bytes(group, 'bytesRead', 'in'),
    bytes(group, 'bytesWritten', 'out'),
    first.referenced === undefined ? undefined : `${first.referenced ? 'keeps' : 'does not keep'} the process alive`
  ].filter(Boolean)
  if (figures.length > 0) lines.push(`  ${figures.join(', ')}`)
  lines.push(...different(group), ...opened(first), ...users(group), ...writer(group), ...through(first))
  if (first.hint !== undefined) lines.push(`  to close it: ${first.hint}`)
  return lines.join('\n')
}

/** What all of a group are. @param {Printed[]} group */
function shared (group) {
  const [first] = group
  if (group.every(({ what }) => what === first.what)) return first.what
  const same = (/** @type {'local' | 'remote'} */ end) => group.every((one) => one[end] === first[end]) ? first[end] : undefined
  const [local, remote] = [same('local'), same('remote')]
  return first.noun + (first.side === undefined ? '' : `, ${first.side}`) + (remote === undefined ? '' : ` ${way(first)} ${remote}`) +
    (local === undefined ? '' : `, at ${local}`)
}

/** The ones of a group by what tells them apart. @param {Printed[]} group */
function different (group) {
  const remotes = count(group.map((one) => one.remote))
  return remotes.length < 2 ? [] : [`  ${group[0].side === 'server' ? 'from' : 'to'} ${list(remotes)}`]
}

/** @param {Printed} one */
function way ({ side }) {
  return side === 'server' ? 'of' : 'to'
}

/** @param {Array<string | undefined>} words @returns {string[]} each once, with how often where that is more */
function count (words) {
  const counts = new Map()
  for (const word of words) if (word !== undefined) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts].sort((a, b) => b[1] - a[1]).map(([word, times]) => times > 1 ? `${word} (${times} ×)` : word)
}

/** @param {string[]} words */
function list (words) {
  return words.slice(0, MOST).join(', ') + (words.length > MOST ? ` and ${words.length - MOST} more` : '')
}

/** @param {Printed[]} group */
function ages (group) {
  const range = rangeOf(group.map((one) => one.ageMs))
  if (range === undefined) return group[0].origin === 'early' || group[0].filtered ? 'age unknown' : undefined
  return group[0].state === 'closed' ? `made ${range} ago` : `${range} old`
}

/** @param {Printed[]} group */
function idle (group) {
  const [{ type }] = group
  const waiting = group.every((one) => !one.ran)
  const range = rangeOf(group.map((one) => one.idleMs))
  if (type === 'Timeout') return waiting ? undefined : `ran ${range} ago`
  if (range === undefined || /^(Immediate|WORKER|PROCESSWRAP|FILEHANDLE|DIRHANDLE)$/.test(type)) return undefined
  if (!/SERVERWRAP$/.test(type)) return `idle for ${range}`
  return waiting ? 'no connection yet' : `last connection ${range} ago`
}

/** @param {Printed[]} group @param {'bytesRead' | 'bytesWritten'} name @param {string} way */
function bytes (group, name, way) {
  const known = group.map((one) => one[name]).filter((value) => value !== undefined)
  if (known.length === 0) return undefined
  const sum = known.reduce((a, b) => a + b, 0)
  return `${sum} byte${sum === 1 ? '' : 's'} ${way}`
}

/** @param {Array<number | undefined>} times in ms @returns {string | undefined} */
function rangeOf (times) {
  const known = times.filter((time) => time !== undefined)
  if (known.length === 0) return undefined
  const [least, most] = [formatDuration(Math.min(...known)), formatDuration(Math.max(...known))]
  if (least === most) return most
  const [number, unit] = least.split(' ')
  return most.endsWith(` ${unit}`) ? `${number} to ${most}` : `${least} to ${most}`
}

/** @param {Printed} one */
function opened ({ type, origin, side, state, opened, enabled, filtered }) {
  const verb = /^(Timeout|Immediate|PROMISE|REQUEST|WORKER|PROCESSWRAP|MESSAGEPORT|unknown)$/.test(type) ? 'made' : 'opened'
  if (opened.length > 0) return [`  ${verb} by`, formatHops(opened)]
  if (origin === 'early' && !enabled) return [`  early: ${verb} while longstack is not enabled, nothing is known of who did it; node -r longstack/register enables it`]
  if (origin === 'early') return [`  early: ${verb} before longstack was enabled, nothing is known of who did it`]
  if (side === 'server' && origin === 'registered') return ['  accepted by a server from before longstack was enabled']
  if (filtered) return [`  ${verb} by: unknown, the filter leaves it out`]
  if (state === 'closed' && origin === 'unknown') return ['  not opened: nothing stands behind it yet']
  return [type === 'unknown' ? '  unknown: no async resource stands behind this object' : `  ${verb} by: unknown`]
}

/** @param {Printed[]} group */
function users (group) {
  const used = group.filter((one) => one.usedBy !== undefined)
  const [first] = group
  if (used.length === 0) return first.pooled && first.state !== 'closed' ? ['  used by no request now'] : []
  const requests = list(count(used.map((one) => one.usedBy?.request)))
  if (group.length > 1) return [`  used now by ${requests}${used.length < group.length ? `; ${group.length - used.length} by no request` : ''}`]
  const hops = first.usedBy?.hops ?? []
  if (hops.length === 0) return [`  used now by ${requests}`]
  return isOneStory(hops, first.opened) ? [`  used now by ${requests}, for which it was opened`] : [`  used now by ${requests}, made by`, formatHops(hops)]
}

/** Who wrote last, where nobody else is known to use it. @param {Printed[]} group */
function writer ([{ writtenBy, opened }, ...others]) {
  if (writtenBy === undefined || others.length > 0) return []
  const { at, agoMs, hops } = writtenBy
  const request = hops.find(({ type, label }) => /^HTTP(INCOMINGMESSAGE|2STREAM)$/.test(type) && / \//.test(label))
  const line = `  last written ${formatDuration(agoMs)} ago${at === undefined ? '' : ` at ${at}`}${request === undefined ? '' : `, for ${clean(request.label)}`}`
  return hops.length === 0 || isOneStory(hops, opened) ? [line] : [`${line}, by`, formatHops(hops)]
}

/** @param {PrintedHop[]} one @param {PrintedHop[]} other */
function isOneStory (one, other) {
  return JSON.stringify(one.map(({ lines }) => lines)) === JSON.stringify(other.map(({ lines }) => lines))
}

/** @param {Printed} one */
function through ({ through }) {
  return through.map(({ name, at }, i) => `  ${i === 0 ? 'its bytes go through' : 'then through'} ${name}${at === undefined ? '' : `, set ${at}`}`)
}

module.exports = { summary, report, printed }
