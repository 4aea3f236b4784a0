'use strict'

// Answers of running processes as text and as JSON: all processes and threads as one.

const { groupsOf } = require('../format/handles')
const { formatHops } = require('../format/hops')
const { formatPending, sentences } = require('../format/pending')
const { clean, formatDuration, shortFrame } = require('../text')

const MAX_REQUESTS = 20 // groups of requests that are printed

/**
 * @typedef {import('../format/handles').Printed} Printed
 * @typedef {import('../handles/pending').PendingData} PendingData
 * @typedef {import('../handles/requests-in-flight').RequestInFlight} RequestInFlight
 * @typedef {import('../handles/requests-in-flight').RequestsInFlight} RequestsInFlight
 * @typedef {import('../ask/thread').Facts} Facts
 * @typedef {import('../../report/render/text-parts').Colours} Colours
 *
 * @typedef {object} ThreadAnswer
 * @property {Facts} facts
 * @property {Printed[]} open
 * @property {RequestsInFlight} [requests] undefined: not asked
 * @property {{ groups: PendingData[], noteCode: string | undefined }} [pending] undefined: not asked
 *
 * @typedef {object} ProcessAnswer
 * @property {number} pid
 * @property {ThreadAnswer[]} threads
 * @property {string} [busy] the long stack of what its event loop was busy with
 * @property {number} [busyMs]
 *
 * @typedef {object} Answer
 * @property {ProcessAnswer[]} processes
 * @property {import('../ask/processes').Refusal[]} refused
 * @property {Array<{ pid: number, program: string | undefined }>} others
 * @property {string | undefined} end that connections were asked for
 */

/**
 * Gives each handle the hops that were sent with the first of its group.
 * @param {any[]} sent see SentHandle in lib/ask/questions.js
 * @returns {Printed[]}
 */
function withHops (sent) {
  /** by group @type {Map<number, any>} */
  const firsts = new Map()
  return sent.map((handle) => {
    const { group, ...facts } = handle
    const first = firsts.get(group)
    if (first === undefined) firsts.set(group, handle)
    return { ...facts, opened: facts.opened ?? first.opened }
  })
}

/** @param {Answer} answer @param {Colours} colours @returns {string} */
function formatAnswer ({ processes, refused, others, end }, colours) {
  const blocks = processes.map((one) => headOf(one, colours))
  blocks.push(...refused.map((refusal) => refusalText(refusal, colours)))
  for (const { pid, program } of others) {
    const name = program === undefined ? '' : ` (${clean(program)})`
    blocks.push(`Process ${pid}${name} is at ${end} as well; it is not of Node.`)
  }
  const threads = processes.flatMap(({ pid, threads }) => threads.map((thread) => ({ ...thread, pid })))
  if (threads.length > 0) blocks.push(...bodyOf(threads, end, colours))
  return `${blocks.filter((block) => block !== '').join('\n\n')}\n`
}

/**
 * @param {Array<ThreadAnswer & { pid: number }>} threads
 * @param {string | undefined} end
 * @param {Colours} colours
 */
function bodyOf (threads, end, colours) {
  const isOne = threads.length === 1
  const open = threads.flatMap((thread) =>
    thread.open.map((handle) => isOne ? handle : { ...handle, where: nameOf(thread) }))
  const at = end === undefined ? '' : ` at ${end}`
  const title = open.length === 0 ? `Nothing is open${at}.` : colours.bold(`${open.length} open${at}`)
  return [...requestBlocks(threads, colours), ...pendingBlocks(threads, colours), title, ...groupsOf(open)]
}

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

/** Prints what was opened in a while and is open. @param {Answer} answer @param {Colours} colours */
function formatOpened ({ processes, refused }, colours) {
  const threads = processes.flatMap(({ pid, threads }) => threads.map((thread) => ({ ...thread, pid })))
  const [title, ...groups] = bodyOf(threads, undefined, colours)
  const count = threads.reduce((sum, { open }) => sum + open.length, 0)
  const none = 'Nothing was opened that is still open.'
  const head = count === 0 ? none : title.replace(' open', ' opened and still open')
  const warnings = refused.map((refusal) => refusalText(refusal, colours))
  return `${[...warnings, head, ...groups].join('\n\n')}\n`
}

/** @param {import('../ask/processes').Refusal} refusal @param {Colours} colours */
function refusalText ({ sentence, stack }, colours) {
  const head = colours.yellow(clean(sentence))
  return stack === undefined ? head : `${head}\n${stack}`
}

/** @param {{ pid: number, facts: Facts }} thread */
function nameOf ({ pid, facts: { threadId } }) {
  return threadId === 0 ? `process ${pid}` : `thread ${threadId} of process ${pid}`
}

/** @param {ProcessAnswer} answer @param {Colours} colours */
function headOf ({ pid, threads, busy, busyMs = 0 }, colours) {
  const lines = threads.length === 0 ? [] : [titleOf(pid, threads, colours)]
  if (busy === undefined) return lines.join('\n')
  const duration = formatDuration(busyMs)
  lines.push(colours.red(threads.length === 0
    ? `The event loop of process ${pid} is blocked, for ${duration} at least. It runs`
    : `Its event loop was blocked when it was asked, for ${duration} more. It ran`))
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
  const hint = hasHint && tracing === 'off' ? `\nlongstack attach ${pid} traces it from then on.` : ''
  return `${colours.bold(words.join(' · '))}${hint}`
}

/** @param {Answer} answer @returns {object} */
function jsonAnswer ({ processes, refused, others }) {
  return {
    processes: processes.map(({ pid, threads, busy, busyMs }) => ({
      pid,
      ...(busy !== undefined && { blocked: { forMs: busyMs, stack: busy } }),
      threads: threads.map(({ facts, open, requests, pending }) =>
        ({
          ...facts,
          open: open.map(publicHandle),
          requests: requests?.requests.map(publicChain),
          pending: pending?.groups.map(publicChain)
        }))
    })),
    refused: refused.map(({ pid, sentence, stack }) => ({ pid, reason: sentence, stack })),
    others
  }
}

/** Returns the properties that trace.why has. @param {Printed} handle */
function publicHandle (handle) {
  const {
    opened, usedBy, writtenBy, noun, ran, enabled, pooled, filtered, where, growth, ...facts
  } = handle
  return {
    ...facts,
    opened: hopsOf(opened),
    usedBy: usedBy && { request: usedBy.request, chain: hopsOf(usedBy.hops ?? []) },
    writtenBy: writtenBy &&
      { at: writtenBy.at, agoMs: writtenBy.agoMs, chain: hopsOf(writtenBy.hops ?? []) },
    ...(growth !== undefined && { perMinute: growth.more * 60_000 / growth.elapsedMs })
  }
}

/** @param {{ hops: import('../stacks/chain').PrintedHop[] }} answer */
function publicChain ({ hops, ...others }) {
  return { ...others, chain: hopsOf(hops) }
}

/** @param {import('../stacks/chain').PrintedHop[]} hops */
function hopsOf (hops) {
  return hops.map(({ lines, short, isFolded, isBehindRequest, ...hop }) => hop)
}

module.exports = { formatAnswer, formatOpened, jsonAnswer, titleOf, withHops }
