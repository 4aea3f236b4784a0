'use strict'

// npm run binaries: compiles the binaries of a release, for every tested Node, with headers from npm's Node
// packages. Binaries that are up to date are kept.
//
//   -- --platforms linux-arm64,linuxmusl-x64   compiles for these instead of this machine; --all: for all
//   -- --nodes 22,26                           compiles for these versions of Node only
//   -- --nodes 22,26                           compiles only for these versions of Node
//
// Afterwards compiles the code cache of the start-up bundle for each of these versions, too.

const { spawnSync } = require('node:child_process')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { ABIS, PLATFORMS, binaryName, ownDirectory, target } = require('../lib/platform')
const { checkBinary } = require('./binary')
const { compile, isFresh, abiOf } = require('./compile')
const { fetchNode } = require('./nodes')

const HOST = 'linux-x64' // platform whose headers are used, and whose binaries are loaded
const LOAD = 'process.dlopen({ exports: {} }, process.argv[1], os.constants.dlopen.RTLD_NOW)'
const nodes = path.join(__dirname, '..', '.cache', 'node')

const { values: options } = parseArgs({
  options: { platforms: { type: 'string' }, nodes: { type: 'string' }, all: { type: 'boolean' } }
})

/**
 * Reads the list of an option.
 * @param {'platforms' | 'nodes'} option
 * @param {string[]} known
 * @param {string[]} usual default of the option
 * @returns {string[]}
 */
function wanted (option, known, usual) {
  const names = options[option]?.split(',') ?? usual
  const unknown = names.find((name) => !known.includes(name))
  if (unknown === undefined) return names
  throw new Error(`--${option}: expected names of ${known.join(', ')}, received ${JSON.stringify(unknown)}`)
}

/** @param {string} platform @param {string} major @returns {Promise<string>} a summary line */
async function build (platform, major) {
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
  const platforms = wanted('platforms', PLATFORMS, options.all ? PLATFORMS : [HOST])
  const majors = wanted('nodes', Object.keys(ABIS), Object.keys(ABIS))
  /** @type {string[]} */
  const failures = []
  for (const platform of platforms) {
    await Promise.all(majors.map(async (major) => {
      try {
        console.error(await build(platform, major))
      } catch (error) {
        failures.push(`for Node ${major} on ${platform}: ${/** @type {Error} */ (error).message}`)
      }
    }))
  }
  if (failures.length > 0) throw new Error(failures.join('\n'))
  const bundle = [require.resolve('../lib/start/build'), '--pack']
  const { status } = spawnSync(process.execPath, bundle, { stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error(`node ${bundle.join(' ')} failed`)
}

main().catch((error) => {
  console.error(`longstack: not every binary was compiled: ${/** @type {Error} */ (error).message}`)
  process.exitCode = 1
})
