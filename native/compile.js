'use strict'

// Compiles the addon. Does not use node-gyp: it needs Python and a Node newer than the oldest one supported
// here, and a binding.gyp in a package makes npm compile on install (npm/cli#9837).

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { compilerFor } = require('./targets')

const sources = fs.readdirSync(__dirname).filter((name) => /\.(cc|h)$/.test(name))
  .map((name) => path.join(__dirname, name))

const FLAGS = [
  '-O2', '-fno-omit-frame-pointer', // the walk passes through the addon's own frames
  '-fPIC', '-fno-exceptions', '-fno-rtti', '-fvisibility=hidden',
  '-fno-sized-deallocation', // Node for macOS has no such `operator delete` in its C++ library
  '-Wall', '-Wextra', '-Wno-unused-parameter',
  '-Wno-cast-function-type' // NODE_MODULE_INIT of node.h
]

// The headers that take longest to read are read once, and precompiled.
const HEADERS = [path.join(__dirname, 'glibc.h'), 'uv.h', 'v8.h', 'node.h']

// libstdc++ and libgcc are Node's: the building machine's, linked statically, would require glibc 2.35. now:
// a missing symbol fails the load, not a later call. nodelete: other addons hold pointers to this one, and
// the end of a worker would unload it. s, and S and x on macOS: symbols that are not exported are half of a
// binary.
const LINK = ['-shared', '-s', '-Wl,--as-needed,-z,now,-z,nodelete,-z,noexecstack']
const LINK_DARWIN = [
  '-shared', '-Wl,-S,-x', '-undefined', 'dynamic_lookup', // Node's symbols are resolved at load
  '-install_name', 'longstack.node' // otherwise the name of the unfinished file
]

const FIRST_CXX20_ABI = 127 // the headers of ABI 115 are C++17, later ones require C++20

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
 * @param {string} options.platform name in targets.js
 * @param {string} options.include directory of Node's headers, which are the same on all platforms
 * @param {string} options.out the binary; replaced atomically, even while processes have it loaded
 * @throws {Error} with the compiler's messages
 */
async function compile ({ platform, include, out }) {
  const start = new Date()
  const directory = `${out}.${process.pid}`
  const { command, link, env } = compilerFor(platform)
  const options = { env: { ...env, ZIG_LOCAL_CACHE_DIR: directory } } // Zig's cache for each call
  const standard = (abiOf(include) ?? Infinity) < FIRST_CXX20_ABI ? '-std=c++17' : '-std=c++20'
  // No binary contains its build directory (__FILE__ in node.h): it is the same from any directory.
  const paths = [`${__dirname}=native`, `${include}=node`, `${directory}=build`]
  const prefixes = paths.map((mapping) => `-ffile-prefix-map=${mapping}`)
  const compiler = [...command, standard, ...FLAGS, ...prefixes, '-isystem', include]
  const headers = path.join(directory, 'headers.h')
  const unfinished = path.join(directory, 'longstack.node')
  fs.mkdirSync(directory, { recursive: true })
  try {
    fs.writeFileSync(headers, HEADERS.map((name) => `#include "${name}"\n`).join(''))
    await runCompiler([...compiler, '-x', 'c++-header', headers, '-o', `${headers}.gch`], options)
    const files = sources.filter((name) => name.endsWith('.cc'))
    const objects = files.map((file) => path.join(directory, `${path.basename(file)}.o`))
    const results = await Promise.allSettled(files.map((file, i) => {
      return runCompiler([...compiler, '-include', headers, '-c', file, '-o', objects[i]], options)
    }))
    for (const result of results) if (result.status === 'rejected') throw result.reason
    const linkFlags = [...(platform.startsWith('darwin') ? LINK_DARWIN : LINK), ...link]
    await runCompiler([...command, '-O2', '-o', unfinished, ...objects, ...linkFlags], options)
    fs.utimesSync(unfinished, start, start) // older than a source that changed meanwhile
    fs.renameSync(unfinished, out)
  } finally {
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

let running = 0
/** starts the next waiting compiler @type {Array<() => void>} */
const waiting = []

/**
 * Runs a compiler, as soon as a CPU is free.
 * @param {string[]} command
 * @param {{ env: NodeJS.ProcessEnv }} options
 */
async function runCompiler ([command, ...args], { env }) {
  if (running < os.availableParallelism()) running++
  else await new Promise((resolve) => { waiting.push(() => resolve(undefined)) })
  try {
    const child = spawn(command, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text) => { stderr += text })
    const status = await new Promise((resolve) => { child.on('error', resolve).on('close', resolve) })
    if (status instanceof Error) throw new Error(`there is no C++ compiler (${command})`)
    if (status !== 0) throw new Error(`${command} failed:\n${stderr}`)
    if (stderr !== '') process.stderr.write(stderr)
  } finally {
    const next = waiting.shift()
    if (next === undefined) running--
    else next()
  }
}

/** @param {string} out @returns {boolean} true if the binary is newer than all sources */
function isFresh (out) {
  const time = modifiedAt(out)
  return [...sources, __filename, require.resolve('./targets')].every((name) => modifiedAt(name) < time)
}

/** @param {string} name @returns {number} ms; 0 if there is no such file */
function modifiedAt (name) {
  return fs.statSync(name, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

module.exports = { compile, isFresh, abiOf }
