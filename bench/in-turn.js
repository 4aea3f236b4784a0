'use strict'

// Runs short processes, alternating between bare and the subjects, so that a machine that slows down affects
// all of them, and compares each with bare in the same turn.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { cleanEnvironment } = require('./measure')
const { median } = require('./median')

/**
 * @typedef {import('./rounds').Result} Result
 *
 * @typedef {object} Command
 * @property {string[]} node its command with the flags of the subject
 * @property {{ cwd: string, env: Record<string, string | undefined> }} options
 */

/**
 * Builds the command of a subject that writes its files to a directory.
 * @param {string[]} node its command
 * @param {import('./subjects').Subject} subject
 * @param {string} directory
 * @returns {Command}
 */
function commandOf (node, { args, env }, directory) {
  const options = { cwd: directory, env: { ...cleanEnvironment(), ...env(directory) } }
  return { node: [...node, ...args(directory)], options }
}

/**
 * Measures subjects, including bare as the first one.
 * @param {object} plan
 * @param {string} plan.workload
 * @param {string[]} plan.node its command
 * @param {Array<[string, import('./subjects').Subject]>} plan.subjects
 * @param {number} plan.turns
 * @param {(command: Command, turn: number) => { value: number } | { failed: string }} plan.once
 * @returns {Result[]}
 */
function inTurn ({ workload, node, subjects, turns, once }) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-bench-'))
  try {
    const records = subjects.map(([name, subject]) => ({
      subject: name,
      command: commandOf(node, subject, directory),
      /** @type {number[]} */
      values: [],
      /** @type {string | undefined} */
      failed: undefined
    }))
    // The first turn fills the file cache and does not count.
    for (let turn = -1; turn < turns; turn++) {
      for (const record of records) {
        if (record.failed !== undefined) continue
        const figure = once(record.command, Math.max(0, turn))
        if ('failed' in figure) record.failed = figure.failed
        else if (turn >= 0) record.values.push(figure.value)
      }
    }
    const bare = records[0].values
    return records.map(({ subject, values, failed }) => {
      if (failed !== undefined) return { subject, workload, ratios: [], failed, failures: 1 }
      const value = median(values)
      if (subject === 'bare') return { subject, workload, value, over: 0, ratio: 1, ratios: [] }
      const ratios = values.map((duration, turn) => duration / bare[turn])
      const overBare = median(values.map((duration, turn) => duration - bare[turn]))
      return { subject, workload, value, over: overBare, ratio: median(ratios), ratios }
    })
  } finally {
    fs.rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  }
}

module.exports = { commandOf, inTurn }
