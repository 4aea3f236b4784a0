'use strict'

// npm run prebuild: compiles the binaries that a tarball carries, for every Node that is tested, with headers
// from npm's Node packages, and loads each once in its Node. Fresh binaries are kept. (Named `postprebuild`
// in package.json, since npm runs a script called prebuild before every `npm run build`.) --pack, before
// packing: failures are reported in a sentence, and fail CI only.

const { spawnSync } = require('node:child_process')
const path = require('node:path')
const { binaryName, ownDirectory, target } = require('../lib/platform')
const { compile, isFresh, abiOf, libraries } = require('./compile')
const { fetchNode } = require('./nodes')

const MAJORS = [20, 22, 24, 26]
const TARGET = 'linux-x64'
const LOAD = 'process.dlopen({ exports: {} }, process.argv[1], os.constants.dlopen.RTLD_NOW)'
const nodes = path.join(__dirname, '..', '.cache', 'node')

const isLenient = process.argv.includes('--pack') && !process.env.CI

/** @param {number} major @returns {string} a line for people */
function prebuild (major) {
  const home = path.join(nodes, String(major))
  fetchNode(`node-${TARGET}@${major}`, home)
  const include = path.join(home, 'include', 'node')
  const abi = abiOf(include)
  if (abi === undefined) throw new Error(`${include} has no headers`)
  const out = path.join(ownDirectory(TARGET), binaryName(abi))
  const isKept = isFresh(out)
  if (!isKept) compile({ platform: TARGET, include, out })
  const { needs, tooNew } = libraries(out)
  if (tooNew.length > 0) throw new Error(`the binary asks for ${tooNew.join('; ')}`)
  load(path.join(home, 'bin', 'node'), out)
  return `${path.relative('', out)}: ${isKept ? 'kept' : 'compiled'}, needs ${needs}`
}

/** @param {string} node @param {string} binary @throws {Error} if it does not load */
function load (node, binary) {
  const { status, stderr } = spawnSync(node, ['-e', LOAD, binary], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${node} does not load ${binary}:\n${stderr}`)
}

function main () {
  if (target() !== TARGET) {
    throw new Error(`binaries for ${TARGET} are compiled on ${TARGET}, this is ${target()}`)
  }
  /** @type {string[]} */
  const failures = []
  for (const major of MAJORS) {
    try {
      console.error(prebuild(major))
    } catch (error) {
      const { message } = /** @type {Error} */ (error)
      failures.push(`for Node ${major}: ${isLenient ? message.split('\n', 1)[0] : message}`)
    }
  }
  if (failures.length > 0) throw new Error(failures.join(isLenient ? '; ' : '\n'))
}

try {
  main()
} catch (error) {
  console.error(`longstack: not every binary was compiled: ${/** @type {Error} */ (error).message}`)
  if (!isLenient) process.exitCode = 1
}
