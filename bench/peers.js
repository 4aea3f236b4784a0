'use strict'

// The packages that longstack is compared with live in this folder's own node_modules, installed when they are
// first needed, from the lockfile, without running scripts of theirs.

const { spawnSync } = require('node:child_process')
const path = require('node:path')
const { dependencies } = require('./package.json')

/** @param {string} name @returns {boolean} whether it is here in the version that package.json names */
function installed (name) {
  try {
    return require(path.join(__dirname, 'node_modules', name, 'package.json')).version === dependencies[/** @type {keyof typeof dependencies} */ (name)]
  } catch {
    return false
  }
}

/**
 * Installs what is missing.
 * @param {string[]} names
 * @param {(text: string) => void} say
 */
function provide (names, say) {
  const missing = names.filter((name) => !installed(name))
  if (missing.length === 0) return
  say(`Installing what is measured against into bench/node_modules, once (${missing.join(', ')}) ...`)
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_(config_local_prefix|package_|lifecycle_|command)/.test(name)))
  const { status, stderr, error } = spawnSync('npm', ['ci', '--ignore-scripts', '--omit=optional', '--no-audit', '--no-fund', '--loglevel=error'],
    { cwd: __dirname, env, encoding: 'utf8', shell: process.platform === 'win32' })
  if (status !== 0) say(`That failed (${error?.message ?? stderr.trim().split('\n')[0]}); what is missing is shown as failed.`)
}

/** @param {string[]} names @returns {string | undefined} the reason why something cannot be measured */
function lacking (names) {
  const missing = names.filter((name) => !installed(name))
  return missing.length === 0 ? undefined : `${missing.join(', ')} not installed`
}

module.exports = { provide, lacking }
