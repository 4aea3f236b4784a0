'use strict'

// Runs npm. A script of npm inherits the settings of the npm that runs it; those that matter are set again.

const { spawnSync } = require('node:child_process')

const SETTINGS = [
  '--loglevel=error', '--dry-run=false', '--json=false', '--workspaces=false', '--ignore-scripts'
]
const MAX_OUTPUT = 64 << 20 // bytes

/**
 * @param {string[]} args
 * @param {string} cwd
 * @returns {string} output of npm
 * @throws {Error} with its output, if it fails
 */
function npm ([command, ...args], cwd) {
  const isWindows = process.platform === 'win32'
  const options = /** @type {const} */ ({ cwd, encoding: 'utf8', maxBuffer: MAX_OUTPUT, shell: isWindows })
  const { status, stdout, stderr, error } = spawnSync('npm', [command, ...SETTINGS, ...args], options)
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(`npm ${command} failed:\n${stderr.trim() || stdout.trim()}`)
  return stdout
}

module.exports = { npm }
