'use strict'

// Modules come from generated files, where there are any (start/build.js makes them): to find, read and
// compile some ninety files takes three times as long. One has what a start needs, and belongs to the
// package; the other has all else, is read once that is asked for, and is with what V8 has compiled of both
// among the files for a platform (platform.js): without that code its text saves no time.
//
// Modules go into Node's cache of modules under the names of their sources, so that everybody who requires
// one later gets the same. They go there when they and all that they require are whole, at once: V8 may
// terminate the program that a question was asked in, and a module that Node's own `require` was loading then
// would stay half-loaded (see core/guard.js), as would its count of nested calls.
//
// A source that is in neither, or has changed since, is loaded in the same way; all by Node's `require` where
// this one is no use.
//
// In another realm (a vm context, as Jest and Vitest make one per test file) nothing is loaded: what the main
// realm has loaded is returned, so that a realm owns no code of longstack's, and can be collected.

const fs = require('node:fs')
const Module = require('node:module')
const path = require('node:path')
const vm = require('node:vm')
const { findFile, ownManifest } = require('./platform')

const { parse } = JSON // programs replace it

/**
 * @typedef {object} Header the first line of the generated file, after its slashes
 * @property {string} id of what was made together: code that was compiled of it ends with the same
 * @property {Record<string, number>} sources bytes of each, by its name in lib/
 *
 * @typedef {(id: string) => unknown} Require
 * @typedef {(exports: object, require: Require, module: NodeJS.Module, file: string, dir: string) => void}
 *   Body
 *   of a module
 * @typedef {{ files: Record<string, string> | undefined, run: Body }} Part files: names by what is required;
 *   undefined: of a source
 *
 * @typedef {object} Bundle a generated file that was read
 * @property {string} id
 * @property {Record<string, Part>} parts by name
 * @property {Record<string, number>} sources as in its header
 * @property {number} latest ms: a source that changed later is newer
 * @property {vm.Script} script
 *
 * @typedef {object} Load of modules that go into the cache at once
 * @property {Record<string, NodeJS.Module>} modules by file
 * @property {boolean} isOpen
 */

const ID_BYTES = 16
// Npm writes files in any order, and leaves them the time of that; what patches them comes later
const INSTALLING_MS = 2000

const NOT_LOADED = ['EMFILE', 'ENFILE', 'EACCES', 'ENOENT', 'MODULE_NOT_FOUND', 'ERR_INVALID_PACKAGE_CONFIG']
const PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname']

const BUNDLE = 'bundle'
const LATER = 'bundle-later'
const directory = `${__dirname}${path.sep}start${path.sep}`
const cache = /** @type {Record<string, NodeJS.Module>} */ (/** @type {any} */ (Module)._cache)

/**
 * What a start needs: loaded from the generated file, or else from the sources.
 * @typedef {object} Started
 * @property {typeof import('./shared')} shared
 * @property {typeof import('./options')} options
 * @property {typeof import('./warnings')} warnings
 * @property {() => Array<Bundle | undefined>} [bundles] reads the generated files, where they are in use
 * @property {() => void} [prepare] has `require` of the package answered from memory
 */

/**
 * Returns what this file exports in the main realm.
 * @returns {Started | undefined} undefined in the main realm itself, and where that cannot be reached
 */
function loadFromMainRealm () {
  // Node's own functions are those of the main realm
  if (Object.getPrototypeOf(path.join) === Function.prototype) return undefined
  try {
    // A runner gives its realms a `require`, a `process` and a 'node:module' of its own.
    const { createRequire } = vm.runInThisContext("process.getBuiltinModule('node:module')")
    const { shared, ...others } = createRequire(__filename)(__filename)
    shared.tracer.addRealm(Error)
    return { shared, ...others }
  } catch {
    return undefined
  }
}

/** what a start needs @type {Bundle | undefined} */
let bundle
/** all else, once it was read; null: it is no use @type {Bundle | null | undefined} */
let later
/** of the same file, read at the start @type {{ file: string, content: Buffer } | undefined} */
let unread

/** @returns {Started | undefined} undefined where Node has to load the sources */
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
 * Has the program get what `require` of the package gives without a descriptor: it asks who has all of them
 * open when there is none left. The text of the other file takes a start a fifth of a millisecond to read;
 * that it is compiled can wait.
 * @param {import('./shared')} shared
 */
function prepare (shared) {
  const file = path.join(__dirname, '..', 'index.js')
  if (cache[file] !== undefined) return // the program came first
  try {
    const name = findFile(LATER)
    if (name !== undefined) unread = { file: name, content: fs.readFileSync(name) }
    findFromMain()
  } catch {} // it is read when it is needed
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

/** Has Node read this package's manifest, which it keeps. A worker's script is not known yet. */
function findFromMain () {
  const { _findPath, _nodeModulePaths } = /** @type {any} */ (Module)
  const directories = [path.dirname(process.argv[1] ?? ''), '.'].map((directory) => path.resolve(directory))
  _findPath(ownManifest().name, directories.flatMap((directory) => _nodeModulePaths(directory)))
}

/** @param {string} name @param {string} file @param {string} [text] what is in it @returns {Bundle} */
function readBundle (name, file, text = fs.readFileSync(file, 'latin1')) {
  const { id, sources } = /** @type {Header} */ (parse(text.slice(2, text.indexOf('\n'))))
  // Frames in it are longstack's own wherever it lies
  const options = { filename: `${directory}${name}`, cachedData: readCode(name, id) }
  const script = new vm.Script(text, options)
  return { id, sources, latest: bundle?.latest ?? latestOf(file), script, parts: script.runInThisContext() }
}

/** @param {string} file @returns {number} ms: when a source that belongs to it has changed at the latest */
function latestOf (file) {
  const inCheckout = fs.existsSync(`${__dirname}${path.sep}..${path.sep}tsconfig.json`)
  return fs.statSync(file).mtimeMs + (inCheckout ? 0 : INSTALLING_MS)
}

/** @returns {Bundle | undefined} undefined where it cannot be used */
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

/** @param {string} name in lib/ @returns {Bundle | undefined} that has it */
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

/** Returns whether the file may be used: not with a `require` that has other modules, nor under coverage. */
function isUsable () {
  if (require.cache !== cache || process.env.NODE_V8_COVERAGE !== undefined) return false
  return !process.execArgv.some((flag) => flag.startsWith('--build-snapshot'))
}

/**
 * Returns whether a source is the one that a file was made of.
 * @param {string} name in lib/
 * @param {Bundle} bundle
 */
function isFresh (name, { sources, latest }) {
  if (sources[name] === undefined) return true // a package's
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
 * Names the code that the running V8 compiled of a generated file. Another V8, or the same with other flags,
 * refuses it.
 * @param {string} name of that file
 */
function codeName (name) {
  return `${name}.${process.versions.v8}`
}

/**
 * Reads code that was compiled of a file. V8 itself compares nothing but the text's length.
 * @param {string} name of the file
 * @param {string} id of the text
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

/** @param {string[]} names @returns {any[]} what these modules export */
function loadAll (names) {
  /** @type {Load} */
  const load = { modules: {}, isOpen: true }
  const all = names.map((name) => loadInto(load, name))
  Object.assign(cache, load.modules) // nothing is half done wherever V8 terminates
  load.isOpen = false
  return all
}

/** @param {Load} load @param {string} name @returns {any} what a module exports */
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

/** @param {NodeJS.Module} module @param {string} id of another file of longstack's */
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
 * @param {string} directory of the other
 * @param {string} id
 * @returns {string | undefined} undefined where it is none
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

// Not a literal: import() of index.js would take its keys for names (cjs-module-lexer).
module.exports = Object.assign(started, { codeName })
