'use strict'

// The one door to the addon: finds the binary for this Node, and loads it or says why not. Never throws, prints nothing,
// starts nothing.

const fs = require('node:fs')
const path = require('node:path')

/**
 * @typedef {import('./capture-native').Binding} Binding
 * @typedef {{ binding: Binding, why?: undefined } | { binding?: undefined, why: string }} Loaded
 */

const folder = path.join(__dirname, '..', '..', 'native', 'prebuilds')

const PAGE = 4096
const RTLD_NOW = 2 // os.constants.dlopen.RTLD_NOW on Linux, macOS and the BSDs; Windows ignores it

/** @type {Loaded | undefined} */
let loaded

/**
 * Loads the addon, once in each thread.
 * @returns {Loaded}
 */
function loadBinding () {
  loaded ??= load()
  return loaded
}

/** @returns {Loaded} */
function load () {
  try {
    const why = unsuitable()
    if (why !== undefined) return { why }
    const file = binaryFile(target(), process.versions.modules)
    if (!fs.existsSync(file)) return { why: `no binary for ${target()}, ABI ${process.versions.modules}` }
    if (process.platform === 'linux' && !whole(file)) return { why: 'its binary is damaged' }
    // Not require(): others patch it. RTLD_NOW: what is missing has to be missed now, not in a call.
    const module = { exports: {} }
    process.dlopen(module, file, RTLD_NOW)
    return { binding: /** @type {Binding} */ (module.exports) }
  } catch (error) {
    return { why: reason(error) }
  }
}

/** @param {any} error */
function reason (error) {
  if (error?.code === 'ERR_DLOPEN_DISABLED') return `${permits('addon') ? '--no-addons' : '--permission'} forbids addons`
  if (error?.code === 'ERR_ACCESS_DENIED') return '--permission forbids to read its binary'
  const message = String(error?.message ?? error)
  return `its binary does not load: ${message.split('\n', 1)[0].slice(0, 200)}`
}

/** @param {string} what */
function permits (what) {
  return process.permission === undefined || process.permission.has(what)
}

/**
 * Why no binary can be right for this Node, though one may have its name.
 * @returns {string | undefined}
 */
function unsuitable () {
  const variables = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (process.config.variables))
  const odd = ['v8_enable_pointer_compression', 'v8_enable_sandbox', 'v8_enable_31bit_smis_on_64bit_arch'].find((name) => Number(variables[name]) === 1)
  return odd && `this Node was built with ${odd}`
}

/**
 * The name of this platform, of its C library too: a binary for glibc might load on musl, and crash.
 * @returns {string} for example linux-x64, linuxmusl-x64
 */
function target () {
  return `${process.platform}${process.platform === 'linux' && usesMusl() ? 'musl' : ''}-${process.arch}`
}

/** @type {boolean | undefined} */
let musl

function usesMusl () {
  musl ??= namesMusl() ?? reportsMusl()
  return musl
}

/** Does Node's own executable name musl's loader, in its first page? */
function namesMusl () {
  try {
    return read('/proc/self/exe', PAGE).includes('/ld-musl-')
  } catch {
    return undefined // no /proc, or --permission
  }
}

/** Takes milliseconds. */
function reportsMusl () {
  const report = /** @type {any} */ (process.report)
  const { excludeNetwork } = report
  report.excludeNetwork = true
  try {
    return report.getReport().header.glibcVersionRuntime === undefined
  } finally {
    report.excludeNetwork = excludeNetwork
  }
}

/**
 * Is the file as long as its header says? To load one that was cut off ends the process.
 * @param {string} file of 64-bit ELF, whose table of sections comes last
 */
function whole (file) {
  const header = read(file, 64)
  if (header.length < 64 || header.readUInt32BE(0) !== 0x7f454c46) return false
  const end = header.readBigUInt64LE(40) + BigInt(header.readUInt16LE(58) * header.readUInt16LE(60))
  return end <= BigInt(fs.statSync(file).size)
}

/** @param {string} file @param {number} bytes */
function read (file, bytes) {
  const descriptor = fs.openSync(file, 'r')
  try {
    const buffer = Buffer.alloc(bytes)
    return buffer.subarray(0, fs.readSync(descriptor, buffer, 0, bytes, 0))
  } finally {
    fs.closeSync(descriptor)
  }
}

/**
 * Where the binary for a Node is.
 * @param {string} target
 * @param {string | number} abi process.versions.modules of that Node
 */
function binaryFile (target, abi) {
  return path.join(folder, target, `longstack.abi${abi}.node`)
}

module.exports = { loadBinding, binaryFile, target, unsuitable }
