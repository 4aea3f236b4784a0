'use strict'

// Compiles the addon: one call of a C++ compiler. No node-gyp: it wants Python and a Node newer than the
// oldest one supported here, and a binding.gyp in a package tempts npm to compile on install (npm/cli#9837).

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { compilerFor } = require('./targets')

const sources = fs.readdirSync(__dirname).filter((name) => /\.(cc|h)$/.test(name))
  .map((name) => path.join(__dirname, name))

const FLAGS = [
  '-O2', '-fno-omit-frame-pointer', // frames are walked through the addon's own
  '-fPIC', '-fno-exceptions', '-fno-rtti', '-fvisibility=hidden',
  '-Wall', '-Wextra', '-Wno-unused-parameter',
  '-include', path.join(__dirname, 'glibc.h')
]

// libstdc++ and libgcc are those that Node brings: linked statically, those of the building machine would ask
// for glibc 2.35. now: a missing symbol fails the load, not a later call. nodelete: other addons hold
// pointers into this one, which the end of a worker would unload.
const LINK = ['-shared', '-Wl,--as-needed,-z,now,-z,nodelete,-z,noexecstack']
const LINK_DARWIN = ['-shared', '-undefined', 'dynamic_lookup'] // what Node has is found when it is loaded

const FIRST_CXX20_ABI = 127 // the headers of ABI 115 are C++17, later ones refuse it

// Newest versions that Node's own x64 binaries ask for: whoever runs Node can load a binary that asks for no
// newer.
const NODE_NEEDS = { GLIBC: '2.28', GLIBCXX: '3.4.21', CXXABI: '1.3.11' }

/** @param {string} include directory of Node's headers @returns {number | undefined} their ABI */
function abiOf (include) {
  try {
    const text = fs.readFileSync(path.join(include, 'node_version.h'), 'utf8')
    return Number(/^#define NODE_MODULE_VERSION (\d+)/m.exec(text)?.[1]) || undefined
  } catch {
    return undefined
  }
}

/**
 * Compiles the addon.
 * @param {object} options
 * @param {string} options.platform a name of targets.js
 * @param {string} options.include directory of Node's headers, which are the same on all platforms
 * @param {string} options.out the binary; replaced in one step, also while processes have it loaded
 * @throws {Error} with the compiler's messages
 */
function compile ({ platform, include, out }) {
  const start = new Date()
  const unfinished = `${out}.${process.pid}`
  const standard = (abiOf(include) ?? Infinity) < FIRST_CXX20_ABI ? '-std=c++17' : '-std=c++20'
  const files = sources.filter((name) => name.endsWith('.cc'))
  const link = platform.startsWith('darwin') ? LINK_DARWIN : LINK
  const [command, ...args] = [...compilerFor(platform), standard, ...FLAGS]
  fs.mkdirSync(path.dirname(out), { recursive: true })
  try {
    runCompiler(command, [...args, '-isystem', include, '-o', unfinished, ...files, ...link])
    fs.utimesSync(unfinished, start, start) // older than a source that changed meanwhile
    fs.renameSync(unfinished, out)
  } finally {
    fs.rmSync(unfinished, { force: true })
  }
}

/** @param {string} command @param {string[]} args */
function runCompiler (command, args) {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
  if (error !== undefined) throw new Error(`there is no C++ compiler (${command})`)
  if (status !== 0) throw new Error(`${command} failed:\n${stderr}`)
  if (stderr !== '') process.stderr.write(stderr)
}

/** @param {string} out @returns {boolean} the binary is newer than all sources */
function isFresh (out) {
  const time = modifiedAt(out)
  return [...sources, __filename].every((name) => modifiedAt(name) < time)
}

/** @param {string} name @returns {number} ms; 0 if there is no such file */
function modifiedAt (name) {
  return fs.statSync(name, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

/**
 * Reads the newest versions of shared libraries that a binary asks for.
 * @param {string} binary
 * @returns {{ needs: string, tooNew: string[] }} all of them, as text; those that Node itself does not ask
 *   for
 */
function libraries (binary) {
  const text = fs.readFileSync(binary, 'latin1')
  const needs = []
  const tooNew = []
  for (const [name, nodeVersion] of Object.entries(NODE_NEEDS)) {
    const matches = [...text.matchAll(new RegExp(`\\0${name}_([0-9.]+)(?=\\0)`, 'g'))]
    const newest = matches.map((match) => match[1]).sort(compareVersions).at(-1)
    if (newest === undefined) continue
    needs.push(`${name} ${newest}`)
    if (compareVersions(newest, nodeVersion) > 0) tooNew.push(`${name} ${newest}, Node for ${nodeVersion}`)
  }
  return { needs: needs.join(', '), tooNew }
}

/** @param {string} a @param {string} b */
function compareVersions (a, b) {
  return a.localeCompare(b, 'en', { numeric: true })
}

module.exports = { compile, isFresh, abiOf, libraries }
