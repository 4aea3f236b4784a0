'use strict'

// Binaries for macOS, which do not run here: every symbol that one imports is exported by that version of
// Node for macOS, and it is signed and laid out as Apple's systems require. Those for Node 24 are compiled
// here, others are tested if `npm run binaries` has built them.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { compile, isFresh } = require('../../native/compile')
const { binaryName, ownDirectory } = require('../../lib/platform')
const { readMachO } = require('../helpers/mach-o')
const { root } = require('../helpers/run')
const { skip } = require('../helpers/skip')
const { wheelNode } = require('../helpers/wheel-nodes')

const ABIS = { 20: 115, 22: 127, 24: 137, 26: 147 }
const COMPILED = 24
const PAGES = { 'darwin-arm64': 1 << 14, 'darwin-x64': 1 << 12 }

/** What native/layout.cc cannot do without. @returns {string[]} */
function neededConstants () {
  const source = fs.readFileSync(path.join(root, 'native', 'layout.cc'), 'utf8')
  const offsets = [...source.matchAll(/"(v8dbg_off_\w+)"/g)].map(([, name]) => name)
  const types = [...source.matchAll(/ReadType\("(\w+)"/g)].map(([, name]) => `v8dbg_frametype_${name}`)
  return [...offsets, ...types]
}

/**
 * @param {string} platform
 * @param {number} major
 * @returns {Promise<string | undefined>} the binary; undefined where nobody compiled it
 */
async function binaryOf (platform, major) {
  const out = path.join(ownDirectory(platform), binaryName(ABIS[major]))
  const include = path.join(root, '.cache', 'node', String(major), 'include', 'node')
  if (isFresh(out)) return out
  if (major !== COMPILED) return undefined
  await compile({ platform, include, out })
  return out
}

for (const platform of ['darwin-arm64', 'darwin-x64']) {
  for (const major of [20, 22, 24, 26]) {
    test.serial(`the binary is valid Mach-O: ${platform}, Node ${major}`, async (t) => {
      /** @type {string | undefined} */
      let file
      let node = ''
      try {
        file = await binaryOf(platform, major)
        if (file !== undefined) node = wheelNode(platform, major)
      } catch (error) {
        return skip(t, /** @type {Error} */ (error).message.split('\n', 1)[0])
      }
      if (file === undefined) {
        t.log('not tested: it was not compiled')
        return t.pass()
      }
      suits(t, platform, readMachO(file), readMachO(node))
    })
  }
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} platform
 * @param {import('../helpers/mach-o').MachO} addon
 * @param {import('../helpers/mach-o').MachO} node
 */
function suits (t, platform, addon, node) {
  t.is(`darwin-${addon.arch}`, platform)
  t.is(`darwin-${node.arch}`, platform)
  t.true(addon.needsOfAny.includes('_uv_hrtime'))
  // `operator new` is in Apple's C++ library, which Node is loaded with
  const there = new Set([...node.exported, ...node.needs])
  t.deepEqual(addon.needsOfAny.filter((name) => !there.has(name)), [], 'what Node lacks')
  t.deepEqual(addon.libraries, ['/usr/lib/libSystem.B.dylib'])

  const constants = neededConstants()
  t.is(constants.length, 7)
  t.deepEqual(constants.filter((name) => !node.exported.has(`_${name}`)), [], 'constants that Node lacks')

  if (addon.arch === 'arm64') t.true(addon.signedPages > 0, 'its signature is missing or wrong')
  t.deepEqual(addon.segments.filter((address) => address % PAGES[platform] !== 0), [])
  t.true(addon.oldest.localeCompare(node.oldest, 'en', { numeric: true }) <= 0, `${addon.oldest}, Node ${node.oldest}`)
  t.false(addon.name.includes(root), 'it tells where it was made')
}
