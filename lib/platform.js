'use strict'

// The package's name, and the location of platform-specific files: the addon for each ABI, V8's code cache of
// the generated files in start/, and the text of modules that load late. A checkout has them in
// native/prebuilds/TARGET/. A published version has a package NAME-TARGET per platform among its optional
// dependencies; installing brings the one for the platform. Runs at each start, before the generated files
// are loaded, so it requires no other file and reads as little as possible.

const fs = require('node:fs')
const { sep } = require('node:path') // path.join scans every character, too slow at start

const { parse } = JSON // programs may replace it

const PAGE = 4096
// Offsets of the program header table in the header of a 64-bit ELF file, and in a table entry: elf(5)
const ELF_PROGRAMS = { table: 32, bytes: 54, count: 56 }
const ELF_PROGRAM = { type: 0, offset: 8, bytes: 32 }
const PT_INTERP = 3 // type of the entry that names the loader
const MANIFEST = 'package.json'

/** Platforms with binaries in each release; native/targets.js compiles them. */
const PLATFORMS = [
  'linux-x64', 'linux-arm64', 'linuxmusl-x64', 'linuxmusl-arm64', 'darwin-arm64', 'darwin-x64'
]
/** Node versions with binaries in each release, and their ABIs. @type {Record<string, number>} */
const ABIS = { 20: 115, 22: 127, 24: 137, 26: 147 }

const root = __dirname.slice(0, __dirname.lastIndexOf(sep))

/**
 * @typedef {object} Manifest
 * @property {string} name
 * @property {string} version
 * @property {Record<string, string>} [optionalDependencies] only in a published version
 *
 * @typedef {object} PlatformPackage package of a published version for this platform
 * @property {string} name
 * @property {string} [version] undefined if it is not installed, or must not be read
 * @property {string} [directory] undefined unless it has the same version as this package
 */

/** @type {Manifest | undefined} */
let manifest

/** @returns {Manifest} of this package, for messages */
function ownManifest () {
  try {
    return readOwn()
  } catch {
    return { name: 'longstack', version: 'unknown' }
  }
}

/** @returns {Manifest} @throws {Error} if it cannot be read */
function readOwn () {
  manifest ??= readManifest(root)
  return manifest
}

/** @param {string} directory @returns {Manifest} @throws {Error} if it cannot be read */
function readManifest (directory) {
  return parse(fs.readFileSync(`${directory}${sep}${MANIFEST}`, 'utf8'))
}

/** @type {string | undefined} */
let name

/**
 * Names this platform with its C library: a binary for glibc might load on musl, and crash.
 * @returns {string} for example linux-x64, linuxmusl-x64
 */
function target () {
  name ??= `${process.platform}${process.platform === 'linux' && usesMusl() ? 'musl' : ''}-${process.arch}`
  return name
}

/** @returns {boolean} derived from the executable's loader; process.report takes 2 to 20 ms */
function usesMusl () {
  try {
    return loaderOf('/proc/self/exe').includes('/ld-musl-')
  } catch { // no /proc, --permission, or the loader was run directly
    const report = /** @type {any} */ (process.report)
    const { excludeNetwork } = report
    report.excludeNetwork = true // otherwise the report may wait for DNS
    const isMusl = report.getReport().header.glibcVersionRuntime === undefined
    report.excludeNetwork = excludeNetwork
    return isMusl
  }
}

/**
 * Returns the path of an executable's loader, from the first page, or from the place that patchelf moved it
 * to.
 * @param {string} file 64-bit ELF
 * @throws if it has no loader
 */
function loaderOf (file) {
  const start = readAt(file, 0, PAGE)
  const table = Number(start.readBigUInt64LE(ELF_PROGRAMS.table))
  const bytes = start.readUInt16LE(ELF_PROGRAMS.bytes)
  for (let i = 0; i < start.readUInt16LE(ELF_PROGRAMS.count); i++) {
    const entry = start.subarray(table + i * bytes)
    if (entry.readUInt32LE(ELF_PROGRAM.type) !== PT_INTERP) continue
    const offset = Number(entry.readBigUInt64LE(ELF_PROGRAM.offset))
    return readAt(file, offset, entry.readUInt32LE(ELF_PROGRAM.bytes)).toString('latin1')
  }
  throw new Error(`${file} names no loader`)
}

/** @param {string} file @param {number} offset @param {number} bytes */
function readAt (file, offset, bytes) {
  const descriptor = fs.openSync(file, 'r')
  try {
    const buffer = Buffer.alloc(bytes)
    return buffer.subarray(0, fs.readSync(descriptor, buffer, 0, bytes, offset))
  } finally {
    fs.closeSync(descriptor)
  }
}

/**
 * Returns this package's own directory for a platform's files; build scripts write to it.
 * @param {string} [platform]
 */
function ownDirectory (platform = target()) {
  return `${root}${sep}native${sep}prebuilds${sep}${platform}`
}

/** @param {string | number} abi process.versions.modules of a Node version */
const binaryName = (abi) => `longstack.abi${abi}.node`

/**
 * Finds a file that was made for this platform.
 * @param {string} file name of the file
 * @returns {string | undefined} undefined if there is none
 * @throws {Error} if a directory must not be read
 */
function findFile (file) {
  const own = `${ownDirectory()}${sep}${file}`
  if (fs.existsSync(own)) return own
  const { directory } = platformPackage() ?? {}
  const other = directory === undefined ? undefined : `${directory}${sep}${file}`
  return other !== undefined && fs.existsSync(other) ? other : undefined
}

/** @type {PlatformPackage | null | undefined} null: there is none */
let found

/** @returns {PlatformPackage | undefined} undefined in a checkout, or on a platform without one */
function platformPackage () {
  found ??= findPackage() ?? null
  return found ?? undefined
}

/** @returns {PlatformPackage | undefined} */
function findPackage () {
  const { name: ownName, version: ownVersion, optionalDependencies = {} } = readOwn()
  const other = `${ownName}-${target()}`
  if (optionalDependencies[other] === undefined) return undefined
  const directory = process.versions.pnp === undefined ? findInModules(other) : resolveByYarn(other)
  if (directory === undefined) return { name: other }
  const { version } = readManifest(directory)
  return { name: other, version, directory: version === ownVersion ? directory : undefined }
}

/**
 * Finds a package like Node, upwards from this one's directory. Links are resolved only if that fails:
 * --preserve-symlinks keeps them in the path, and pnpm puts dependencies next to their target.
 * @param {string} id
 */
function findInModules (id) {
  return findUpwards(root, id) ?? findUpwards(fs.realpathSync.native(root), id)
}

/** @param {string} start @param {string} id @returns {string | undefined} */
function findUpwards (start, id) {
  const candidate = `${start}${sep}node_modules${sep}${id}`
  if (fs.existsSync(`${candidate}${sep}${MANIFEST}`)) return candidate
  const end = start.lastIndexOf(sep)
  return end === -1 ? undefined : findUpwards(start.slice(0, end), id)
}

/** @param {string} id @returns {string | undefined} */
function resolveByYarn (id) {
  try {
    return require.resolve(`${id}/${MANIFEST}`).slice(0, -MANIFEST.length - 1)
  } catch {
    return undefined
  }
}

module.exports = {
  ABIS, PLATFORMS, binaryName, findFile, ownDirectory, ownManifest, platformPackage, readAt, target
}
