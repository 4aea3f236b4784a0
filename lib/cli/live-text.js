'use strict'

// Answers of running processes as text and as JSON: all processes and threads as one.

const { formatHops } = require('../format/hops')
const { groupsOf } = require('../format/handles')
const { clean, formatDuration } = require('../text')
const { pendingBlocks, requestBlocks } = require('./waits-text')

/**
 * @typedef {import('../format/handles').Printed} Printed
 * @typedef {import('../handles/pending').PendingData} PendingData
 * @typedef {import('../handles/requests-in-flight').RequestsInFlight} RequestsInFlight
 * @typedef {import('./asked-thread').Facts} Facts
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
 * @property {import('./asked').Refusal[]} refused
 * @property {Array<{ pid: number, program: string | undefined }>} others
 * @property {string | undefined} end that connections were asked for
 */

/**
 * Gives each handle the hops that were sent with the first of its group.
 * @param {any[]} sent see SentHandle in lib/live/questions.js
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

/** @param {import('./asked').Refusal} refusal @param {Colours} colours */
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
  const state = { full: 'traced', light: 'traced in light mode', off: 'not traced' }[tracing]
  const words = [`Process ${pid}`, `node ${clean(script ?? '')}`.trim(), `Node ${node.slice(1)}`,
    `up ${formatDuration(uptimeMs)}`, state]
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

module.exports = { formatAnswer, formatHops, formatOpened, jsonAnswer, titleOf, withHops }
