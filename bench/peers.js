'use strict'

// Installs the packages that longstack is compared with into this directory's own node_modules on first use,
// from the lockfile, without running their scripts.

const { spawnSync } = require('node:child_process')
const path = require('node:path')
const { dependencies } = require('./package.json')

/** @type {Record<string, string>} */
const versions = dependencies

/** @param {string} name @returns {boolean} whether the version in package.json is installed */
function isInstalled (name) {
  try {
    return require(path.join(__dirname, 'node_modules', name, 'package.json')).version === versions[name]
  } catch {
    return false
  }
}

/**
 * Installs missing packages.
 * @param {string[]} names
 * @param {(text: string) => void} printStatus
 */
function installPeers (names, printStatus) {
  const missing = names.filter((name) => !isInstalled(name))
  if (missing.length === 0) return
  printStatus(`Installing packages to compare with into bench/node_modules, once (${missing.join(', ')}) ...`)
  const ofNpmRun = /^npm_(config_local_prefix|package_|lifecycle_|command)/
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !ofNpmRun.test(name)))
  const args = ['ci', '--ignore-scripts', '--omit=optional', '--no-audit', '--no-fund', '--loglevel=error']
  const { status, stderr, error } =
    spawnSync('npm', args, { cwd: __dirname, env, encoding: 'utf8', shell: process.platform === 'win32' })
  if (status === 0) return
  const reason = error?.message ?? stderr.trim().split('\n')[0]
  printStatus(`The installation failed (${reason}); missing packages are reported as failed.`)
}

/** @param {string[]} names @returns {string | undefined} the reason why a subject cannot be measured */
function missingReason (names) {
  const missing = names.filter((name) => !isInstalled(name))
  return missing.length === 0 ? undefined : `${missing.join(', ')} not installed`
}

module.exports = { installPeers, missingReason }
