'use strict'

// Loads modules from generated files if there are any (start/build.js makes them): finding, reading and
// compiling some ninety source files takes three times as long. One file holds what a start needs, and
// belongs to the package. The other holds all other modules, and is read on first use. It is among the files
// for a platform (platform.js), with V8's code cache of both; without that code cache, its text saves no
// time.
//
// Modules are added to Node's module cache under the names of their sources, so that everybody who requires
// one later gets the same object. They are added all at once, when they and all their dependencies are
// complete: V8 may terminate the program in the middle of a query, and a module that Node's own `require` was
// loading would then stay half-loaded (see core/guard.js), as would its count of nested calls.
//
// A source that is in neither file, or has changed since, is loaded the same way. If this loader cannot be
// used, Node's `require` loads all sources.
//
// In another realm (a vm context, such as Jest and Vitest make per test file) nothing is loaded: the modules
// of the main realm are returned, so that a realm owns no code of longstack's and can be collected.

const fs = require('node:fs')
const Module = require('node:module')
const path = require('node:path')
const vm = require('node:vm')
const { findFile, ownManifest } = require('./platform')

const { parse } = JSON // programs may replace it

/**
 * @typedef {object} Header first line of the generated file, after its slashes
 * @property {string} id id of one build; a code cache compiled from it ends with the same id
 * @property {Record<string, number>} sources size in bytes of each source, by its name in lib/
 *
 * @typedef {(id: string) => unknown} Require
 * @typedef {(exports: object, require: Require, module: NodeJS.Module, file: string, dir: string) => void}
 *   Body
 *   function of a module
 * @typedef {{ files: Record<string, string> | undefined, run: Body }} Part files: names by required id;
 *   undefined for a source
 *
 * @typedef {object} Bundle a generated file that has been read
 * @property {string} id
 * @property {Record<string, Part>} parts by name
 * @property {Record<string, number>} sources as in the header
 * @property {number} latest ms; a source that changed later is newer
 * @property {vm.Script} script
 *
 * @typedef {object} Load modules that enter the cache together
 * @property {Record<string, NodeJS.Module>} modules by file
 * @property {boolean} isOpen
 */

const ID_BYTES = 16
// npm writes files in any order, with the time of writing as mtime; patches come later
const INSTALLING_MS = 2000

const NOT_LOADED = ['EMFILE', 'ENFILE', 'EACCES', 'ENOENT', 'MODULE_NOT_FOUND', 'ERR_INVALID_PACKAGE_CONFIG']
const PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname']

const BUNDLE = 'bundle'
const LATER = 'bundle-later'
const directory = `${__dirname}${path.sep}start${path.sep}`
const cache = /** @type {Record<string, NodeJS.Module>} */ (/** @type {any} */ (Module)._cache)

/**
 * Modules that a start needs: from the generated file, or else from the sources.
 * @typedef {object} Started
 * @property {typeof import('./shared')} shared
 * @property {typeof import('./options')} options
 * @property {typeof import('./warnings')} warnings
 * @property {() => Array<Bundle | undefined>} [bundles] reads the generated files, if they are in use
 * @property {() => void} [prepare] makes `require` of the package work without opening files
 */

/**
 * Returns this file's exports in the main realm.
 * @returns {Started | undefined} undefined in the main realm itself, or if it cannot be reached
 */
function loadFromMainRealm () {
  // Node's own functions belong to the main realm
  if (Object.getPrototypeOf(path.join) === Function.prototype) return undefined
  try {
    // Test runners give their realms their own `require`, `process` and 'node:module'.
    const { createRequire } = vm.runInThisContext("process.getBuiltinModule('node:module')")
    const { shared, ...others } = createRequire(__filename)(__filename)
    shared.tracer.addRealm(Error)
    return { shared, ...others }
  } catch {
    return undefined
  }
}

/** modules for the start @type {Bundle | undefined} */
let bundle
/** all other modules, once read; null if unusable @type {Bundle | null | undefined} */
let later
/** the same file, read at start but not yet compiled @type {{ file: string, content: Buffer } | undefined} */
let unread

/** @returns {Started | undefined} undefined if Node has to load the sources */
function loadOwn () {
  try {
    bundle = readBundle(BUNDLE, `${directory}${BUNDLE}`)
    const loaded = loadStarted()
    return { ...loaded, bundles: () => [bundle, readLater()], prepare: () => prepare(loaded.shared) }
  } catch {
    bundle = undefined
    later = null
  }
  try {
    return loadStarted() // from the sources
  } catch {
    return undefined
  }
}

/**
 * Makes `require` of the package work without a free descriptor: a program that has run out of them needs to
 * find who holds them. Reading the text of the other file takes a fifth of a millisecond at start; compiling
 * it can wait.
 * @param {import('./shared')} shared
 */
function prepare (shared) {
  const file = path.join(__dirname, '..', 'index.js')
  if (cache[file] !== undefined) return // the program required it first
  try {
    const name = findFile(LATER)
    if (name !== undefined) unread = { file: name, content: fs.readFileSync(name) }
    findFromMain()
  } catch {} // read later, when needed
  const module = new Module(file)
  module.filename = file
  module.paths = /** @type {any} */ (Module)._nodeModulePaths(module.path)
  module.loaded = true
  const define = (/** @type {unknown} */ value) => {
    Object.defineProperty(module, 'exports', { value, writable: true, enumerable: true, configurable: true })
  }
  Object.defineProperty(module, 'exports', {
    get () {
      define(shared.trace)
      return module.exports
    },
    set: define,
    enumerable: true,
    configurable: true
  })
  cache[file] = module
}

/** Makes Node read and cache this package's manifest. A worker's script is not known yet. */
function findFromMain () {
  const { _findPath, _nodeModulePaths } = /** @type {any} */ (Module)
  const directories = [path.dirname(process.argv[1] ?? ''), '.'].map((directory) => path.resolve(directory))
  _findPath(ownManifest().name, directories.flatMap((directory) => _nodeModulePaths(directory)))
}

/** @param {string} name @param {string} file @param {string} [text] content of the file @returns {Bundle} */
function readBundle (name, file, text = fs.readFileSync(file, 'latin1')) {
  const { id, sources } = /** @type {Header} */ (parse(text.slice(2, text.indexOf('\n'))))
  // Its frames count as longstack's own, wherever the file is
  const options = { filename: `${directory}${name}`, cachedData: readCode(name, id) }
  const script = new vm.Script(text, options)
  return { id, sources, latest: bundle?.latest ?? latestOf(file), script, parts: script.runInThisContext() }
}

/** @param {string} file @returns {number} ms; latest possible mtime of its sources */
function latestOf (file) {
  const inCheckout = fs.existsSync(`${__dirname}${path.sep}..${path.sep}tsconfig.json`)
  return fs.statSync(file).mtimeMs + (inCheckout ? 0 : INSTALLING_MS)
}

/** @returns {Bundle | undefined} undefined if it cannot be used */
function readLater () {
  if (later !== undefined) return later ?? undefined
  try {
    const file = unread?.file ?? findFile(LATER)
    const text = unread?.content.toString('latin1')
    const read = file === undefined ? undefined : readBundle(LATER, file, text)
    later = read !== undefined && read.id === bundle?.id ? read : null
    unread = undefined
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error)
    const isPassing = code === 'EMFILE' || code === 'ENFILE' || error instanceof RangeError // a full stack
    if (!isPassing) later = null
  }
  return later ?? undefined
}

/** @param {string} name in lib/ @returns {Bundle | undefined} the bundle that contains it */
function bundleOf (name) {
  if (bundle?.parts[name] !== undefined) return bundle
  const other = readLater()
  return other?.parts[name] === undefined ? undefined : other
}

/** @returns {Started} */
function loadStarted () {
  const [shared, options, warnings] = loadAll(['shared.js', 'options.js', 'warnings.js'])
  return { shared, options, warnings }
}

/** Returns whether the bundles can be used: not with a foreign `require` cache, nor under coverage. */
function isUsable () {
  if (require.cache !== cache || process.env.NODE_V8_COVERAGE !== undefined) return false
  return !process.execArgv.some((flag) => flag.startsWith('--build-snapshot'))
}

/**
 * Returns whether a source is unchanged since the bundle was made.
 * @param {string} name in lib/
 * @param {Bundle} bundle
 */
function isFresh (name, { sources, latest }) {
  if (sources[name] === undefined) return true // of another package
  try {
    const { size, mtimeMs } = fs.statSync(fileOf(name))
    return size === sources[name] && mtimeMs <= latest
  } catch {
    return true // it is gone, or nothing can be read any more
  }
}

/** @param {string} name in lib/ */
function fileOf (name) {
  if (name.startsWith('..')) return path.join(__dirname, name)
  return `${__dirname}${path.sep}${path.sep === '/' ? name : name.replaceAll('/', path.sep)}`
}

/**
 * Names V8's code cache of a generated file. Another V8, or the same with other flags, rejects it.
 * @param {string} name name of the generated file
 */
function codeName (name) {
  return `${name}.${process.versions.v8}`
}

/**
 * Reads the code cache of a file. V8 itself compares only the length of the text.
 * @param {string} name name of the file
 * @param {string} id id of the text
 * @returns {Buffer | undefined}
 */
function readCode (name, id) {
  try {
    const file = findFile(codeName(name))
    const data = file === undefined ? undefined : fs.readFileSync(file)
    return data?.toString('latin1', data.length - ID_BYTES) === id ? data.subarray(0, -ID_BYTES) : undefined
  } catch {
    return undefined
  }
}

/** @param {string[]} names @returns {any[]} exports of these modules */
function loadAll (names) {
  /** @type {Load} */
  const load = { modules: {}, isOpen: true }
  const all = names.map((name) => loadInto(load, name))
  Object.assign(cache, load.modules) // complete, wherever V8 terminates
  load.isOpen = false
  return all
}

/** @param {Load} load @param {string} name @returns {any} exports of the module */
function loadInto (load, name) {
  const file = fileOf(name)
  const known = cache[file] ?? load.modules[file]
  if (known !== undefined) return known.exports
  const from = bundleOf(name)
  const { files, run } = from !== undefined && isFresh(name, from) ? from.parts[name] : partOfSource(file)
  const module = /** @type {any} */ (new Module(file))
  module.filename = file
  load.modules[file] = module
  const requireFrom = (/** @type {string} */ id) => {
    const required = files === undefined ? nameOf(module.path, id) : files[id]
    if (required !== undefined && (files === undefined || bundleOf(required) !== undefined)) {
      if (load.isOpen) return loadInto(load, required)
      return cache[fileOf(required)]?.exports ?? loadAll([required])[0]
    }
    const builtIn = process.getBuiltinModule?.(id) // Node's require would publish it
    if (builtIn !== undefined || id.startsWith('node:')) return builtIn ?? require(id)
    module.paths ??= /** @type {any} */ (Module)._nodeModulePaths(module.path)
    return required === undefined ? module.require(id) : requireSource(module, id)
  }
  requireFrom.cache = cache
  requireFrom.resolve = (/** @type {string} */ id, /** @type {NodeJS.RequireResolveOptions} */ options) => {
    return Module.createRequire(file).resolve(id, options)
  }
  try {
    run.call(module.exports, module.exports, requireFrom, module, file, module.path)
  } catch (error) {
    delete load.modules[file]
    throw error
  }
  module.loaded = true
  return module.exports
}

/** @param {NodeJS.Module} module @param {string} id another file of longstack */
function requireSource (module, id) {
  try {
    return module.require(id)
  } catch (cause) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (cause)
    if (!NOT_LOADED.includes(String(code))) throw cause
    const error = new Error(`longstack cannot load ${id}: ${message.split('\n', 1)[0]}`, { cause })
    throw Object.assign(error, { code: 'ERR_LONGSTACK_NOT_AVAILABLE' })
  }
}

/** @param {string} file @returns {Part} */
function partOfSource (file) {
  const options = { filename: file }
  const run = /** @type {Body} */ (vm.compileFunction(fs.readFileSync(file, 'utf8'), PARAMETERS, options))
  return { files: undefined, run }
}

/**
 * Returns the name of a source that another one requires.
 * @param {string} directory of the requiring source
 * @param {string} id
 * @returns {string | undefined} undefined if it is not a source
 */
function nameOf (directory, id) {
  if (!id.startsWith('.') || id.endsWith('.json')) return undefined
  const file = path.join(directory, id.endsWith('.js') ? id : `${id}.js`)
  return fs.existsSync(file) ? path.relative(__dirname, file).replaceAll('\\', '/') : undefined
}

/** @type {Started} */
const started = loadFromMainRealm() ?? (isUsable() ? loadOwn() : undefined) ?? {
  shared: require('./shared'),
  options: require('./options'),
  warnings: require('./warnings')
}

// Not a literal: import() of index.js would take its keys for export names (cjs-module-lexer).
module.exports = Object.assign(started, { codeName })
