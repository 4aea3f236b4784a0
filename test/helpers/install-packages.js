'use strict'

// Installs other people's packages in a cached directory of the checkout, once per lock file.

const { spawnSync } = require('node:child_process')
const { createHash } = require('node:crypto')
const fs = require('node:fs')
const path = require('node:path')
const { OFFLINE, strict } = require('./installed')
const { root } = require('./run')

const INSTALL_MS = 400_000

/**
 * @typedef {{ directory: string, offline?: undefined } | { directory?: undefined, offline: string }}
 *   Installed the directory with package.json and node_modules, or the reason why there is none
 */

/**
 * Installs the packages of test/NAME/package.json and its lock file in .cache/NAME/HASH. Throws if that fails
 * for another reason than a missing network, and in CI for any reason.
 * @param {string} name
 * @returns {Installed}
 */
function installPackages (name) {
  const source = path.join(root, 'test', name)
  const manifests = readManifests(source)
  const hash = createHash('sha256').update(manifests.get('package-lock.json') ?? '').digest('hex').slice(0, 12)
  const directory = path.join(root, '.cache', name, hash)
  if (fs.existsSync(path.join(directory, 'node_modules'))) return { directory: fs.realpathSync(directory) }

  // Several Node versions may be tested at once: the first one to finish names its directory.
  const ownDirectory = `${directory}.${process.pid}`
  try {
    for (const [file, text] of manifests) {
      fs.mkdirSync(path.dirname(path.join(ownDirectory, file)), { recursive: true })
      fs.writeFileSync(path.join(ownDirectory, file), text)
    }
    const failure = npmInstall(ownDirectory)
    if (failure !== undefined) {
      if (OFFLINE.test(failure) && !strict) return { offline: `npm has no network: ${failure.match(OFFLINE)?.[0]}` }
      throw new Error(`npm could not install ${source}:\n${failure}`)
    }
    publish(ownDirectory, directory)
    return { directory: fs.realpathSync(directory) }
  } finally {
    fs.rmSync(ownDirectory, { recursive: true, force: true })
  }
}

/**
 * Returns package.json, its lock file and the package.json of each workspace, by path.
 * @param {string} source
 */
function readManifests (source) {
  const { workspaces = [] } = JSON.parse(fs.readFileSync(path.join(source, 'package.json'), 'utf8'))
  /** @type {string[]} */
  const files = ['package.json', 'package-lock.json', ...workspaces.map((/** @type {string} */ name) => `${name}/package.json`)]
  return new Map(files.map((file) => [file, fs.readFileSync(path.join(source, file), 'utf8')]))
}

/** @param {string} ownDirectory @param {string} directory */
function publish (ownDirectory, directory) {
  try {
    fs.renameSync(ownDirectory, directory)
  } catch (error) {
    if (!fs.existsSync(directory)) throw error // another process installed it first
  }
}

/** @param {string} directory @returns {string | undefined} npm's output if it failed */
function npmInstall (directory) {
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=1']
  const { status, stderr, error } = spawnSync('npm', args, { cwd: directory, encoding: 'utf8', timeout: INSTALL_MS, shell: process.platform === 'win32' })
  return status === 0 ? undefined : error?.message ?? stderr
}

module.exports = { installPackages }
