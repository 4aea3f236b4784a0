'use strict'

// Loads the addon for this Node, or returns why it cannot. Never throws, never prints. Starts a process only
// if the addon was never tested on this target, and only once (trial.js). No other file loads the addon.

const { stateOf } = require('../files')
const { binaryName, findFile, ownManifest, platformPackage, readAt, target } = require('../platform')
const { isTested } = require('./tested')

/**
 * @typedef {import('./capture-native').Binding} Binding
 * @typedef {import('../reasons').EngineReason} Failure
 * @typedef {{ binding: Binding, failure?: undefined } | { binding?: undefined, failure: Failure }} LoadResult
 */

const RTLD_NOW = 2 // os.constants.dlopen.RTLD_NOW on Linux, macOS and the BSDs; Windows ignores it

// Build options that change how V8 stores the values that the addon reads
const UNSUPPORTED = [
  'v8_enable_pointer_compression', 'v8_enable_sandbox', 'v8_enable_31bit_smis_on_64bit_arch'
]

// Offsets in the header of a 64-bit ELF file: elf(5)
const ELF_HEADER = { bytes: 64, magic: 0x7f454c46, sectionTable: 40, sectionBytes: 58, sections: 60 }

/** @type {LoadResult | undefined} */
let result

/**
 * Loads the addon, once in each thread.
 * @param {boolean} [isTrial] this process exists to try the addon
 * @returns {LoadResult}
 */
function loadBinding (isTrial = false) {
  result ??= load(isTrial)
  return result
}

/** @param {boolean} isTrial @returns {LoadResult} */
function load (isTrial) {
  try {
    const option = unsupportedBuildOption()
    if (option !== undefined) return failure('UNSUPPORTED_BUILD', option)
    const abi = process.versions.modules
    const file = findFile(binaryName(abi))
    if (file === undefined) return missing(abi)
    if (process.platform === 'linux' && !isComplete(file)) return failure('DAMAGED_BINARY')
    if (!isTrial && !isTested(target())) {
      const reason = require('./trial').tryAddon(target(), file)
      if (reason.code !== 'SELF_TEST_PASSED') return { failure: reason }
    }
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

/** @param {string} abi without a binary @returns {LoadResult} */
function missing (abi) {
  const { name, version, directory } = platformPackage() ?? {}
  if (name === undefined || directory !== undefined) return failure('NO_BINARY', `${target()}, ABI ${abi}`)
  const { version: expected } = ownManifest()
  if (version === undefined) return failure('NOT_INSTALLED', `${name}@${expected}`)
  return failure('OTHER_VERSION', `${name}@${version}, expected ${expected}`)
}

/** @param {any} error from reading the binary or from dlopen */
function failureOf (error) {
  if (error?.code === 'ERR_ACCESS_DENIED') return failure('READ_FORBIDDEN')
  if (error?.code === 'ERR_DLOPEN_DISABLED') {
    const isPermitted = process.permission === undefined || process.permission.has('addon')
    return failure('ADDONS_FORBIDDEN', isPermitted ? '--no-addons' : '--permission')
  }
  return failure('LOAD_FAILED', String(error?.message ?? error).split('\n', 1)[0].slice(0, 200))
}

/**
 * Returns the build option of this Node that no binary supports, even if one has the right name.
 * @returns {string | undefined}
 */
function unsupportedBuildOption () {
  const variables = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (process.config.variables))
  return UNSUPPORTED.find((name) => Number(variables[name]) === 1)
}

/**
 * Checks that a binary is as long as its header says: dlopen of a truncated one kills the process.
 * @param {string} file 64-bit ELF with its section table at the end
 */
function isComplete (file) {
  const { bytes, magic, sectionTable, sectionBytes, sections } = ELF_HEADER
  const header = readAt(file, 0, bytes)
  if (header.length < bytes || header.readUInt32BE(0) !== magic) return false
  const length = header.readUInt16LE(sectionBytes) * header.readUInt16LE(sections)
  return header.readBigUInt64LE(sectionTable) + BigInt(length) <= stateOf(file).size
}

module.exports = { loadBinding, unsupportedBuildOption }
