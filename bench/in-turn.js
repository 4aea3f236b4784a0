'use strict'

// Starts short processes, bare and the subjects in turn, so that a machine that gets slower does so for all
// of them, and compares each with bare in the same turn.

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
 * Makes the command of a subject, whose files go to the folder.
 * @param {string[]} node its command
 * @param {import('./subjects').Subject} subject
 * @param {string} folder
 * @returns {Command}
 */
function commandOf (node, { args, env }, folder) {
  const options = { cwd: folder, env: { ...cleanEnvironment(), ...env(folder) } }
  return { node: [...node, ...args(folder)], options }
}

/**
 * Measures subjects, bare first among them.
 * @param {object} plan
 * @param {string} plan.workload
 * @param {string[]} plan.node its command
 * @param {Array<[string, import('./subjects').Subject]>} plan.subjects
 * @param {number} plan.turns
 * @param {(command: Command, turn: number) => { value: number } | { failed: string }} plan.once
 * @returns {Result[]}
 */
function inTurn ({ workload, node, subjects, turns, once }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-bench-'))
  try {
    const all = subjects.map(([name, subject]) => ({
      subject: name,
      command: commandOf(node, subject, folder),
      /** @type {number[]} */
      values: [],
      /** @type {string | undefined} */
      failed: undefined
    }))
    // The first turn fills the file cache and is not counted.
    for (let turn = -1; turn < turns; turn++) {
      for (const one of all) {
        if (one.failed !== undefined) continue
        const figure = once(one.command, Math.max(0, turn))
        if ('failed' in figure) one.failed = figure.failed
        else if (turn >= 0) one.values.push(figure.value)
      }
    }
    const bare = all[0].values
    return all.map(({ subject, values, failed }) => {
      if (failed !== undefined) return { subject, workload, ratios: [], failed, failures: 1 }
      const value = median(values)
      if (subject === 'bare') return { subject, workload, value, over: 0, ratio: 1, ratios: [] }
      const ratios = values.map((each, turn) => each / bare[turn])
      const over = median(values.map((each, turn) => each - bare[turn]))
      return { subject, workload, value, over, ratio: median(ratios), ratios }
    })
  } finally {
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

module.exports = { commandOf, inTurn }
