'use strict'

// Compilers for each platform with the native engine (PLATFORMS in lib/platform.js): the system's C++
// compiler for the system itself, and Zig's, which includes C and C++ libraries, for the others.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { target } = require('../lib/platform')

// Zig's names of the platforms, with the oldest system that Node itself supports.
/** @type {Record<string, string>} */
const targets = {
  'linux-x64': 'x86_64-linux-gnu.2.28',
  'linux-arm64': 'aarch64-linux-gnu.2.28',
  'linuxmusl-x64': 'x86_64-linux-musl',
  'linuxmusl-arm64': 'aarch64-linux-musl',
  'darwin-arm64': 'aarch64-macos.11.0',
  'darwin-x64': 'x86_64-macos.10.15'
}

const ZIG = 'ziglang==0.17.1' // made and signed by the Zig project: https://pypi.org/project/ziglang
const zigHome = path.join(__dirname, '..', '.cache', 'zig')

// Zig's libraries are not linked: each Node has a C++ library, and the addon needs only `operator new` and
// the like from it.
const ZIG_LINK = ['-nostdlib++', '-rtlib=none']

/**
 * Returns the compiler for a platform.
 * @param {string} name of the platform
 * @returns {{ command: string[], link: string[], env: NodeJS.ProcessEnv }} with its first arguments, and
 *   additional ones for linking
 */
function compilerFor (name) {
  const { env } = process
  if (name === target()) return { command: (env.CXX || 'g++').split(/\s+/), link: [], env }
  const libraries = `${zigHome}-libraries` // built by Zig once, for linking
  const command = [zig(), 'c++', '-target', targets[name]]
  return { command, link: ZIG_LINK, env: { ...env, ZIG_GLOBAL_CACHE_DIR: libraries } }
}

/** @returns {string} Zig's binary, fetched from PyPI once */
function zig () {
  const file = path.join(zigHome, 'ziglang', 'zig')
  if (fs.existsSync(file)) return file
  const temporary = `${zigHome}.${process.pid}`
  const pip = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--only-binary=:all:']
  const args = [...pip, '--target', temporary, ZIG]
  const { status, stderr, error } = spawnSync('python3', args, { encoding: 'utf8' })
  try {
    if (status !== 0) throw new Error(`there is no ${ZIG}: ${error?.message ?? stderr.trim()}`)
    fs.mkdirSync(path.dirname(zigHome), { recursive: true })
    if (!fs.existsSync(file)) fs.renameSync(temporary, zigHome)
  } catch (error) {
    if (!fs.existsSync(file)) throw error // another process extracted it first
  } finally {
    fs.rmSync(temporary, { recursive: true, force: true })
  }
  return file
}

module.exports = { compilerFor, targets }
