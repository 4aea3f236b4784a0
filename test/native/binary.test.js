'use strict'

// Checks by prebuild of a binary before packing; each fault comes from a file damaged in that way.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava').default
const { checkBinary } = require('../../native/binary')
const { abiOf } = require('../../native/compile')
const { binaryName, ownDirectory, target } = require('../../lib/platform')
const { strict } = require('../helpers/installed')
const { root } = require('../helpers/run')
const { skip } = require('../helpers/skip')

const binary = path.join(ownDirectory(), binaryName(process.versions.modules))
const there = fs.existsSync(binary) ? test : test.skip

/** offsets in a program header, and numbers of elf(5) */
const STACK = 0x6474e551
const FLAGS_1 = 0x6ffffffbn

/** @param {(bytes: Buffer) => void} damage @returns {string[]} */
function faultsAfter (damage) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  try {
    const file = path.join(folder, 'damaged.node')
    const bytes = fs.readFileSync(binary)
    damage(bytes)
    fs.writeFileSync(file, bytes)
    return checkBinary(file, target()).faults
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/** @param {Buffer} bytes @param {number} type @returns {number} offset of the first header of that type */
function segment (bytes, type) {
  const table = Number(bytes.readBigUInt64LE(32))
  const headers = Array.from({ length: bytes.readUInt16LE(56) }, (_, i) => table + i * 56)
  return /** @type {number} */ (headers.find((at) => bytes.readUInt32LE(at) === type))
}

/** @param {string} from @param {string} to of the same length */
const rename = (from, to) => (/** @type {Buffer} */ bytes) => {
  bytes.write(to, bytes.indexOf(`\0${from}\0`) + 1, 'latin1')
}

there('a binary with requirements beyond Node\'s is rejected', (t) => {
  t.deepEqual(faultsAfter(() => {}), [])
  t.deepEqual(faultsAfter((bytes) => { bytes[18] = 183 }), ['it is for arm64', 'it is aligned to 4096 bytes only'])
  t.deepEqual(faultsAfter((bytes) => { bytes[segment(bytes, STACK) + 4] |= 1 }), ['it wants an executable stack'])
  t.deepEqual(faultsAfter((bytes) => {
    const entry = Buffer.alloc(8)
    entry.writeBigUInt64LE(FLAGS_1)
    bytes.writeBigUInt64LE(0n, bytes.indexOf(entry) + 8)
  }), ['a missing symbol does not fail its load', 'it can be unloaded'])
  t.deepEqual(faultsAfter(rename('libc.so.6', 'libd.so.6')), ['it asks for libd.so.6'])
  t.deepEqual(faultsAfter(rename('CXXABI_1.3', 'CXXABI_1.9')), ['it asks for CXXABI 1.9, Node for 1.3.11'])
  t.throws(() => faultsAfter((bytes) => { bytes[0] = 0 }), { message: 'it is no ELF file' })
})

/** @returns {string | undefined} a directory with headers of this Node */
function headers () {
  const major = process.versions.node.split('.', 1)[0]
  const homes = [path.join(root, '.cache', 'node', major), path.dirname(path.dirname(process.execPath))]
  return homes.map((home) => path.join(home, 'include', 'node'))
    .find((include) => abiOf(include) === Number(process.versions.modules))
}

/** Compiles the addon in a copy of the sources. @param {string} folder @param {string} include */
async function compileIn (folder, include) {
  for (const name of ['native', 'lib/platform.js']) {
    const options = { recursive: true, filter: (/** @type {string} */ file) => !file.includes('prebuilds') }
    fs.cpSync(path.join(root, name), path.join(folder, name), options)
  }
  const out = path.join(folder, 'out.node')
  await require(path.join(folder, 'native', 'compile.js')).compile({ platform: target(), include, out })
  return fs.readFileSync(out)
}

there('a binary is the same whichever directory it is built in', async (t) => {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-')))
  try {
    const include = headers()
    if (include === undefined) throw new Error('there are no headers of this Node')
    const [one, other] = [path.join(folder, 'one'), path.join(folder, 'with', 'a longer path')]
    const built = await compileIn(one, include)
    t.true(built.equals(await compileIn(other, include)))
    for (const text of [folder, include, root]) t.false(built.includes(text), text)
  } catch (error) {
    if (strict || !/there (are no headers|is no C\+\+ compiler)/.test(String(error))) throw error
    skip(t, /** @type {Error} */ (error).message)
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
})
