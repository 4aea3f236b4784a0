'use strict'

// What is certainly at fault, by rules with names. A rule that is not sure returns nothing: each states where
// it speaks, and why its limits are what they are. What the verdict says of a finding, and advises, is here.

const { pool } = require('./pool')
const { blocker, delayer, dependency, interval } = require('./rules')
const { sequence } = require('./sequence')
const { formatDuration, shortFrame } = require('../../../lib/text')

const MIN_SHARE_OF_ALL = 0.01 // of the time of all requests
const MAX_FINDINGS = 20
const MAX_NAME_CHARS = 100

/**
 * @typedef {object} Fault what a rule found
 * @property {'blocker' | 'pool' | 'sequence' | 'dependency' | 'interval' | 'delayer'} rule
 * @property {string} [route]
 * @property {string} [at]
 * @property {number} lostMs time of requests that it explains
 * @property {number} share from 0 to 1, of the time of the requests of that route, or of all
 * @property {Record<string, number | string | undefined>} figures
 * @property {Record<string, unknown>} [details] what its sentence says besides
 *
 * @typedef {Omit<Fault, 'details' | 'figures'>
 *   & { figures: Record<string, number | string>, sentence: string,
 *   advice: string }} Finding
 *
 * @typedef {object} Evidence
 * @property {import('../model').Model} model
 * @property {Array<{ name: string, facts: import('./facts').RouteFacts }>} routes of requests
 * @property {number} totalMs of all requests
 * @property {import('./facts').IntervalFacts} intervals
 */

/**
 * @param {import('../model').Model} model complete but for the verdict
 * @param {Evidence['routes']} routes
 * @param {Evidence['intervals']} intervals
 * @returns {Finding[]} worst first; empty if no fault is certain
 */
function verdictOf (model, routes, intervals) {
  const totalMs = routes.reduce((sum, { facts }) => sum + facts.totalMs, 0)
  const evidence = { model, routes, totalMs, intervals }
  /** @type {Fault[]} */
  const faults = []
  for (const rule of [blocker, pool, sequence, dependency, delayer, interval]) {
    faults.push(...rule(evidence, faults))
  }
  return faults
    .filter(({ rule, lostMs }) => rule === 'interval' || lostMs >= totalMs * MIN_SHARE_OF_ALL)
    .sort((a, b) => b.lostMs - a.lostMs)
    .slice(0, MAX_FINDINGS)
    .map(findingOf)
}

/** @param {number} share from 0 to 1 */
const percent = (share) => `${Math.round(share * 100)} %`

/** Formats a duration, below 10 ms with a decimal. @param {number} ms */
const time = (ms) => ms < 9.95 ? `${ms.toFixed(1)} ms` : formatDuration(ms)

/** @param {number} count @param {string} noun */
const counted = (count, noun) => `${count} ${noun}${count === 1 ? '' : 's'}`

/** @param {string} name of a route or function, from a file */
const short = (name) => name.length > MAX_NAME_CHARS ? `${name.slice(0, MAX_NAME_CHARS)}…` : name

/** Formats a frame as function, file and line. @param {string} frame */
const place = (frame) => short(shortFrame(frame))

/** Formats a mean count: an integer where it is close to one. @param {number} mean */
function meanText (mean) {
  const rounded = Math.round(mean)
  return Math.abs(mean - rounded) < 0.05 || mean >= 20 ? String(rounded) : mean.toFixed(1)
}

/** By rule: sentence and advice. @type {Record<Fault['rule'], (fault: any) => [string, string]>} */
const sentences = {
  blocker ({ route, at: frame, share, figures, details: { owner } }) {
    const { times, totalMs, worstMs, delayedMs, delayedRequests } = figures
    const others = delayedRequests > 0 ? `; others waited ${time(delayedMs)} for it` : ''
    const part = `: ${percent(share)} of the time of all requests`
    const end = route === undefined ? others + part : part + others
    return [
      `${place(frame)}${owner === undefined ? '' : ` in ${short(owner)}`} blocked the event loop ` +
        `${counted(times, 'time')} for ${time(totalMs)} in total, ${time(worstMs)} at most${end}.`,
      'do it in slices, or in a worker thread'
    ]
  },
  delayer: ({ route, share, figures: { runMs, othersRunMs } }) => [
    `${short(route)} runs for ${time(runMs)} a request, the others for ${time(othersRunMs)}, and delays ` +
      `them: ${percent(share)} of their time.`,
    'record with --blocked 20 to find the function; do its work in slices, or in a worker thread'
  ],
  dependency: ({ route, share, figures: { peer, answerMs } }) => [
    `${short(route)} waits ${percent(share)} of its time for ${short(peer)}, which takes ${time(answerMs)} ` +
      'to answer.',
    'look at that service, keep its answers, or do without it'
  ],
  interval ({ route, at: frame, figures: { open, requests }, details: { label } }) {
    const site = frame === undefined ? '' : `, set at ${place(frame)}`
    return [
      `${short(route)} leaves ${label === undefined ? 'an interval' : short(label)} behind with each ` +
        `request${site}: ${open} are open after ${counted(requests, 'request')}.`,
      'clear it when the response is closed'
    ]
  },
  pool ({ route, at: frame, share, figures, details: { isQueue, routes } }) {
    const { peer, connections, queries, waitShare, atATime } = figures
    const sizes = []
    if (atATime !== undefined) sizes.push(`at most ${atATime} at a time`)
    if (connections !== undefined) sizes.push(counted(connections, 'connection'))
    if (!isQueue) {
      const noun = meanText(queries) === '1' ? 'query' : 'queries'
      sizes.push(`${routes > 1 ? 'up to ' : ''}${meanText(queries)} ${noun} a request`,
        `${percent(waitShare)} of the wait for ${short(peer)} is for a free one`)
    }
    const isAlone = route !== undefined
    return [
      `${isAlone ? `${short(route)} waits` : `${routes} routes wait`} for ` +
        `${atATime === 1 ? 'a lock' : 'a turn'}${frame === undefined ? '' : ` at ${place(frame)}`} ` +
        `${percent(share)} of ${isAlone ? 'its' : 'their'} time` +
        `${sizes.length === 0 ? '' : ': '}${sizes.join(', ')}.`,
      isQueue
        ? 'let more run at a time, or let each hold its place for a shorter time'
        : 'use more connections if the other side can take them, or fewer queries a request'
    ]
  },
  sequence ({ route, at: frame, share, figures: { steps, requestMs, places }, details: { loop } }) {
    const sites = `at ${places === 1 ? '' : `${places} places of `}${place(frame)}`
    const repeated = loop === undefined
      ? ''
      : `: ${Math.round(loop.steps)} × ${short(loop.frame.replace(/ \(.*$/, ''))} in each request`
    return [
      `${short(route)} waits for ${Math.round(steps)} answers one after another ${sites}${repeated}, for ` +
        `${time(requestMs)} a request; if they do not depend on each other, all at once would save ` +
        `${percent(share)} of its time.`,
      'await them with Promise.all, or ask for all of them once'
    ]
  }
}

/** @param {Fault} fault @returns {Finding} */
function findingOf (fault) {
  const { details, figures, ...facts } = fault
  const [sentence, advice] = sentences[fault.rule](fault)
  const rounded = Object.entries(figures).filter(([, figure]) => figure !== undefined)
    .map(([name, figure]) => [name, typeof figure === 'number' ? Math.round(figure * 1000) / 1000 : figure])
  return { ...facts, sentence, advice, figures: Object.fromEntries(rounded) }
}

module.exports = { verdictOf }
