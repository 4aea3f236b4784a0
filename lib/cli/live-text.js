'use strict'

// Responses of running processes as text and as JSON, with all processes and threads combined.

const { nameOfThread } = require('../ask/threads')
const { groupsOf } = require('../format/handles')
const { copyHops, formatHops } = require('../format/hops')
const { formatPending, sentences } = require('../format/pending')
const { graphTexts } = require('../format/wait-graph')
const { placeOf, stoppedText } = require('../format/waits')
const { groupBy } = require('../group-by')
const { clean, formatDuration } = require('../text')

const MAX_REQUESTS = 20 // printed groups of requests
const MIN_LEAST_MS = 1000 // of an unknown age, worth a figure

/**
 * @typedef {import('../format/handles').Printed} Printed
 * @typedef {import('../handles/pending').PendingData} PendingData
 * @typedef {import('../handles/requests-in-flight').RequestInFlight} RequestInFlight
 * @typedef {import('../handles/requests-in-flight').RequestsInFlight} RequestsInFlight
 * @typedef {import('../ask/threads').Facts} Facts
 * @typedef {import('../../report/render/text-parts').Colours} Colours
 *
 * @typedef {object} ThreadAnswer
 * @property {Facts} facts
 * @property {Printed[]} open
 * @property {RequestsInFlight} [requests] undefined if not queried
 * @property {{ groups: PendingData[], noteCode: string | undefined }} [pending] undefined if not queried
 * @property {import('../handles/wait-graph').WaitGraph} [waitGraph] undefined if not queried
 *
 * @typedef {object} ProcessAnswer
 * @property {number} pid
 * @property {ThreadAnswer[]} threads
 * @property {string} [busy] long stack of the callback that blocked its event loop
 * @property {number} [busyMs]
 *
 * @typedef {object} Answer
 * @property {ProcessAnswer[]} processes
 * @property {import('../ask/processes').Refusal[]} refused
 * @property {Array<{ pid: number, program: string | undefined }>} others
 * @property {string | undefined} end address of the queried connections
 */

/**
 * Gives each handle the hops that were sent with the first handle of its group.
 * @param {any[]} [sent] see SentHandle in lib/ask/session.js
 * @returns {Printed[]}
 */
function withHops (sent = []) {
  /** by group @type {Map<number, Printed['opened']>} */
  const firsts = new Map()
  return sent.map(({ group, ...facts }) => {
    const { opened = firsts.get(group) ?? [] } = facts
    firsts.set(group, opened)
    return { ...facts, opened }
  })
}

/** @param {Answer} answer @param {Colours} colours @returns {string} */
function formatAnswer (answer, colours) {
  const { processes, refused, others, end } = answer
  const at = end === undefined ? '' : ` at ${end}`
  const threads = processes.flatMap((one) => one.threads)
  const open = openIn(answer)
  const title = open.length === 0 ? `Nothing is open${at}.` : colours.bold(`${open.length} open${at}`)
  return textOf([
    ...processes.map((one) => headOf(one, colours)),
    ...refused.map((refusal) => refusalText(refusal, colours)),
    ...others.map(({ pid, program }) =>
      `Process ${pid}${program ? ` (${clean(program)})` : ''} also uses ${end}; it is not a Node process.`),
    ...graphBlocks(threads, colours),
    ...requestBlocks(threads, colours),
    ...pendingBlocks(threads, colours),
    ...(threads.length === 0 ? [] : [title, ...groupsOf(open)])
  ])
}

/** Prints handles opened meanwhile and still open. @param {Answer} answer @param {Colours} colours */
function formatOpened (answer, colours) {
  const open = openIn(answer)
  const title = open.length === 0
    ? 'Nothing was opened that is still open.'
    : colours.bold(`${open.length} opened and still open`)
  const warnings = answer.refused.map((refusal) => refusalText(refusal, colours))
  return textOf([...warnings, title, ...groupsOf(open)])
}

/** @param {string[]} blocks */
const textOf = (blocks) => `${blocks.filter((block) => block !== '').join('\n\n')}\n`

/** Lists open handles, with their thread if there are several. @param {Answer} answer @returns {Printed[]} */
function openIn ({ processes }) {
  const threads = processes.flatMap(({ pid, threads }) => threads.map((thread) => ({ ...thread, pid })))
  if (threads.length === 1) return threads[0].open
  return threads.flatMap(({ pid, facts: { threadId }, open }) => {
    const where = nameOfThread(pid, threadId).toLowerCase()
    return open.map((handle) => ({ ...handle, where }))
  })
}

/** @param {Array<{ count: number }>} list */
const countOf = (list) => list.reduce((sum, { count }) => sum + count, 0)

/** @param {ThreadAnswer[]} threads @param {Colours} colours @returns {string[]} */
function graphBlocks (threads, colours) {
  const texts = threads.flatMap(({ waitGraph }) => waitGraph === undefined ? [] : graphTexts(waitGraph))
  return texts.length === 0 ? [] : [colours.bold('Who waits for whom'), ...texts]
}

/** @param {ThreadAnswer[]} threads @param {Colours} colours @returns {string[]} */
function requestBlocks (threads, colours) {
  const answers = threads.flatMap(({ requests }) => requests ?? [])
  const requests = answers.flatMap((answer) => answer.requests).sort((a, b) => ageOf(b) - ageOf(a))
  if (requests.length === 0) return []
  const groups = groupBy(requests, ({ request, waits, uses, stopped }) =>
    JSON.stringify([request, waits.map(placeOf), uses.map(({ what }) => what), stopped === undefined]))
  const count = countOf(answers)
  const more = groups.length - MAX_REQUESTS
  return [
    colours.bold(count === 1 ? '1 request in flight' : `${count} requests in flight`),
    ...groups.slice(0, MAX_REQUESTS).map(formatRequests),
    ...(more > 0 ? [`and ${more} others`] : [])
  ]
}

/** @param {RequestInFlight[]} group requests that wait for the same thing, oldest first */
function formatRequests (group) {
  const [first] = group
  const age = first.ageMs === undefined ? unknownAge(first) : formatDuration(first.ageMs)
  const lines = [group.length === 1
    ? `${clean(first.request)}, for ${age}`
    : `${group.length} \u00d7 ${clean(first.request)}, oldest ${age}`]
  if (first.answering) lines.push('  response headers are sent')
  for (const wait of first.waits) {
    lines.push(`  waits for ${wait.count > 1 ? `${wait.count} \u00d7 ` : ''}${placeOf(wait)}`)
  }
  for (const { what, sinceMs } of first.uses) {
    lines.push(`  uses ${clean(what)}${sinceMs === undefined ? '' : `, for ${formatDuration(sinceMs)}`}`)
  }
  if (first.waits.length === 0 && first.uses.length === 0) {
    const { stopped } = first
    lines.push(`  ${stopped === undefined ? 'what it waits for is unknown' : stoppedText(stopped)}`)
  }
  return first.hops.length === 0 ? lines.join('\n') : `${lines.join('\n')}\n${formatHops(first.hops)}`
}

/** @param {RequestInFlight} request with an unknown age */
const unknownAge = ({ leastMs = 0 }) =>
  leastMs < MIN_LEAST_MS ? 'age unknown' : `at least ${formatDuration(leastMs)}`

/** @param {RequestInFlight} request */
const ageOf = ({ ageMs }) => ageMs ?? Infinity

/** @param {ThreadAnswer[]} threads @param {Colours} colours @returns {string[]} */
function pendingBlocks (threads, colours) {
  const groups = mergePending(threads.flatMap(({ pending }) => pending?.groups ?? []))
  const codes = new Set(threads.map(({ pending }) => pending?.noteCode))
  const notes = codes.has('FILTER') ? [sentences.FILTER] : []
  const title = colours.bold('Pending awaits')
  return groups.length === 0 ? notes : [...notes, title, formatPending(groups)]
}

/**
 * Merges the waits of the same place in several threads.
 * @param {PendingData[]} waits
 * @returns {PendingData[]} most frequent first
 */
function mergePending (waits) {
  return groupBy(waits, ({ label, at: place }) => `${label} ${place}`).map((group) => ({
    ...group.reduce((a, b) => a.oldestMs >= b.oldestMs ? a : b),
    count: countOf(group),
    newestMs: Math.min(...group.map(({ newestMs }) => newestMs)),
    requests: groupBy(group.flatMap(({ requests }) => requests), ({ request }) => request)
      .map((same) => ({ request: same[0].request, count: countOf(same) })).sort((a, b) => b.count - a.count)
  })).sort((a, b) => b.count - a.count || b.oldestMs - a.oldestMs)
}

/** @param {import('../ask/processes').Refusal} refusal @param {Colours} colours */
function refusalText ({ sentence, stack, waits }, colours) {
  if (waits) return clean(sentence)
  const head = colours.yellow(clean(sentence))
  return stack === undefined ? head : `${head}\n${stack}`
}

/** @param {ProcessAnswer} answer @param {Colours} colours */
function headOf ({ pid, threads, busy, busyMs = 0 }, colours) {
  const lines = threads.length === 0 ? [] : [titleOf(pid, threads, colours)]
  if (busy === undefined) return lines.join('\n')
  const duration = formatDuration(busyMs)
  lines.push(colours.red(threads.length === 0
    ? `The event loop of process ${pid} has been blocked for at least ${duration}. It is running`
    : `Its event loop was blocked when inspected, for another ${duration}. It was running`))
  return `${lines.join('\n')}\n${busy}`
}

/**
 * @param {number} pid
 * @param {Array<{ facts: Facts }>} threads
 * @param {Colours} colours
 * @param {boolean} [hasHint]
 */
function titleOf (pid, [{ facts }, ...workers], colours, hasHint = true) {
  const { script, node, uptimeMs, tracing } = facts
  const words = [`Process ${pid}`, `node ${clean(script ?? '')}`.trim(), `Node ${node.slice(1)}`,
    `up ${formatDuration(uptimeMs)}`, tracing === 'off' ? 'not traced' : 'traced']
  const { length } = workers
  if (length > 0) words.push(length === 1 ? 'with 1 worker' : `with ${length} workers`)
  const hint = hasHint && tracing === 'off' ? `\nlongstack attach ${pid} starts tracing it.` : ''
  return `${colours.bold(words.join(' · '))}${hint}`
}

/** @param {Answer} answer @returns {object} */
function jsonAnswer ({ processes, refused, others }) {
  return {
    processes: processes.map(({ pid, threads, busy, busyMs }) => ({
      pid,
      ...(busy !== undefined && { blocked: { forMs: busyMs, stack: busy } }),
      threads: threads.map(({ facts, open, requests, pending, waitGraph }) =>
        ({
          ...facts,
          open: open.map(publicHandle),
          requests: requests?.requests.map(publicChain),
          pending: pending?.groups.map(publicChain),
          waitsFor: waitGraph
        }))
    })),
    refused: refused.map(({ pid, sentence, stack, waits }) => ({ pid, reason: sentence, stack, waits })),
    others
  }
}

/** Returns the public properties of a handle, as in trace.why. @param {Printed} handle */
function publicHandle (handle) {
  const {
    opened, usedBy, writtenBy, noun, ran, enabled, pooled, filtered, where, growth, ...facts
  } = handle
  return {
    ...facts,
    opened: copyHops(opened),
    usedBy: usedBy && { request: usedBy.request, chain: copyHops(usedBy.hops ?? []) },
    writtenBy: writtenBy &&
      { at: writtenBy.at, agoMs: writtenBy.agoMs, chain: copyHops(writtenBy.hops ?? []) },
    ...(growth !== undefined && { perMinute: growth.more * 60_000 / growth.elapsedMs })
  }
}

/** @param {{ hops: import('../stacks/chain').PrintedHop[] }} answer */
function publicChain ({ hops, ...others }) {
  return { ...others, chain: copyHops(hops) }
}

module.exports = { formatAnswer, formatOpened, jsonAnswer, titleOf, withHops }
