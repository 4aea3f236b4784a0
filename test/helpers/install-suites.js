'use strict'

// Brings other people's packages, tests included, into a cached folder of the checkout: once per lock file.

const { spawnSync } = require('node:child_process')
const { createHash } = require('node:crypto')
const fs = require('node:fs')
const path = require('node:path')
const { root } = require('./run')

const source = path.join(root, 'test', 'suites')
const INSTALL_MS = 240_000
const OFFLINE = /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT|ENOTCACHED)\b/

/**
 * @returns {{ modules: string, offline?: undefined } | { modules?: undefined, offline: string }} the
 *   node_modules folder, or why there is none; throws where it has to be there (CI)
 */
function install () {
  const lock = fs.readFileSync(path.join(source, 'package-lock.json'))
  const folder = path.join(root, '.cache', 'suites', createHash('sha256').update(lock).digest('hex').slice(0, 12))
  const modules = path.join(folder, 'node_modules')
  if (fs.existsSync(modules)) return { modules }

  // Several Node versions may be tested at once: the first that is ready gives its folder the name.
  const mine = `${folder}.${process.pid}`
  try {
    fs.mkdirSync(mine, { recursive: true })
    for (const name of ['package.json', 'package-lock.json']) fs.copyFileSync(path.join(source, name), path.join(mine, name))
    const failure = npmInstall(mine)
    if (failure !== undefined) {
      if (OFFLINE.test(failure) && !process.env.CI) return { offline: `npm has no network: ${failure.match(OFFLINE)?.[0]}` }
      throw new Error(`npm could not install the suites:\n${failure}`)
    }
    publish(mine, folder)
    return { modules }
  } finally {
    fs.rmSync(mine, { recursive: true, force: true })
  }
}

/** @param {string} mine @param {string} folder */
function publish (mine, folder) {
  try {
    fs.renameSync(mine, folder)
  } catch (error) {
    if (!fs.existsSync(folder)) throw error // somebody else was first
  }
}

/** @param {string} folder @returns {string | undefined} what npm said, where it failed */
function npmInstall (folder) {
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=1', `--prefix=${folder}`]
  const { status, stderr, error } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8', timeout: INSTALL_MS, shell: process.platform === 'win32' })
  return status === 0 ? undefined : error?.message ?? stderr
}

module.exports = { install }
