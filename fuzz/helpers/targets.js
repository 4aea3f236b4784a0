'use strict'

const fs = require('node:fs')
const path = require('node:path')

const directory = path.join(__dirname, '..')
const commands = ['run.js', 'soak.js', 'termination.js'] // programs with options of their own

/**
 * @typedef {object} Settings
 * @property {number} seed the same seed makes the same inputs
 * @property {number} [count] ends after so many inputs
 * @property {number} [seconds] ends after so much time
 *
 * @typedef {object} Target
 * @property {string} name
 * @property {(settings: Settings & { log: (line: string) => void }) => Promise<number>} run resolves with the
 *   number of inputs, rejects with a finding
 */

/** @returns {string[]} names: that of a target is its file's */
function listTargets () {
  return fs.readdirSync(directory).filter((name) => name.endsWith('.js') && !commands.includes(name))
    .map((name) => name.slice(0, -'.js'.length)).sort()
}

/** @param {string} name @returns {Target} */
function loadTarget (name) {
  return require(path.join(directory, `${name}.js`))
}

module.exports = { listTargets, loadTarget }
