'use strict'

// Records how the tests of other people's packages end without longstack: node test/suites/record-bare.js.
// test/package/transparent-suites.test.js then runs a file without longstack only if it ends differently with
// it. Repeat this after a change of test/suites/package-lock.json; results of other packages are not used.

const { createHash } = require('node:crypto')
const fs = require('node:fs')
const path = require('node:path')
const { digestOf, run } = require('../helpers/compare-suites')
const { install } = require('../helpers/install-suites')
const { packages, suiteOf } = require('./packages')

const JOBS = 2
const SLOW = ['fastify', '@fastify/middie', 'tape', 'aedes', '@fastify/busboy', 'avvio', '@fastify/websocket']

const recordFile = path.join(__dirname, 'bare.json')

/** @typedef {{ packages: string, node: string, digests: Record<string, Record<string, string>> }} Recorded */

/** Returns a digest of the installed versions. */
function versions () {
  return createHash('sha256').update(fs.readFileSync(path.join(__dirname, 'package-lock.json'))).digest('hex')
}

/**
 * Returns the recorded digests of a package, by file; none if they are of other versions.
 * @param {string} name
 * @returns {Record<string, string>}
 */
function recordedOf (name) {
  /** @type {Recorded} */
  const { packages: installed, node, digests } = JSON.parse(fs.readFileSync(recordFile, 'utf8'))
  const isSame = installed === versions() && process.versions.node.startsWith(`${node}.`)
  return isSame ? digests[name] ?? {} : {}
}

async function record () {
  const { modules, offline } = install()
  if (modules === undefined) throw new Error(offline)
  /** @type {Recorded} */
  const recorded = { packages: versions(), node: process.versions.node.split('.')[0], digests: {} }
  for (const description of packages.filter(({ name }) => SLOW.includes(name))) {
    const suite = suiteOf(description, modules)
    const queue = [...suite.files]
    /** @type {Record<string, string>} */
    const digests = Object.fromEntries(suite.files.map((file) => [file, '']))
    const work = async () => {
      for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
        digests[file] = digestOf(await run(suite, file, 'bare'))
      }
    }
    await Promise.all(Array.from({ length: JOBS }, work))
    recorded.digests[description.name] = digests
    console.log(description.name)
  }
  fs.writeFileSync(recordFile, `${JSON.stringify(recorded, null, 2)}\n`)
}

if (require.main === module) record()

module.exports = { recordedOf }
