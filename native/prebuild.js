'use strict'

// npm run prebuild: compiles the binaries that a tarball carries, for every Node that is tested, with headers
// from npm's Node packages. Fresh binaries are kept. (Named `postprebuild` in package.json, since npm runs a
// script called prebuild before every `npm run build`.)
//
//   --platforms linux-arm64,linuxmusl-x64   those instead of this machine's; --all: every one of targets.js
//   --pack                                  before packing: failures are reported in a sentence, and fail CI
//                                           only

const { spawnSync } = require('node:child_process')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { binaryName, ownDirectory, target } = require('../lib/platform')
const { checkBinary } = require('./binary')
const { compile, isFresh, abiOf } = require('./compile')
const { fetchNode } = require('./nodes')
const { abis, targets } = require('./targets')

const HOST = 'linux-x64' // whose headers are taken, and whose binaries are loaded
const LOAD = 'process.dlopen({ exports: {} }, process.argv[1], os.constants.dlopen.RTLD_NOW)'
const nodes = path.join(__dirname, '..', '.cache', 'node')

const { values: options } = parseArgs({
  options: { platforms: { type: 'string' }, all: { type: 'boolean' }, pack: { type: 'boolean' } }
})
const isLenient = options.pack === true && !process.env.CI

/** @returns {string[]} */
function wantedPlatforms () {
  if (options.all) return Object.keys(targets)
  const platforms = options.platforms?.split(',') ?? [HOST]
  const unknown = platforms.find((name) => !Object.hasOwn(targets, name))
  if (unknown === undefined) return platforms
  throw new Error(`expected platforms of ${Object.keys(targets).join(', ')}, received ${unknown}`)
}

/** @param {string} platform @param {string} major @returns {Promise<string>} a line for people */
async function prebuild (platform, major) {
  const home = path.join(nodes, major)
  fetchNode(`node-${HOST}@${major}`, home)
  const include = path.join(home, 'include', 'node')
  const abi = abiOf(include)
  if (abi === undefined) throw new Error(`${include} has no headers`)
  const out = path.join(ownDirectory(platform), binaryName(abi))
  const isKept = isFresh(out)
  if (!isKept) await compile({ platform, include, out })
  const { needs, faults } = checkBinary(out, platform)
  if (faults.length > 0) throw new Error(`${path.relative('', out)}: ${faults.join('; ')}`)
  if (platform === HOST) load(path.join(home, 'bin', 'node'), out)
  return `${path.relative('', out)}: ${isKept ? 'kept' : 'compiled'}${needs && `, needs ${needs}`}`
}

/** @param {string} node @param {string} binary @throws {Error} if it does not load */
function load (node, binary) {
  const { status, stderr } = spawnSync(node, ['-e', LOAD, binary], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${node} does not load ${binary}:\n${stderr}`)
}

async function main () {
  if (target() !== HOST) {
    throw new Error(`binaries are compiled on ${HOST}, this is ${target()}`)
  }
  /** @type {string[]} */
  const failures = []
  for (const platform of wantedPlatforms()) {
    await Promise.all(Object.keys(abis).map(async (major) => {
      try {
        console.error(await prebuild(platform, major))
      } catch (error) {
        const { message } = /** @type {Error} */ (error)
        failures.push(`for Node ${major} on ${platform}: ${isLenient ? message.split('\n', 1)[0] : message}`)
      }
    }))
  }
  if (failures.length > 0) throw new Error(failures.join(isLenient ? '; ' : '\n'))
}

main().catch((error) => {
  console.error(`longstack: not every binary was compiled: ${/** @type {Error} */ (error).message}`)
  if (!isLenient) process.exitCode = 1
})
