'use strict'

// npm run prebuild: the binaries that a tarball carries, for every Node that is tested, with headers from npm's Node
// packages; each is loaded once by its Node. What is made already is kept. (Named `postprebuild` in package.json,
// because npm runs a script called prebuild before every `npm run build`.)
// --pack, before packing: what cannot be made is said in a sentence, and is an error in CI only.

const { spawnSync } = require('node:child_process')
const path = require('node:path')
const { binaryFile, target } = require('../lib/stacks/binding')
const { compile, fresh, abiOf, libraries } = require('./compile')
const { fetchNode } = require('./nodes')

const MAJORS = [20, 22, 24, 26]
const TARGET = 'linux-x64'
const nodes = path.join(__dirname, '..', '.cache', 'node')

const lenient = process.argv.includes('--pack') && !process.env.CI

/** @param {number} major @returns {string} what was made */
function prebuild (major) {
  const folder = path.join(nodes, String(major))
  fetchNode(`node-${TARGET}@${major}`, folder)
  const include = path.join(folder, 'include', 'node')
  const abi = abiOf(include)
  if (abi === undefined) throw new Error(`${include} has no headers`)
  const out = binaryFile(TARGET, abi)
  const kept = fresh(out)
  if (!kept) compile({ include, out })
  const { needs, tooNew } = libraries(out)
  if (tooNew.length > 0) throw new Error(`the binary asks for ${tooNew.join(' and ')}`)
  load(path.join(folder, 'bin', 'node'), out)
  return `${path.relative('', out)}: ${kept ? 'kept' : 'made'}, needs ${needs}`
}

/** @param {string} node @param {string} binary */
function load (node, binary) {
  const { status, stderr } = spawnSync(node, ['-e', 'process.dlopen({ exports: {} }, process.argv[1], os.constants.dlopen.RTLD_NOW)', binary], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${node} does not load ${binary}:\n${stderr}`)
}

function main () {
  if (target() !== TARGET) throw new Error(`binaries for ${TARGET} are made on ${TARGET}, this is ${target()}`)
  /** @type {string[]} */
  const failures = []
  for (const major of MAJORS) {
    try {
      console.error(prebuild(major))
    } catch (error) {
      failures.push(`for Node ${major}: ${/** @type {Error} */ (error).message}`)
    }
  }
  if (failures.length > 0) throw new Error(failures.map((text) => lenient ? text.split('\n', 1)[0] : text).join(lenient ? '; ' : '\n'))
}

try {
  main()
} catch (error) {
  console.error(`longstack: not every binary could be made: ${/** @type {Error} */ (error).message}`)
  if (!lenient) process.exitCode = 1
}
