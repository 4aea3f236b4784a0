'use strict'

// Reads macOS files: exports, imports and signature. Documented in mach-o/loader.h, mach-o/nlist.h, and
// kern/cs_blobs.h in Apple's XNU.

const { createHash } = require('node:crypto')
const fs = require('node:fs')

const MAGIC = 0xfeedfacf // 64 bits, little-endian
const HEADER_BYTES = 32
const CPUS = new Map([[0x01000007, 'x64'], [0x0100000c, 'arm64']])
const COMMAND = {
  SYMTAB: 0x2,
  LOAD_DYLIB: 0xc,
  ID_DYLIB: 0xd,
  SEGMENT: 0x19,
  CODE_SIGNATURE: 0x1d,
  DYLD_INFO: 0x22,
  DYLD_INFO_ONLY: 0x80000022,
  BUILD_VERSION: 0x32,
  EXPORTS_TRIE: 0x80000033
}
const SYMBOL = { bytes: 16, debugging: 0xe0, type: 0x0e, external: 0x01 }
/** Replaces a library's number for -undefined dynamic_lookup: Apple's linker, and Zig's */
const ANY_LIBRARY = [0xfe, 0]

const CODE_DIRECTORY = 0xfade0c02
const SHA256 = 2

/**
 * @typedef {object} MachO
 * @property {string} arch
 * @property {string} name name of a library, set by the linker
 * @property {string} oldest oldest supported version of macOS
 * @property {string[]} libraries libraries it loads
 * @property {number[]} segments their addresses
 * @property {string[]} needs symbols of one of its libraries
 * @property {string[]} needsOfAny symbols of any loaded library
 * @property {Set<string>} exported
 * @property {number} signedPages pages with a correct hash; 0 if unsigned, or signed incorrectly
 */

/** @param {string} file @returns {MachO} */
function readMachO (file) {
  const bytes = fs.readFileSync(file)
  if (bytes.readUInt32LE(0) !== MAGIC) throw new Error(`${file} is no Mach-O file of 64 bits`)
  /** @type {MachO} */
  const result = {
    arch: CPUS.get(bytes.readUInt32LE(4)) ?? 'another CPU',
    name: '',
    oldest: '',
    libraries: [],
    segments: [],
    needs: [],
    needsOfAny: [],
    exported: new Set(),
    signedPages: 0
  }
  let at = HEADER_BYTES
  for (let left = bytes.readUInt32LE(16); left > 0; left--) {
    const command = bytes.subarray(at, at + bytes.readUInt32LE(at + 4))
    readCommand(bytes, command, result)
    at += command.length
  }
  return result
}

/** @param {Buffer} bytes @param {Buffer} command @param {MachO} result */
function readCommand (bytes, command, result) {
  /** @param {number} field offset, followed by the size @returns {Buffer} */
  const part = (field) => {
    const start = command.readUInt32LE(field)
    return bytes.subarray(start, start + command.readUInt32LE(field + 4))
  }
  switch (command.readUInt32LE(0)) {
    case COMMAND.ID_DYLIB: result.name = stringAt(command, command.readUInt32LE(8)); break
    case COMMAND.LOAD_DYLIB: result.libraries.push(stringAt(command, command.readUInt32LE(8))); break
    case COMMAND.SEGMENT: result.segments.push(Number(command.readBigUInt64LE(24))); break
    case COMMAND.BUILD_VERSION: result.oldest = `${command.readUInt16LE(14)}.${command[13]}`; break
    case COMMAND.EXPORTS_TRIE: readExports(part(8), result); break
    case COMMAND.DYLD_INFO: case COMMAND.DYLD_INFO_ONLY: readExports(part(40), result); break
    case COMMAND.CODE_SIGNATURE: result.signedPages = countSignedPages(bytes, part(8)); break
    case COMMAND.SYMTAB: {
      const symbols = bytes.subarray(command.readUInt32LE(8))
      readUndefined(symbols, command.readUInt32LE(12), part(16), result)
    }
  }
}

/** @param {Buffer} bytes @param {number} start */
function stringAt (bytes, start) {
  return bytes.toString('latin1', start, bytes.indexOf(0, start))
}

/** @param {Buffer} symbols @param {number} count @param {Buffer} names @param {MachO} result */
function readUndefined (symbols, count, names, result) {
  for (let i = 0; i < count; i++) {
    const symbol = symbols.subarray(i * SYMBOL.bytes, (i + 1) * SYMBOL.bytes)
    if ((symbol[4] & (SYMBOL.debugging | SYMBOL.type)) !== 0 || (symbol[4] & SYMBOL.external) === 0) continue
    const list = ANY_LIBRARY.includes(symbol[7]) ? result.needsOfAny : result.needs
    list.push(stringAt(names, symbol.readUInt32LE(0)))
  }
}

/**
 * Reads the tree that the loader uses to look up exports: for each node its export, then its children, each
 * with the next part of the name.
 * @param {Buffer} tree
 * @param {MachO} result
 */
function readExports (tree, { exported }) {
  const nodes = tree.length === 0 ? [] : [{ name: '', at: 0 }]
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    const { name, at } = node
    const own = readNumber(tree, at)
    if (own.value > 0) exported.add(name)
    let next = own.end + own.value
    for (let left = tree[next++]; left > 0; left--) {
      const more = stringAt(tree, next)
      const child = readNumber(tree, next + more.length + 1)
      nodes.push({ name: name + more, at: child.value })
      next = child.end
    }
  }
}

/** Reads a number of any length (LEB128). @param {Buffer} bytes @param {number} at */
function readNumber (bytes, at) {
  let value = 0
  let end = at
  for (let shift = 0, more = true; more; shift += 7, end++) {
    value += (bytes[end] & 0x7f) * 2 ** shift
    more = bytes[end] > 0x7f
  }
  return { value, end }
}

/**
 * Compares the pages of a file with the hashes in its signature: Apple's kernel ends a process that touches a
 * page with another hash, and on arm64 loads no library without a signature.
 * @param {Buffer} bytes
 * @param {Buffer} signature
 * @returns {number} number of pages; 0 if one is wrong
 */
function countSignedPages (bytes, signature) {
  const parts = Array.from({ length: signature.readUInt32BE(8) }, (_, i) => {
    return signature.subarray(signature.readUInt32BE(16 + i * 8))
  })
  const directory = parts.find((part) => part.readUInt32BE(0) === CODE_DIRECTORY)
  if (directory === undefined || directory[37] !== SHA256) return 0
  const [hashes, pages, end] = [16, 28, 32].map((field) => directory.readUInt32BE(field))
  const [hashBytes, pageBytes] = [directory[36], 2 ** directory[39]]
  for (let i = 0; i < pages; i++) {
    const page = bytes.subarray(i * pageBytes, Math.min((i + 1) * pageBytes, end))
    const hash = directory.subarray(hashes + i * hashBytes, hashes + (i + 1) * hashBytes)
    if (!createHash('sha256').update(page).digest().equals(hash)) return 0
  }
  return pages
}

module.exports = { readMachO }
