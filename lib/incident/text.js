'use strict'

// The screen of longstack PID: the process, the requests that it served, the findings and the next command.

const {
  counted, createContext, digits, grouped, lines, percent, rate, time, word
} = require('../../report/render/text-parts')
const { prose } = require('../../report/render/wrap')
const { titleOf: titleOfBoxes } = require('../cli/from-box')
const { titleOf } = require('../cli/live-text')

const MAX_FINDINGS = 8
const STACK_LINES = 8
const MAX_SENTENCE_CHARS = 500
const MEGABYTE = 1e6
const LABEL_COLUMNS = 9
const MIN_REQUESTS = 10 // of a route, as in the report's verdict
const MIN_SLOW_MS = 100 // shorter is not slow
const MAX_FEW = 4 // routes
const ASK_TEXT = '--seconds 10 watches the process itself, which knows more than its box.'

/**
 * @typedef {import('./observation').Observation} Observation
 * @typedef {import('./findings').Finding} Finding
 * @typedef {import('../../report/render/text-parts').TextOptions} TextOptions
 */

/**
 * @param {Observation} observation
 * @param {Finding[]} findings
 * @param {TextOptions} options
 * @returns {string}
 */
function incidentText (observation, findings, options) {
  const context = createContext([], options)
  const { colours, paragraph } = context
  const titles = observation.boxes.length > 0
    ? [...paragraph(titleOfBoxes(observation.boxes)), '']
    : [...observation.threads].map(([pid, threads]) => titleOf(pid, threads, colours, false))
  const others = observation.refused.filter(({ stack }) => stack === undefined)
  const blocks = [
    [...titles, ...figureLines(observation, context)],
    others.flatMap(({ sentence }) => paragraph(colours.yellow(word(sentence, MAX_SENTENCE_CHARS)))),
    findings.slice(0, MAX_FINDINGS).flatMap((finding) => findingLines(finding, context)),
    [lastLine(observation, findings, context)]
  ]
  return `${blocks.filter((block) => block.length > 0).map((block) => block.join('\n')).join('\n\n')}\n`
}

/** @param {Observation} observation @param {import('../../report/render/text-parts').Context} context */
function figureLines (observation, { paragraph }) {
  const { frame, lateMs, loads, ms } = observation
  if (observation.boxes.length > 0) return paragraph(prose(recordedText(observation)))
  if (frame.ms === 0) return []
  const { count, perSecond, p50Ms, p99Ms, maxMs, errors, lost } = frame.total
  const parts = [`${requestsText(count)} in ${time(ms)}`]
  if (count > 0) {
    parts[0] += `: ${rate(perSecond)}, p50 ${time(p50Ms)}, p99 ${time(p99Ms)}, max ${time(maxMs)}`
  }
  if (errors > 0) parts.push(`${grouped(errors)} with 5xx`)
  if (lost > 0) parts.push(`${grouped(lost)} lost`)
  if (frame.inFlight > 0) parts.push(`${grouped(frame.inFlight)} in flight`)
  const cpu = loads.reduce((sum, { processShare }) => sum + processShare, 0)
  const rss = frame.threads.reduce((sum, thread) => sum + (thread.rss ?? 0), 0)
  const load = `event loop ${percent(loads[0]?.share ?? 0)} busy, up to ${time(lateMs)} late; ` +
    `CPU ${percent(cpu)}, RSS ${digits(rss / MEGABYTE)} MB, ${counted(frame.handleCount, 'handle')} open`
  return [parts.join('; '), load].flatMap((text) => paragraph(prose(text)))
}

/** @param {Observation} observation from boxes @returns {string} the requests in them */
function recordedText ({ ms, total, open }) {
  if (ms === 0) return 'no requests'
  const speed = total === 0 ? '' : `: ${rate(total / ms * 1000)}`
  return `${requestsText(total)} in ${time(ms)}${speed}; ${grouped(open)} in flight`
}

/** @param {number} count */
const requestsText = (count) => count === 0 ? 'no requests' : counted(count, 'request')

/** @param {Finding} finding @param {import('../../report/render/text-parts').Context} context */
function findingLines ({ kind, sentence, stack }, { colours, paragraph }) {
  const label = colours.red(kind) + ' '.repeat(LABEL_COLUMNS - kind.length)
  const head = paragraph(prose(word(sentence, MAX_SENTENCE_CHARS)), label)
  const isShown = kind === 'blocked' && stack !== undefined
  return isShown ? [...head, ...lines(stack, STACK_LINES, '')] : head
}

/**
 * @param {Observation} observation
 * @param {Finding[]} findings
 * @param {import('../../report/render/text-parts').Context} context
 */
function lastLine (observation, findings, { colours, paragraph }) {
  const { frame, ms, hasEnded, isBehind, isInterrupted, threads, unsentMs } = observation
  const [worst] = findings
  const more = []
  const hidden = findings.length - MAX_FINDINGS
  if (hidden > 0) more.push(`${counted(hidden, 'more finding')}: --json prints all.`)
  const who = threads.size === 1 ? 'The process' : 'All processes'
  if (hasEnded) more.push(`${who} ended after ${time(ms)}.`)
  if (isInterrupted) more.push(`Interrupted after ${time(ms)}.`)
  if (unsentMs > 0) more.push(`Data of ${time(unsentMs)} was too much to send.`)
  if (isBehind) more.push('This command could not keep up, so some requests are missing.')
  if (worst?.explains === false) more.push('No finding explains that the limit was exceeded.')
  if (worst === undefined && observation.boxes.length > 0) more.push(ASK_TEXT)
  const few = worst === undefined ? fewOf(frame.routes) : []
  if (few.length > 0) more.push(`Too few requests to judge: ${few.join(', ')}.`)
  const end = worst === undefined
    ? `${colours.bold('nothing found')}${ms > 0 ? ` in ${time(ms)}` : ''}, ${requestsText(observation.total)}`
    : `${colours.bold('next:')} ${worst.next}`
  return [...more.flatMap((text) => paragraph(text)), end].join('\n')
}

/**
 * Names slow routes that had fewer requests than the verdict needs.
 * @param {Array<{ name: string, count: number, maxMs: number }>} routes
 */
function fewOf (routes) {
  return routes.filter(({ count, maxMs }) => count > 0 && count < MIN_REQUESTS && maxMs >= MIN_SLOW_MS)
    .slice(0, MAX_FEW).map(({ name, count }) => `${grouped(count)} of ${word(name)}`)
}

/** @param {Observation} observation from boxes @returns {object} */
function recorded ({ ms, total, open, report }) {
  const routes = report?.routes.filter(({ kind }) => kind === 'SERVER')
  return { count: total, perSecond: ms === 0 ? 0 : total / ms * 1000, inFlight: open, routes }
}

/** @param {Observation} observation @param {Finding[]} findings @returns {object} */
function incidentJson (observation, findings) {
  const {
    boxes, frame, inFlight, queues, refused, blocked, files, hasEnded, isInterrupted, report, threads
  } = observation
  const figures = { ...frame.total, inFlight: frame.inFlight, routes: frame.routes }
  const [worst] = findings
  return {
    processes: [...threads].map(([pid, own]) => ({ pid, threads: own.map(({ facts }) => facts) })),
    ms: observation.ms,
    ended: hasEnded,
    interrupted: isInterrupted,
    requests: boxes.length > 0 ? recorded(observation) : figures,
    findings,
    next: worst?.next,
    inFlight: inFlight.map(({ hops, ...request }) => request),
    queues,
    waitsFor: observation.graphs,
    blocked,
    refused,
    files,
    boxes,
    verdict: report?.verdict ?? [],
    open: boxes.length > 0 ? report?.open : undefined,
    failures: report?.failures ?? []
  }
}

module.exports = { incidentJson, incidentText }
