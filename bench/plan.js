'use strict'

// What is measured on which Node: what the command line names, or the bars, a fixed choice that takes some
// ten minutes on Node 20, 22, 24 and 26.

const path = require('node:path')
const { nearest } = require('../lib/errors')
const { UsageError, versionOf } = require('./options')
const { groupsOf } = require('./rounds')
const { subjects } = require('./subjects')
const { workloads } = require('./workloads')

/**
 * @typedef {object} Task
 * @property {string} workload
 * @property {string[]} subjects bare not among them
 *
 * @typedef {object} Plan
 * @property {string} file of Node
 * @property {string} version
 * @property {Task[]} tasks
 *
 * @typedef {object} Scale
 * @property {number} rounds
 * @property {number} ms of a measurement
 * @property {number} warmShare of the workload's warm-up
 * @property {number} turns of short processes
 * @property {number} hops of the memory cases
 */

const FULL_AND_LIGHT = ['longstack-full', 'longstack-light']
const WITH_SPANS = ['longstack-full', 'longstack-spans']
const ALL_BARS = [...FULL_AND_LIGHT, 'longstack-light-spans', 'longstack-spans', 'opentelemetry']
const OVERHEAD_MS = 2_500 // a group: starts, memory, proofs

/** @type {Record<string, string[]>} */
const RECENT_BARS = {
  real: ALL_BARS,
  hello: ALL_BARS,
  awaits: FULL_AND_LIGHT,
  'first-error': ['longstack-full'],
  'start-up': FULL_AND_LIGHT
}
/** @type {Record<string, string[]>} */
const MAIN_BARS = { ...RECENT_BARS, fetch: FULL_AND_LIGHT, errors: ['longstack-full'] }
/** @type {Record<string, string[]>} */
const OLDER_BARS = {
  real: WITH_SPANS,
  awaits: ['longstack-full'],
  'first-error': ['longstack-full'],
  'start-up': ['longstack-full']
}
/** @type {Record<string, Record<string, string[]>>} by the major version of Node */
const BARS = { 20: OLDER_BARS, 22: OLDER_BARS, 24: MAIN_BARS, 26: RECENT_BARS }

/**
 * @param {string | undefined} given
 * @param {string[]} known
 * @param {string} what
 * @returns {string[]} all that are known where nothing is given
 */
function chosen (given, known, what) {
  if (given === undefined) return known
  const names = given.split(',').map((name) => name.trim()).filter(Boolean)
  if (names.length === 0) throw new UsageError(`No ${what} is named.`)
  for (const name of names) {
    if (known.includes(name)) continue
    const hint = nearest(name, known)
    const advice = hint === undefined
      ? `Known are ${known.join(', ')}.`
      : `Did you mean ${JSON.stringify(hint)}?`
    throw new UsageError(`Unknown ${what} ${JSON.stringify(name)}. ${advice}`)
  }
  return known.filter((name) => names.includes(name))
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
 * @param {object} given
 * @param {string} given.node paths with commas
 * @param {string} [given.subjects]
 * @param {string} [given.workloads]
 * @param {boolean} given.bars
 * @returns {Plan[]}
 * @throws {UsageError}
 */
function planOf (given) {
  const names = chosen(given.subjects, Object.keys(subjects), 'subject').filter((name) => name !== 'bare')
  const works = chosen(given.workloads, Object.keys(workloads), 'workload')
  return given.node.split(',').map((name) => {
    const file = name.includes('/') ? path.resolve(name) : name // children have folders of their own
    const version = versionOf(file)
    const all = works.map((workload) => ({ workload, subjects: names }))
    return { file, version, tasks: given.bars ? barsOf(version, { names, works }) : all }
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
