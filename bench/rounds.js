'use strict'

// Groups subjects that are measured at the same time, repeats the groups in rounds, and reduces the rounds to
// figures. Ratios refer to the bare program of the same group and round.

const { measureTogether } = require('./measure')
const { median } = require('./median')

/**
 * @typedef {import('./measure').Sample} Sample
 *
 * @typedef {{ subjects: number, load: number }} Busy busy shares of the two CPUs
 *
 * @typedef {object} Result
 * @property {string} subject
 * @property {string} workload
 * @property {number} [value] median, in the workload's unit
 * @property {number} [over] median of the difference to bare, in the workload's unit
 * @property {number[]} ratios to bare, one per round
 * @property {number} [ratio] median; 1 for bare
 * @property {number} [rss] bytes under load, median
 * @property {number} [rssOver] bytes more than bare, median
 * @property {number} [heapUsed] bytes after mark-sweeps, median
 * @property {number} [units] measured per round, median
 * @property {Busy} [busy] of bare
 * @property {Record<string, any>} [inForce]
 * @property {string} [warning] difference from the requested setup
 * @property {string} [failed] reason
 * @property {number} [failures] number of failed runs
 */

const GROUP_SIZE = 4 // larger groups would have colder caches
const MAX_FAILURES = 2

/**
 * Forms groups of equal size. The last one is filled up with the first subjects, which are then measured
 * twice per round, so that all subjects share the CPU with equally many others.
 * @template T
 * @param {T[]} subjects
 * @returns {T[][]}
 */
function groupsOf (subjects) {
  const groups = []
  for (let i = 0; i < subjects.length; i += GROUP_SIZE) groups.push(subjects.slice(i, i + GROUP_SIZE))
  const last = groups.at(-1)
  if (last !== undefined && groups.length > 1) last.push(...subjects.slice(0, GROUP_SIZE - last.length))
  return groups
}

/** @param {number[]} values */
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length

/** @param {(number | undefined)[]} values @returns {number | undefined} */
function medianOf (values) {
  const defined = /** @type {number[]} */ (values.filter((value) => value !== undefined))
  return defined.length === 0 ? undefined : median(defined)
}

/** @param {Busy[]} busy @returns {Busy} */
function medianBusy (busy) {
  return {
    subjects: median(busy.map(({ subjects }) => subjects)),
    load: median(busy.map(({ load }) => load))
  }
}

/**
 * Describes a mismatch between the requested and the active engine, or returns undefined.
 * @param {import('./subjects').Subject} subject
 * @param {Record<string, any> | undefined} inForce
 */
function mismatchWarning (subject, inForce) {
  const isAsExpected = subject.engine === undefined || subject.engine === inForce?.engine
  if (inForce === undefined || isAsExpected) return undefined
  return `${subject.engine} was requested, the engine in force is ${inForce.engine} (${inForce.engineWhy})`
}

/** Collects the samples and failures of one subject over all rounds. */
class SubjectRecord {
  /** @param {string} name @param {import('./subjects').Subject} subject */
  constructor (name, subject) {
    this.name = name
    this.subject = subject
    /** @type {Sample[]} */
    this.samples = []
    /** @type {string[]} */
    this.failures = []
    /** @type {Array<Array<{ ratio: number, over: number, rssOver: number }>>} one list per round */
    this.comparisons = []
    /** @type {Busy[]} */
    this.busy = []
  }

  /** @param {number} round @param {Sample} sample @param {Sample} bare */
  compare (round, sample, bare) {
    const list = this.comparisons[round] ??= []
    list.push({ ratio: sample.cpu / bare.cpu, over: sample.cpu - bare.cpu, rssOver: sample.rss - bare.rss })
  }

  /** @param {string} workload @param {number} factor from µs to the workload's unit @returns {Result} */
  result (workload, factor) {
    const { samples, failures } = this
    const rounds = this.comparisons.filter((list) => list !== undefined)
    const meansOf = (/** @type {'ratio' | 'over' | 'rssOver'} */ key) =>
      rounds.map((list) => mean(list.map((comparison) => comparison[key])))
    const isBare = this.name === 'bare'
    const inForce = samples.at(-1)?.inForce
    /** @type {Result} */
    const result = { subject: this.name, workload, ratios: isBare ? [] : meansOf('ratio') }
    if (failures.length > 0) Object.assign(result, { failed: failures[0], failures: failures.length })
    if (samples.length === 0) return result
    const cpuOver = isBare ? 0 : medianOf(meansOf('over'))
    return Object.assign(result, {
      value: median(samples.map(({ cpu }) => cpu * factor)),
      over: cpuOver === undefined ? undefined : cpuOver * factor,
      ratio: isBare ? 1 : medianOf(result.ratios),
      rss: median(samples.map(({ rss }) => rss)),
      rssOver: isBare ? 0 : medianOf(meansOf('rssOver')),
      heapUsed: median(samples.map(({ heapUsed }) => heapUsed)),
      units: median(samples.map(({ units }) => units)),
      busy: this.busy.length === 0 ? undefined : medianBusy(this.busy),
      inForce,
      warning: mismatchWarning(this.subject, inForce)
    })
  }
}

/**
 * Measures subjects under one workload by group and round.
 * @param {object} plan
 * @param {string} plan.node
 * @param {string} plan.name of the workload
 * @param {import('./workloads').Workload} plan.workload
 * @param {Array<[string, import('./subjects').Subject]>} plan.subjects without bare
 * @param {import('./subjects').Subject} plan.bare
 * @param {(subject: string) => string | undefined} plan.missingReason reason why a subject cannot run
 * @param {number} plan.rounds
 * @param {number} plan.warmMs
 * @param {number} plan.ms
 * @param {import('./machine').Pins} plan.pins
 * @param {(done: { subjects: string[], round: number }) => void} plan.progress
 * @returns {Promise<Result[]>}
 */
async function inRounds ({ subjects, bare, missingReason, rounds, progress, ...job }) {
  const bareRecord = new SubjectRecord('bare', bare)
  const records = subjects.map(([name, subject]) => new SubjectRecord(name, subject))
  for (const record of records) {
    const reason = missingReason(record.name)
    if (reason !== undefined) record.failures.push(...Array(MAX_FAILURES).fill(reason))
  }
  for (let round = 0; round < rounds; round++) {
    const runnable = records.filter(({ failures }) => failures.length < MAX_FAILURES)
    for (const group of runnable.length === 0 ? [[]] : groupsOf(runnable)) {
      const participants = [bareRecord, ...group]
      if (round % 2 === 1) participants.reverse()
      progress({ subjects: group.map(({ name }) => name), round })
      await measureGroup(participants, bareRecord, round, job)
    }
  }
  return [bareRecord, ...records].map((record) => record.result(job.name, job.workload.factor))
}

/**
 * Measures one group once, and adds the results to the records of its subjects.
 * @param {SubjectRecord[]} group including bare
 * @param {SubjectRecord} bareRecord
 * @param {number} round
 * @param {import('./measure').Job} job
 */
async function measureGroup (group, bareRecord, round, job) {
  const samples = await measureTogether(group.map(({ name, subject }) => [name, subject]), job)
  const bare = samples.get('bare')
  let subjectTotal = 0
  let loadTotal = 0
  let ms = 0
  for (const record of group) {
    const sample = /** @type {Sample | { failed: string }} */ (samples.get(record.name))
    if ('failed' in sample) {
      record.failures.push(sample.failed)
      continue
    }
    record.samples.push(sample)
    subjectTotal += sample.cpuTotal
    loadTotal += sample.loadTotal
    ms = Math.max(ms, sample.ms)
    if (record === bareRecord || bare === undefined || 'failed' in bare) continue
    record.compare(round, sample, bare)
  }
  if (ms > 0) bareRecord.busy.push({ subjects: subjectTotal / ms / 1000, load: loadTotal / ms / 1000 })
}

module.exports = { inRounds, groupsOf }
