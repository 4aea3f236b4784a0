'use strict'

// What this package is called, and where the files are that were made for one platform: the addon for each
// ABI, code that V8 has compiled of the generated files in start/, and the text of what is loaded late. A
// checkout has them in native/prebuilds/TARGET/. Of a published version each of these directories is a
// package of its own, NAME-TARGET, among the optional dependencies: installing brings the one for the
// platform. Loaded at each start, before the generated files: it requires no other, and reads no more than it
// has to.

const fs = require('node:fs')
const { sep } = require('node:path') // path.join reads letter by letter, which is slow at a start

const { parse } = JSON // programs replace it

const PAGE = 4096
// Offsets in the header of a 64-bit ELF file of its table of programs, and in an entry of that: elf(5)
const ELF_PROGRAMS = { table: 32, bytes: 54, count: 56 }
const ELF_PROGRAM = { type: 0, offset: 8, bytes: 32 }
const PT_INTERP = 3 // the type of the entry that names the loader
const MANIFEST = 'package.json'

/** Platforms that each release has binaries for; native/targets.js compiles them. */
const PLATFORMS = [
  'linux-x64', 'linux-arm64', 'linuxmusl-x64', 'linuxmusl-arm64', 'darwin-arm64', 'darwin-x64'
]
/** Versions of Node that each release has binaries for, and their ABIs. @type {Record<string, number>} */
const ABIS = { 20: 115, 22: 127, 24: 137, 26: 147 }

const root = __dirname.slice(0, __dirname.lastIndexOf(sep))

/**
 * @typedef {object} Manifest
 * @property {string} name
 * @property {string} version
 * @property {Record<string, string>} [optionalDependencies] of a published version
 *
 * @typedef {object} PlatformPackage that a published version has for this platform
 * @property {string} name
 * @property {string} [version] undefined: it is not installed, or must not be read
 * @property {string} [directory] undefined: none of the version that this package is of
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

/** @returns {Manifest} @throws {Error} where it cannot be read */
function readOwn () {
  manifest ??= readManifest(root)
  return manifest
}

/** @param {string} directory @returns {Manifest} @throws {Error} where it cannot be read */
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

/** @returns {boolean} by the loader that the executable names; process.report takes 2 to 20 ms */
function usesMusl () {
  try {
    return loaderOf('/proc/self/exe').includes('/ld-musl-')
  } catch { // no /proc, --permission, or the loader was called by its own name
    const report = /** @type {any} */ (process.report)
    const { excludeNetwork } = report
    report.excludeNetwork = true // else the report may wait for DNS
    const isMusl = report.getReport().header.glibcVersionRuntime === undefined
    report.excludeNetwork = excludeNetwork
    return isMusl
  }
}

/**
 * Returns the path of the loader that a program names: on the first page, or where patchelf has moved it.
 * @param {string} file of 64-bit ELF
 * @throws where it names none
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
 * Returns where this package itself has what is made for a platform: the directory that scripts write to.
 * @param {string} [platform]
 */
function ownDirectory (platform = target()) {
  return `${root}${sep}native${sep}prebuilds${sep}${platform}`
}

/** @param {string | number} abi process.versions.modules of a Node */
const binaryName = (abi) => `longstack.abi${abi}.node`

/**
 * Finds a file that was made for this platform.
 * @param {string} file its name
 * @returns {string | undefined} undefined: there is none
 * @throws {Error} where a directory must not be read
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

/** @returns {PlatformPackage | undefined} undefined: a checkout, or a platform that has none */
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
 * Finds a package as Node does, from the directory of this one, whose links are followed last:
 * --preserve-symlinks leaves them in its name, and pnpm has its dependencies where they lead.
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
