'use strict'

// npm run release -- --name @scope[/longstack] [--version X] [--out DIRECTORY] [--dry-run] [--no-provenance]
//                    [--no-build]
//
// Compiles this platform's binaries for every version of Node (--no-build keeps existing ones), packs the
// main package and one for each platform under that name, and publishes them. --dry-run only packs, and lists
// what would prevent publishing. The name is the owner's, and texts of the package follow it.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { gzipSync } = require('node:zlib')
const { npm } = require('./npm')
const { findFaults, writePackages } = require('./packages')
const { name: ownName, version: ownVersion } = require('../package.json')

const root = path.join(__dirname, '..')
const NAME = /^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/ // validate-npm-package-name
const SCOPE = /^@[^/]+$/ // alone
const VERSION = /^\d+\.\d+\.\d+(-[\w.-]+)?$/
const MAIN_LIMIT = 880_000 // bytes of the tarball
const BINARY_LIMIT = 250_000 // bytes of all binaries of a platform, compressed

/**
 * @typedef {object} Tarball
 * @property {string} name of the package
 * @property {string} file
 * @property {number} size of the tarball in bytes
 * @property {number} unpacked bytes
 * @property {number} files
 * @property {number} binaries bytes of its binaries, compressed
 */

function main () {
  const { name, version, out, isDry, hasProvenance, isBuilt } = readArguments()
  if (!isDry) refuse(publishingFaults(name, version))
  if (!isBuilt) buildBinaries()
  const faults = findFaults()
  if (!isDry) refuse(faults)
  buildAll()
  const tarballs = pack(path.resolve(out), name, version)
  tarballs.forEach((tarball) => console.log(describe(tarball)))
  refuse(sizeFaults(tarballs, name))
  if (isDry) return faults.forEach((fault) => console.error(`longstack: ${fault}`))
  const flags = ['--access=public', version.includes('-') ? '--tag=next' : '--tag=latest']
  if (hasProvenance) flags.push('--provenance')
  for (const tarball of tarballs) publish(tarball, version, flags)
}

/** @param {Tarball} tarball @param {string} version @param {string[]} flags */
function publish ({ name, file }, version, flags) {
  try {
    npm(['publish', ...flags, file], root)
    console.log(`published ${path.basename(file)}`)
  } catch (error) {
    if (!isPublished(name, version)) throw error
    console.log(`${path.basename(file)} was published by a release that did not end`)
  }
}

/** @throws {Error} */
function readArguments () {
  const { values } = parseArgs({
    options: {
      name: { type: 'string', default: ownName },
      version: { type: 'string', default: ownVersion },
      out: { type: 'string', default: path.join(root, 'release') },
      'dry-run': { type: 'boolean', default: process.env.npm_config_dry_run === 'true' },
      'no-provenance': { type: 'boolean', default: false },
      'no-build': { type: 'boolean', default: false }
    }
  })
  const { version, out } = values
  const name = SCOPE.test(values.name) ? `${values.name}/${ownName}` : values.name
  const isDry = values['dry-run']
  if (!NAME.test(name)) throw new Error(`--name: ${JSON.stringify(name)} is no name of a package.`)
  if (!VERSION.test(version)) {
    throw new Error(`--version: ${JSON.stringify(version)} is no version, such as 1.2.3.`)
  }
  if (!isDry && name === ownName) {
    throw new Error(`${ownName} on npm belongs to others: --name @scope/longstack, or --dry-run.`)
  }
  return {
    name, version, out, isDry, hasProvenance: !values['no-provenance'], isBuilt: values['no-build']
  }
}

/** Compiles this platform's binaries for every version of Node. findFaults lists what is still missing. */
function buildBinaries () {
  run([require.resolve('../native/binaries')])
}

/** @param {string[]} command of Node @returns {boolean} whether it succeeded; its output goes to stderr */
function run (command) {
  return spawnSync(process.execPath, command, { cwd: root, stdio: ['ignore', 2, 2] }).status === 0
}

/** Creates the packed files other than sources and binaries. */
function buildAll () {
  for (const command of [
    ['lib/start/build.js', '--pack'], ['report/render/page/build.js'],
    [require.resolve('typescript/bin/tsc'), '-p', 'tsconfig.types.json']
  ]) {
    if (!run(command)) throw new Error(`node ${command.join(' ')} failed.`)
  }
}

/** @param {string} name @param {string} version @returns {string[]} reasons why it must not be published */
function publishingFaults (name, version) {
  const options = /** @type {const} */ ({ cwd: root, encoding: 'utf8' })
  const { status, stdout, stderr } = spawnSync('git', ['status', '--porcelain'], options)
  if (status !== 0) return [`The state of the tree is not known: ${stderr.trim()}`]
  const faults = stdout === '' ? [] : ['The tree has changes that are not committed.']
  if (isPublished(name, version)) faults.push(`${name}@${version} is published already.`)
  return faults
}

/** @param {string} name @param {string} version @throws {Error} if the registry does not respond */
function isPublished (name, version) {
  try {
    return npm(['view', `${name}@${version}`, 'version'], root).trim() !== ''
  } catch (error) {
    if (/\bE404\b/.test(/** @type {Error} */ (error).message)) return false
    throw error
  }
}

/** @param {string[]} faults @throws {Error} if there are any */
function refuse (faults) {
  if (faults.length > 0) throw new Error(`not published:\n${faults.map((fault) => `- ${fault}`).join('\n')}`)
}

/**
 * @param {string} out
 * @param {string} name
 * @param {string} version
 * @returns {Tarball[]} the main package last
 */
function pack (out, name, version) {
  fs.rmSync(path.join(out, 'packages'), { recursive: true, force: true })
  const packages = writePackages(path.join(out, 'packages'), { name, version })
  const directories = packages.map(({ directory }) => directory)
  const packed = JSON.parse(npm(['pack', ...directories, '--json', `--pack-destination=${out}`], root))
  return packages.map(({ name, directory }, i) => {
    const { filename, size, unpackedSize, entryCount } = packed[i]
    return {
      name,
      file: path.join(out, filename),
      size,
      unpacked: unpackedSize,
      files: entryCount,
      binaries: binaryBytes(directory)
    }
  })
}

/** @param {string} directory of a package @returns {number} bytes of its binaries, compressed */
function binaryBytes (directory) {
  const files = fs.readdirSync(directory).filter((file) => file.endsWith('.node'))
  const sizes = files.map((file) => gzipSync(fs.readFileSync(path.join(directory, file))).length)
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** @param {Tarball} tarball @returns {string} a line */
function describe ({ name, size, unpacked, files, binaries }) {
  const kB = (/** @type {number} */ bytes) => `${Math.round(bytes / 1000)} kB`
  const native = binaries === 0 ? '' : `, ${kB(binaries)} of them binaries`
  return `${name}: ${kB(size)}${native}; unpacked ${kB(unpacked)} in ${files} files`
}

/** @param {Tarball[]} tarballs @param {string} mainName @returns {string[]} */
function sizeFaults (tarballs, mainName) {
  const isTooLarge = (/** @type {Tarball} */ { name, size, binaries }) =>
    name === mainName ? size > MAIN_LIMIT : binaries > BINARY_LIMIT
  return tarballs.filter(isTooLarge).map((tarball) => `Too large: ${describe(tarball)}.`)
}

try {
  main()
} catch (error) {
  console.error(`longstack: ${/** @type {Error} */ (error).message}`)
  process.exitCode = 1
}
