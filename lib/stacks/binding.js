'use strict'

// Loads the addon for this Node, or returns why that is not possible. Never throws, prints nothing, starts
// nothing. No other file loads it.

const fs = require('node:fs')
const path = require('node:path')
const { stateOf } = require('../files')

/**
 * @typedef {import('./capture-native').Binding} Binding
 * @typedef {import('../reasons').EngineReason} Failure
 * @typedef {{ binding: Binding, failure?: undefined } | { binding?: undefined, failure: Failure }} LoadResult
 */

const directory = path.join(__dirname, '..', '..', 'native', 'prebuilds')

const PAGE = 4096
const RTLD_NOW = 2 // os.constants.dlopen.RTLD_NOW on Linux, macOS and the BSDs; Windows ignores it

// Each of them changes how V8 stores the values that the addon reads.
const UNSUPPORTED = [
  'v8_enable_pointer_compression', 'v8_enable_sandbox', 'v8_enable_31bit_smis_on_64bit_arch'
]

// Offsets in the header of a 64-bit ELF file: elf(5)
const ELF_HEADER = { bytes: 64, magic: 0x7f454c46, sectionTable: 40, sectionBytes: 58, sections: 60 }

/** @type {LoadResult | undefined} */
let result

/**
 * Loads the addon, once in each thread.
 * @returns {LoadResult}
 */
function loadBinding () {
  result ??= load()
  return result
}

/** @returns {LoadResult} */
function load () {
  try {
    const option = unsupportedBuildOption()
    if (option !== undefined) return failure('UNSUPPORTED_BUILD', option)
    const abi = process.versions.modules
    const file = binaryFile(target(), abi)
    if (!fs.existsSync(file)) return failure('NO_BINARY', `${target()}, ABI ${abi}`)
    if (process.platform === 'linux' && !isComplete(file)) return failure('DAMAGED_BINARY')
    // Not require(): other packages patch it. RTLD_NOW: a missing symbol fails the load, not a later call.
    const module = { exports: {} }
    process.dlopen(module, file, RTLD_NOW)
    return { binding: /** @type {Binding} */ (module.exports) }
  } catch (error) {
    return failureOf(error)
  }
}

/** @param {Failure['code']} code @param {string} [detail] */
function failure (code, detail) {
  return { failure: { code, detail } }
}

/** @param {any} error of reading the binary or of dlopen */
function failureOf (error) {
  if (error?.code === 'ERR_ACCESS_DENIED') return failure('READ_FORBIDDEN')
  if (error?.code === 'ERR_DLOPEN_DISABLED') {
    const isPermitted = process.permission === undefined || process.permission.has('addon')
    return failure('ADDONS_FORBIDDEN', isPermitted ? '--no-addons' : '--permission')
  }
  return failure('LOAD_FAILED', String(error?.message ?? error).split('\n', 1)[0].slice(0, 200))
}

/**
 * Returns the option of this Node's build for which no binary exists, also where one has the right name.
 * @returns {string | undefined}
 */
function unsupportedBuildOption () {
  const variables = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (process.config.variables))
  return UNSUPPORTED.find((name) => Number(variables[name]) === 1)
}

/**
 * Names this platform with its C library: a binary for glibc might load on musl, and crash.
 * @returns {string} for example linux-x64, linuxmusl-x64
 */
function target () {
  return `${process.platform}${process.platform === 'linux' && usesMusl() ? 'musl' : ''}-${process.arch}`
}

/** @type {boolean | undefined} */
let hasMusl

/**
 * @returns {boolean} from the executable's first page, which names its loader; process.report takes 2 to 20
 *   ms
 */
function usesMusl () {
  try {
    hasMusl ??= readStart('/proc/self/exe', PAGE).includes('/ld-musl-')
  } catch { // no /proc, or --permission
    const report = /** @type {any} */ (process.report)
    const { excludeNetwork } = report
    report.excludeNetwork = true // else the report may wait for DNS
    hasMusl = report.getReport().header.glibcVersionRuntime === undefined
    report.excludeNetwork = excludeNetwork
  }
  return /** @type {boolean} */ (hasMusl)
}

/**
 * Checks that a binary is as long as its header promises: dlopen of one that was cut off ends the process.
 * @param {string} file of 64-bit ELF, whose section table comes last
 */
function isComplete (file) {
  const { bytes, magic, sectionTable, sectionBytes, sections } = ELF_HEADER
  const header = readStart(file, bytes)
  if (header.length < bytes || header.readUInt32BE(0) !== magic) return false
  const length = header.readUInt16LE(sectionBytes) * header.readUInt16LE(sections)
  return header.readBigUInt64LE(sectionTable) + BigInt(length) <= stateOf(file).size
}

/** @param {string} file @param {number} bytes */
function readStart (file, bytes) {
  const descriptor = fs.openSync(file, 'r')
  try {
    const buffer = Buffer.alloc(bytes)
    return buffer.subarray(0, fs.readSync(descriptor, buffer, 0, bytes, 0))
  } finally {
    fs.closeSync(descriptor)
  }
}

/**
 * Returns where the binary for a Node belongs.
 * @param {string} target
 * @param {string | number} abi process.versions.modules of that Node
 */
function binaryFile (target, abi) {
  return path.join(directory, target, `longstack.abi${abi}.node`)
}

module.exports = { loadBinding, binaryFile, target, unsupportedBuildOption }
