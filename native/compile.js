'use strict'

// Compiles the addon: one call of a C++ compiler. No node-gyp: it wants Python and a Node newer than the oldest one
// here, and a binding.gyp in a package tempts npm to compile on install (npm/cli#9837).

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')

const sources = fs.readdirSync(__dirname).filter((name) => /\.(cc|h)$/.test(name)).map((name) => path.join(__dirname, name))

// -O2 -fno-omit-frame-pointer: frames are walked through the addon's own. -z nodelete: other addons hold pointers into
// this one, and a worker that ends would unload it. -z now: a missing symbol fails the load, not a later call.
const FLAGS = ['-O2', '-fPIC', '-fno-omit-frame-pointer', '-fno-exceptions', '-fno-rtti', '-fvisibility=hidden', '-Wall', '-Wextra', '-Wno-unused-parameter',
  '-include', path.join(__dirname, 'glibc.h')]

// Node brings libstdc++ and libgcc: linked statically they ask for glibc 2.35, because of the system that they are from.
const LINK = ['-shared', '-Wl,--as-needed,-z,now,-z,nodelete,-z,noexecstack']

const FIRST_CXX20_ABI = 127 // V8 11 of ABI 115 is C++17; later headers refuse it

// What Node's own binaries ask for on x64: those who can run Node can load a binary that asks for no more.
const OLDEST = { GLIBC: '2.28', GLIBCXX: '3.4.21', CXXABI: '1.3.11' }

/** @param {string} include a folder of Node's headers @returns {number | undefined} their ABI */
function abiOf (include) {
  try {
    const text = fs.readFileSync(path.join(include, 'node_version.h'), 'utf8')
    return Number(/^#define NODE_MODULE_VERSION (\d+)/m.exec(text)?.[1]) || undefined
  } catch {
    return undefined
  }
}

/**
 * @param {object} options
 * @param {string} options.include a folder of Node's headers
 * @param {string} options.out the binary; replaced at once, also while others have it loaded
 * @param {string[]} [options.from] sources; default: the addon's
 * @param {string[]} [options.flags] more flags, last
 * @throws {Error} with what the compiler said
 */
function compile ({ include, out, from = sources.filter((name) => name.endsWith('.cc')), flags = [] }) {
  const began = new Date()
  const unfinished = `${out}.${process.pid}`
  const standard = (abiOf(include) ?? Infinity) < FIRST_CXX20_ABI ? '-std=c++17' : '-std=c++20'
  fs.mkdirSync(path.dirname(out), { recursive: true })
  try {
    run([standard, ...FLAGS, '-isystem', include, ...flags, '-o', unfinished, ...from, ...LINK])
    fs.utimesSync(unfinished, began, began) // a source that changes meanwhile is newer
    fs.renameSync(unfinished, out)
  } finally {
    fs.rmSync(unfinished, { force: true })
  }
}

/** @param {string[]} args */
function run (args) {
  const [command, ...words] = (process.env.CXX || 'g++').split(/\s+/)
  const { status, stderr, error } = spawnSync(command, [...words, ...args], { encoding: 'utf8' })
  if (error !== undefined) throw new Error(`there is no C++ compiler (${command})`)
  if (status !== 0) throw new Error(`${command} failed:\n${stderr}`)
  if (stderr !== '') process.stderr.write(stderr)
}

/** Was it made from these sources? @param {string} out */
function fresh (out) {
  const made = modified(out)
  return [...sources, __filename].every((name) => modified(name) < made)
}

/** @param {string} name */
function modified (name) {
  return fs.statSync(name, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

/**
 * The newest versions of shared libraries that a binary asks for.
 * @param {string} binary
 * @returns {{ needs: string, tooNew: string[] }} for a reader, and those that not every Node of its kind has
 */
function libraries (binary) {
  const text = fs.readFileSync(binary, 'latin1')
  const needs = []
  const tooNew = []
  for (const [name, oldest] of Object.entries(OLDEST)) {
    const versions = [...text.matchAll(new RegExp(`\\0${name}_([0-9.]+)(?=\\0)`, 'g'))].map((match) => match[1]).sort(compare)
    const newest = versions.at(-1)
    if (newest === undefined) continue
    needs.push(`${name} ${newest}`)
    if (compare(newest, oldest) > 0) tooNew.push(`${name} ${newest} where Node asks for ${oldest}`)
  }
  return { needs: needs.join(', '), tooNew }
}

/** @param {string} one @param {string} other versions */
function compare (one, other) {
  return one.localeCompare(other, 'en', { numeric: true })
}

module.exports = { compile, fresh, abiOf, libraries }
