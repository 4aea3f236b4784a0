'use strict'

// What is loaded at start comes from one generated file, where there is one (start/build.js makes it): to
// find, read and compile some thirty files takes twice as long. Its modules go into Node's cache of modules
// under the names of their sources, so that everybody who requires one later gets the same. Where the file is
// absent, stale or no use, nothing happens here, and the sources are loaded. Never throws.

const fs = require('node:fs')
const Module = require('node:module')
const path = require('node:path')
const vm = require('node:vm')

/**
 * @typedef {object} Header the first line of the generated file, after its slashes
 * @property {string} id of this content: code that was compiled of it ends with the same
 * @property {Record<string, number>} sources bytes of each, by its name in lib/
 *
 * @typedef {(id: string) => unknown} Require
 * @typedef {(exports: object, require: Require, module: NodeJS.Module, file: string, dir: string) => void}
 *   Body
 *   of a module
 * @typedef {Record<string, { files: Record<string, string>, run: Body }>} Parts by name; files: names by what
 *   is required
 */

const ID_BYTES = 16
// Npm writes files in any order, and leaves them the time of that; what patches them comes later
const INSTALLING_MS = 2000

const bundleFile = `${__dirname}${path.sep}start${path.sep}bundle`
const cache = /** @type {Record<string, NodeJS.Module>} */ (/** @type {any} */ (Module)._cache)

/**
 * What a start needs: loaded from the generated file, or else from the sources.
 * @typedef {object} Started
 * @property {typeof import('./shared')} shared
 * @property {typeof import('./options')} options
 * @property {typeof import('./warnings')} warnings
 * @property {{ script: vm.Script, id: string }} [bundle] the generated file, where it is in use
 */

/** @returns {Started | undefined} undefined where the sources are to be loaded */
function loadBundle () {
  /** @type {string[]} */
  const added = []
  try {
    if (!isUsable()) return undefined
    const text = fs.readFileSync(bundleFile, 'latin1')
    const { id, sources } = /** @type {Header} */ (JSON.parse(text.slice(2, text.indexOf('\n'))))
    if (!isFresh(sources)) return undefined
    const script = new vm.Script(text, { filename: bundleFile, cachedData: readCode(id) })
    const load = loaderOf(script.runInThisContext(), added)
    const bundle = { script, id }
    return { shared: load('shared.js'), options: load('options.js'), warnings: load('warnings.js'), bundle }
  } catch {
    for (const file of added) delete cache[file]
    return undefined
  }
}

/** Returns whether the file may be used: not with a `require` that has other modules, nor under coverage. */
function isUsable () {
  if (require.cache !== cache || process.env.NODE_V8_COVERAGE !== undefined) return false
  return !process.execArgv.some((flag) => flag.startsWith('--build-snapshot'))
}

/**
 * Returns whether the sources are those it was made of, and none is loaded.
 * @param {Header['sources']} sources
 */
function isFresh (sources) {
  const inCheckout = fs.existsSync(`${__dirname}${path.sep}..${path.sep}tsconfig.json`)
  const latest = fs.statSync(bundleFile).mtimeMs + (inCheckout ? 0 : INSTALLING_MS)
  return Object.keys(sources).every((name) => {
    const file = fileOf(name)
    const { size, mtimeMs } = fs.statSync(file)
    return size === sources[name] && mtimeMs <= latest && cache[file] === undefined
  })
}

/** @param {string} name in lib/ */
function fileOf (name) {
  return `${__dirname}${path.sep}${path.sep === '/' ? name : name.replaceAll('/', path.sep)}`
}

/** Where code that the running V8 compiled is kept. Another V8, or the same with other flags, refuses it. */
function codeFile () {
  return `${bundleFile}.${process.versions.v8}-${process.platform}-${process.arch}`
}

/**
 * Reads code that was compiled of the text. V8 itself compares nothing but the text's length.
 * @param {string} id of the text
 * @returns {Buffer | undefined}
 */
function readCode (id) {
  try {
    const data = fs.readFileSync(codeFile())
    return data.toString('latin1', data.length - ID_BYTES) === id ? data.subarray(0, -ID_BYTES) : undefined
  } catch {
    return undefined
  }
}

/**
 * @param {Parts} parts
 * @param {string[]} added files that are in the cache because of it
 * @returns {(name: string) => any} loads a module
 */
function loaderOf (parts, added) {
  /** @param {string} name */
  function load (name) {
    const file = fileOf(name)
    if (cache[file] !== undefined) return cache[file].exports
    const module = /** @type {any} */ (new Module(file))
    const { files, run } = parts[name]
    module.filename = file
    cache[file] = module
    added.push(file)
    const requireFrom = (/** @type {string} */ id) => {
      if (files[id] !== undefined) return load(files[id])
      if (id.startsWith('node:')) return require(id)
      module.paths ??= /** @type {any} */ (Module)._nodeModulePaths(module.path)
      return module.require(id)
    }
    run.call(module.exports, module.exports, requireFrom, module, file, module.path)
    module.loaded = true
    return module.exports
  }
  return load
}

/** @type {Started} */
const started = loadBundle() ?? {
  shared: require('./shared'),
  options: require('./options'),
  warnings: require('./warnings')
}

// Not a literal: import() of index.js would take its keys for names (cjs-module-lexer).
module.exports = Object.assign(started, { bundleFile, codeFile })
