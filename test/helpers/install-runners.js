'use strict'

// Test runners: the newest and the last major version of each, in a workspace of its own (test/runners/).

const fs = require('node:fs')
const path = require('node:path')
const { installPackages } = require('./install-packages')
const { root } = require('./run')

/**
 * Runners of test/runners/ that do not support a version of Node: the oldest major version of Node that they
 * support, from their `engines`. No test of them runs on an older one.
 * @type {Record<string, number>}
 */
const OLDEST_NODE = { ava8: 22, vitest5: 22 }

/**
 * Installs all runners once, and returns the directory of one of them; or why it cannot be tested here.
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
