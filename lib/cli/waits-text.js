'use strict'

// Requests in flight, and what is awaited, of several threads, as text.

const { formatHops } = require('../format/hops')
const { formatPending, sentences } = require('../format/pending')
const { clean, formatDuration, shortFrame } = require('../text')

/**
 * @typedef {import('./live-text').ThreadAnswer} ThreadAnswer
 * @typedef {import('../handles/pending').PendingData} PendingData
 * @typedef {import('../handles/requests-in-flight').RequestInFlight} RequestInFlight
 * @typedef {import('../../report/render/text-parts').Colours} Colours
 */

const MAX_REQUESTS = 20 // groups of requests that are printed

/** @param {ThreadAnswer[]} threads @param {Colours} colours @returns {string[]} */
function requestBlocks (threads, colours) {
  const requests = threads.flatMap((thread) => thread.requests?.requests ?? [])
  const count = threads.reduce((sum, thread) => sum + (thread.requests?.count ?? 0), 0)
  if (requests.length === 0) return []
  /** @type {Map<string, RequestInFlight[]>} */
  const groups = new Map()
  for (const request of requests) {
    const uses = request.uses.map(({ what }) => what)
    const key = JSON.stringify([request.request, request.waits.map(placeOf), uses])
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [request])
    else group.push(request)
  }
  const blocks = [...groups.values()].map((group) => group.sort((a, b) => ageOf(b) - ageOf(a)))
    .sort((a, b) => ageOf(b[0]) - ageOf(a[0]))
  const more = blocks.length - MAX_REQUESTS
  return [
    colours.bold(count === 1 ? '1 request in flight' : `${count} requests in flight`),
    ...blocks.slice(0, MAX_REQUESTS).map(formatRequests),
    ...(more > 0 ? [`and ${more} others`] : [])
  ]
}

/** @param {RequestInFlight[]} group that wait for the same, the oldest first */
function formatRequests (group) {
  const [first] = group
  const age = first.ageMs === undefined ? 'age unknown' : formatDuration(first.ageMs)
  const lines = [group.length === 1
    ? `${clean(first.request)}, for ${age}`
    : `${group.length} \u00d7 ${clean(first.request)}, oldest ${age}`]
  if (first.answering) lines.push('  the head of its answer is sent')
  for (const wait of first.waits) {
    lines.push(`  waits for ${wait.count > 1 ? `${wait.count} \u00d7 ` : ''}${placeOf(wait)}`)
  }
  for (const { what, sinceMs } of first.uses) {
    lines.push(`  uses ${clean(what)}${sinceMs === undefined ? '' : `, for ${formatDuration(sinceMs)}`}`)
  }
  if (first.waits.length === 0 && first.uses.length === 0) lines.push('  what it waits for is not known')
  return first.hops.length === 0 ? lines.join('\n') : `${lines.join('\n')}\n${formatHops(first.hops)}`
}

/** @param {{ at: string | undefined, label: string }} wait */
function placeOf ({ at: place, label }) {
  return place === undefined ? clean(label) : `${clean(label)} at ${clean(shortFrame(place))}`
}

/** @param {RequestInFlight} request */
const ageOf = ({ ageMs }) => ageMs ?? Infinity

/** @param {ThreadAnswer[]} threads @param {Colours} colours @returns {string[]} */
function pendingBlocks (threads, colours) {
  const groups = mergePending(threads.flatMap(({ pending }) => pending?.groups ?? []))
  const codes = new Set(threads.map(({ pending }) => pending?.noteCode))
  const notes = [...codes].filter((code) => code !== undefined && code !== 'DISABLED')
  const sentencesOf = notes.map((code) => sentences[/** @type {keyof typeof sentences} */ (code)])
  const title = colours.bold('Awaited and not settled')
  return [...sentencesOf, ...(groups.length > 0 ? [title, formatPending(groups)] : [])]
}

/**
 * Joins the waits of equal places in several threads.
 * @param {PendingData[]} groups
 * @returns {PendingData[]} the most frequent first
 */
function mergePending (groups) {
  /** @type {Map<string, PendingData>} */
  const merged = new Map()
  for (const group of groups) {
    const key = `${group.label} ${group.at}`
    const present = merged.get(key)
    if (present === undefined) {
      merged.set(key, group)
      continue
    }
    const oldest = present.oldestMs >= group.oldestMs ? present : group
    merged.set(key, {
      ...oldest,
      count: present.count + group.count,
      newestMs: Math.min(present.newestMs, group.newestMs),
      requests: sumRequests([...present.requests, ...group.requests])
    })
  }
  return [...merged.values()].sort((a, b) => b.count - a.count || b.oldestMs - a.oldestMs)
}

/** @param {PendingData['requests']} requests @returns {PendingData['requests']} each once */
function sumRequests (requests) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const { request, count } of requests) counts.set(request, (counts.get(request) ?? 0) + count)
  return [...counts].map(([request, count]) => ({ request, count })).sort((a, b) => b.count - a.count)
}

module.exports = { pendingBlocks, requestBlocks }
