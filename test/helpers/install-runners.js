'use strict'

// Test runners: the latest two major versions of each, in its own workspace (test/runners/).

const fs = require('node:fs')
const path = require('node:path')
const { installPackages } = require('./install-packages')
const { root } = require('./run')

/**
 * Oldest supported major version of Node, for runners in test/runners/ whose `engines` exclude a version.
 * Their tests do not run on older versions.
 * @type {Record<string, number>}
 */
const OLDEST_NODE = { ava8: 22, vitest5: 22 }

/**
 * Installs all runners once, and returns the directory of one of them, or the reason why it cannot be tested.
 * @param {string} runner a workspace of test/runners, such as 'jest30'
 * @returns {{ directory: string, reason?: undefined } | { directory?: undefined, reason: string }}
 */
function installRunner (runner) {
  if (!fs.existsSync(path.join(root, 'test', 'runners', runner, 'package.json'))) throw new Error(`No runner ${runner}`)
  const major = Number(process.versions.node.split('.', 1)[0])
  if (major < (OLDEST_NODE[runner] ?? 0)) return { reason: `does not support Node ${major}` }
  const { directory, offline } = installPackages('runners')
  return directory === undefined ? { reason: offline } : { directory: path.join(directory, runner) }
}

module.exports = { installRunner }
