'use strict'

// Checks a binary of the addon, by the data that the loader reads from the file, see elf(5).

const fs = require('node:fs')

/** CPUs by e_machine, with the largest page size of a kernel there. */
const MACHINES = new Map([[62, { arch: 'x64', page: 0x1000 }], [183, { arch: 'arm64', page: 0x10000 }]])

const MAGIC = 0x7f454c46
const SEGMENT = { LOAD: 1, DYNAMIC: 2, STACK: 0x6474e551 }
const ENTRY = { NEEDED: 1, STRTAB: 5, STRSZ: 10, FLAGS_1: 0x6ffffffb, VERNEED: 0x6ffffffe }
const FLAGS_1 = { NOW: 1, NODELETE: 8 }
const EXECUTABLE = 1

// Newest versions that Node's own binaries require: a system that runs Node can load a binary that requires
// nothing newer.
const NODE_NEEDS = { GLIBC: '2.28', GLIBCXX: '3.4.21', CXXABI: '1.3.11' }

/** Libraries that Node itself loads, by C library. */
const NODE_LOADS = {
  glibc: /^(lib(c|m|stdc\+\+)\.so\.6|lib(pthread|rt)\.so\.0|libdl\.so\.2|libgcc_s\.so\.1|ld-linux-.+)$/,
  musl: /^(libc\.so|libc\.musl-.+|libstdc\+\+\.so\.6|libgcc_s\.so\.1)$/
}

/**
 * @typedef {object} Binary an ELF file
 * @property {string} arch
 * @property {number} alignment of segments, in bytes
 * @property {boolean} hasExecutableStack
 * @property {number} flags FLAGS_1
 * @property {string[]} libraries
 * @property {string[]} versions of the libraries, for example GLIBC_2.17
 * @property {string} names names of all symbols
 * @property {number} page size of the largest page
 */

/**
 * Checks a binary.
 * @param {string} file
 * @param {string} platform a name of targets.js
 * @returns {{ needs: string, faults: string[] }} newest required versions of shared libraries; reasons why it
 *   may not load wherever that platform's Node runs
 */
function checkBinary (file, platform) {
  if (!platform.startsWith('linux')) return { needs: '', faults: [] }
  const binary = readElf(fs.readFileSync(file))
  const isMusl = platform.startsWith('linuxmusl')
  const faults = []
  if (!platform.endsWith(`-${binary.arch}`)) faults.push(`it is for ${binary.arch}`)
  if (binary.alignment % binary.page !== 0) faults.push(`it is aligned to ${binary.alignment} bytes only`)
  if (binary.hasExecutableStack) faults.push('it wants an executable stack')
  if ((binary.flags & FLAGS_1.NOW) === 0) faults.push('a missing symbol does not fail its load')
  if ((binary.flags & FLAGS_1.NODELETE) === 0) faults.push('it can be unloaded')
  if (binary.names.includes('St3__1')) faults.push("it asks for symbols of Zig's C++ library")
  const loads = NODE_LOADS[isMusl ? 'musl' : 'glibc']
  for (const name of binary.libraries) if (!loads.test(name)) faults.push(`it asks for ${name}`)
  const needs = newestVersions(binary.versions)
  for (const { name, version } of needs) {
    const nodeVersion = /** @type {Record<string, string>} */ (NODE_NEEDS)[name] ?? '0'
    if (compareVersions(version, nodeVersion) <= 0) continue
    faults.push(`it asks for ${name} ${version}, Node for ${nodeVersion}`)
  }
  const libraries = isMusl ? binary.libraries : needs.map(({ name, version }) => `${name} ${version}`)
  return { needs: libraries.join(', '), faults }
}

/** @param {string[]} versions @returns {Array<{ name: string, version: string }>} the newest of each name */
function newestVersions (versions) {
  /** @type {Map<string, string>} */
  const newest = new Map()
  for (const text of versions) {
    const [, name, version] = /^(.+)_([0-9.]+)$/.exec(text) ?? [text, text, '']
    if (compareVersions(version, newest.get(name) ?? '') >= 0) newest.set(name, version)
  }
  return [...newest].map(([name, version]) => ({ name, version }))
}

/** @param {Buffer} bytes of 64-bit ELF, little-endian @returns {Binary} */
function readElf (bytes) {
  if (bytes.readUInt32BE(0) !== MAGIC) throw new Error('it is no ELF file')
  const machine = MACHINES.get(bytes.readUInt16LE(18)) ?? { arch: 'another CPU', page: 1 }
  const segments = readSegments(bytes)
  const loads = segments.filter(({ type }) => type === SEGMENT.LOAD)
  /** @param {number} address @returns {number} offset in the file */
  const offsetOf = (address) => {
    const load = loads.find(({ start, size }) => start <= address && address < start + size)
    if (load === undefined) throw new Error('its dynamic section lies outside of it')
    return address - load.start + load.offset
  }
  const entries = readDynamic(bytes, segments)
  /** @param {number} tag */
  const valueOf = (tag) => entries.find((entry) => entry.tag === tag)?.value ?? 0
  const strings = offsetOf(valueOf(ENTRY.STRTAB))
  const names = bytes.toString('latin1', strings, strings + valueOf(ENTRY.STRSZ))
  /** @param {number} offset */
  const nameAt = (offset) => names.slice(offset, names.indexOf('\0', offset))
  const verneed = valueOf(ENTRY.VERNEED)
  return {
    ...machine,
    alignment: Math.min(...loads.map(({ alignment }) => alignment)),
    hasExecutableStack: segments.some((one) => one.type === SEGMENT.STACK && (one.flags & EXECUTABLE) !== 0),
    flags: valueOf(ENTRY.FLAGS_1),
    libraries: entries.filter(({ tag }) => tag === ENTRY.NEEDED).map(({ value }) => nameAt(value)),
    versions: verneed === 0 ? [] : readVersions(bytes, offsetOf(verneed)).map(nameAt),
    names
  }
}

/** @param {Buffer} bytes */
function readSegments (bytes) {
  const table = Number(bytes.readBigUInt64LE(32))
  const size = bytes.readUInt16LE(54)
  return Array.from({ length: bytes.readUInt16LE(56) }, (_, i) => {
    const at = table + i * size
    /** @param {number} field */
    const read = (field) => Number(bytes.readBigUInt64LE(at + field))
    const [type, flags] = [bytes.readUInt32LE(at), bytes.readUInt32LE(at + 4)]
    return { type, flags, offset: read(8), start: read(16), size: read(32), alignment: read(48) }
  })
}

/** @param {Buffer} bytes @param {ReturnType<typeof readSegments>} segments */
function readDynamic (bytes, segments) {
  const segment = segments.find(({ type }) => type === SEGMENT.DYNAMIC)
  if (segment === undefined) throw new Error('it is no shared library')
  return Array.from({ length: Math.floor(segment.size / 16) }, (_, i) => {
    const at = segment.offset + i * 16
    return { tag: Number(bytes.readBigUInt64LE(at)), value: Number(bytes.readBigUInt64LE(at + 8)) }
  })
}

/**
 * @param {Buffer} bytes
 * @param {number} at offset of the table of versions
 * @returns {number[]} offsets of their names
 */
function readVersions (bytes, at) {
  const names = []
  for (let next = -1; next !== 0; at += next) { // libraries, each with a list of versions
    let version = at + bytes.readUInt32LE(at + 8)
    for (let left = bytes.readUInt16LE(at + 2); left > 0; left--) {
      names.push(bytes.readUInt32LE(version + 8))
      version += bytes.readUInt32LE(version + 12)
    }
    next = bytes.readUInt32LE(at + 12)
  }
  return names
}

/** @param {string} a @param {string} b */
function compareVersions (a, b) {
  return a.localeCompare(b, 'en', { numeric: true })
}

module.exports = { checkBinary }
