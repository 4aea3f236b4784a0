'use strict'

// Formats the wait graph as text: one sentence per cycle and per convoy. Data in, string out.

const { clean, formatDuration, shortFrame } = require('../text')

const MAX_NAMES = 4 // of requests in a sentence

/**
 * @typedef {import('../handles/wait-graph').Convoy} Convoy
 * @typedef {import('../handles/wait-graph').Cycle} Cycle
 * @typedef {import('../handles/flows').Known} Known
 * @typedef {import('../handles/wait-graph').Member} Member
 * @typedef {import('../handles/wait-graph').WaitGraph} WaitGraph
 */

/** @param {string} frame */
const place = (frame) => clean(shortFrame(frame))

/** Describes requests that wait for each other, in one sentence. @param {Cycle} cycle @returns {string} */
function cycleSentence ({ by, members, behind }) {
  const age = formatDuration(Math.max(...members.map(({ oldestMs }) => oldestMs)))
  const more = behind === 1 ? '; 1 more request waits behind' : `; ${behind} more requests wait behind`
  const certainty = by === 'name' ? 'probably a deadlock' : 'deadlock'
  return `${certainty}: ${membersText(members)}; for ${age}${behind === 0 ? '' : more}`
}

/** @param {Member[]} members */
function membersText (members) {
  const [first, second] = members
  if (members.length === 1) {
    return `${holdsAndWaits(first)}, for what only ${first.count === 1 ? 'it' : 'they'} can release`
  }
  if (members.length > 2) {
    const others = members.length > MAX_NAMES ? [`${members.length - MAX_NAMES} others likewise`] : []
    const list = [...members.slice(0, MAX_NAMES).map(holdsAndWaits), ...others].join('; ')
    return `${list}: each for what another one holds`
  }
  const waits = `${second.count === 1 ? 'waits' : 'wait'} at ${waitPlace(second)}`
  const others = `${named(second)} took${placeOf(second)}, which ${waits}, for what ${named(first)} took`
  return `${holdsAndWaits(first)}, for what ${others}`
}

/** @param {Member} member */
function holdsAndWaits (member) {
  const [holds, took, waits] = member.count === 1
    ? ['holds', 'it took', 'waits']
    : ['hold', 'each took', 'wait']
  return `${named(member)} ${holds} what ${took}${placeOf(member)} and ${waits} at ${waitPlace(member)}`
}

/** @param {{ count: number, request: string }} member */
const named = ({ count, request }) => count === 1 ? clean(request) : `${count} \u00d7 ${clean(request)}`

/** @param {{ took: string | undefined }} holder */
const placeOf = ({ took }) => took === undefined ? '' : ` at ${place(took)}`

/** @param {{ at: string, caller: string | undefined }} wait */
function waitPlace ({ at: called, caller }) {
  return caller === undefined ? place(called) : `${place(caller)}, in ${place(called)}`
}

/** Describes requests that wait for one request, in one sentence. @param {Convoy} convoy @returns {string} */
function convoySentence ({ count, requests, at: called, oldestMs, for: holder }) {
  const [holds, waits] = holder.count === 1 ? ['holds', 'waits'] : ['hold', 'wait']
  const taken = holder.took === undefined ? 'it' : `what it took at ${place(holder.took)}`
  const uses = holder.uses === undefined ? '' : ` for ${clean(holder.uses)}`
  const own = holder.at === undefined ? '' : ` and ${waits}${uses} at ${place(holder.at)}`
  const where = `at ${place(called)}, the oldest for ${formatDuration(oldestMs)}`
  const held = `${holds} ${taken} for ${formatDuration(holder.heldMs)}`
  return `${namesOf(count, requests)} wait ${where}, for ${named(holder)}, which ${held}${own}`
}

/**
 * Describes a recorded convoy. The holder is not recorded, only the request that let the first waiter go on.
 * @param {{ at: string, count: number, requests: Convoy['requests'], longestMs: number, for: string,
 *   times: number }} convoy
 * @returns {string}
 */
function recordedSentence ({ at: called, count, requests, longestMs, times, for: holder }) {
  const often = times === 1 ? '' : `; ${times} times`
  return `${namesOf(count, requests)} waited at once at ${place(called)}, the longest for ` +
    `${formatDuration(longestMs)}, the first of them for ${clean(holder)}${often}`
}

/** @param {number} count of all @param {Convoy['requests']} requests */
function namesOf (count, requests) {
  const more = requests.length > MAX_NAMES ? ['\u2026'] : []
  const names = [...requests.slice(0, MAX_NAMES).map(named), ...more].join(', ')
  return requests.length === 1 ? names : `${count} requests (${names})`
}

/** Describes all cycles and convoys, with evidence. @param {WaitGraph} graph @returns {string[]} */
function graphTexts ({ cycles, convoys }) {
  return [
    ...cycles.map((cycle) => `${cycleSentence(cycle)}\n  ${knownBy(cycle, OR_LOST)}`),
    ...convoys.map((convoy) => `${convoySentence(convoy)}\n  ${knownBy(convoy)}`)
  ]
}

/** Other possible meaning of a guessed cycle. */
const OR_LOST = '; or what they wait for was never released'

/** Describes the evidence for a result. @param {Known} known @param {string} [otherwise] @returns {string} */
function knownBy ({ by, seen }, otherwise = '') {
  if (by === 'promise') return 'evidence: the promises they await'
  if (by === 'settled') {
    const ended = seen === 1 ? '1 such wait' : `${seen} such waits`
    return `evidence: ${ended} ended by requests that had entered there, none by others`
  }
  return `a guess: no other request in flight had entered there before${otherwise}`
}

module.exports = { convoySentence, cycleSentence, graphTexts, knownBy, recordedSentence }
