'use strict'

// Plans the measurements on each Node: those named on the command line, or the bars, a fixed selection that
// takes some ten minutes on Node 20, 22, 24 and 26.

const path = require('node:path')
const { nearest } = require('../lib/errors')
const { UsageError, versionOf } = require('./options')
const { groupsOf } = require('./rounds')
const { subjects } = require('./subjects')
const { workloads } = require('./workloads')

/**
 * @typedef {object} Task
 * @property {string} workload
 * @property {string[]} subjects without bare
 *
 * @typedef {object} Plan for one Node
 * @property {string} file of Node
 * @property {string} version
 * @property {Task[]} tasks
 *
 * @typedef {object} Scale
 * @property {number} rounds
 * @property {number} ms per measurement
 * @property {number} warmShare of the workload's warm-up
 * @property {number} turns of short processes
 * @property {number} hops of the memory cases
 */

const FULL = ['longstack-full']
const WITH_SPANS = ['longstack-full', 'longstack-spans']
const ALL_BARS = [...WITH_SPANS, 'opentelemetry']
const OVERHEAD_MS = 2_500 // per group: starts, memory, proofs

/** @type {Record<string, string[]>} */
const RECENT_BARS = {
  real: ALL_BARS,
  hello: ALL_BARS,
  awaits: FULL,
  'first-error': FULL,
  'start-up': FULL
}
/** @type {Record<string, string[]>} */
const MAIN_BARS = { ...RECENT_BARS, fetch: FULL, errors: FULL }
/** @type {Record<string, string[]>} */
const OLDER_BARS = {
  real: WITH_SPANS,
  awaits: FULL,
  'first-error': FULL,
  'start-up': FULL
}
/** @type {Record<string, Record<string, string[]>>} by major version of Node */
const BARS = { 20: OLDER_BARS, 22: OLDER_BARS, 24: MAIN_BARS, 26: RECENT_BARS }

/**
 * Selects the names listed in an option.
 * @param {string | undefined} value separated by commas
 * @param {string[]} candidates
 * @param {string} noun used in messages
 * @returns {string[]} all candidates if there is no value
 */
function selectNames (value, candidates, noun) {
  if (value === undefined) return candidates
  const names = value.split(',').map((name) => name.trim()).filter(Boolean)
  if (names.length === 0) throw new UsageError(`No ${noun} is named.`)
  for (const name of names) {
    if (candidates.includes(name)) continue
    const hint = nearest(name, candidates)
    const advice = hint === undefined
      ? `Known are ${candidates.join(', ')}.`
      : `Did you mean ${JSON.stringify(hint)}?`
    throw new UsageError(`Unknown ${noun} ${JSON.stringify(name)}. ${advice}`)
  }
  return candidates.filter((name) => names.includes(name))
}

/** @param {string} version @param {{ names: string[], works: string[] }} wanted @returns {Task[]} */
function barsOf (version, { names, works }) {
  const bars = BARS[parseInt(version)]
  if (bars === undefined) {
    throw new UsageError(`--bars is for Node ${Object.keys(BARS).join(', ')}, not for ${version}.`)
  }
  const tasks = Object.entries(bars).map(([workload, list]) => ({
    workload,
    subjects: list.filter((name) => names.includes(name))
  }))
  return tasks.filter(({ workload }) => works.includes(workload))
}

/**
 * @param {object} selection
 * @param {string} selection.node paths separated by commas
 * @param {string} [selection.subjects]
 * @param {string} [selection.workloads]
 * @param {boolean} selection.bars
 * @returns {Plan[]}
 * @throws {UsageError}
 */
function planOf (selection) {
  const names = selectNames(selection.subjects, Object.keys(subjects), 'subject')
    .filter((name) => name !== 'bare')
  const works = selectNames(selection.workloads, Object.keys(workloads), 'workload')
  return selection.node.split(',').map((name) => {
    const file = name.includes('/') ? path.resolve(name) : name // children have their own directories
    const version = versionOf(file)
    const allTasks = works.map((workload) => ({ workload, subjects: names }))
    return { file, version, tasks: selection.bars ? barsOf(version, { names, works }) : allTasks }
  })
}

/** @param {Plan[]} plans @param {Scale} scale @returns {number} minutes, without the short processes */
function minutesOf (plans, { rounds, ms, warmShare }) {
  const tasks = plans.flatMap((plan) => plan.tasks).filter(({ workload }) => !workloads[workload].inTurn)
  const total = tasks.reduce((sum, { workload, subjects: names }) => {
    const once = workloads[workload].warmMs * warmShare + ms + OVERHEAD_MS
    return sum + once * rounds * Math.max(1, groupsOf(names).length)
  }, 0)
  return Math.ceil(total / 60_000)
}

module.exports = { planOf, minutesOf }
