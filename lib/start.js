'use strict'

// What is loaded at start comes from one generated file, where there is one (start/build.js makes it): to
// find, read and compile some ninety files takes three times as long. What few programs need comes from
// another one, which is read once and kept as bytes.
//
// Modules go into Node's cache of modules under the names of their sources, so that everybody who requires
// one later gets the same. They go there when they and all that they require are whole, at once: V8 may
// terminate the program that a question was asked in, and a module that Node's own `require` was loading then
// would stay half-loaded (see core/guard.js), as would its count of nested calls.
//
// Where a file is absent or stale, the sources are loaded in the same way; by Node's `require` where this
// one is no use.
//
// In another realm (a vm context, as Jest and Vitest make one per test file) nothing is loaded: what the main
// realm has loaded is returned, so that a realm owns no code of longstack's, and can be collected.

const fs = require('node:fs')
const Module = require('node:module')
const path = require('node:path')
const vm = require('node:vm')

const { parse } = JSON // programs replace it

/**
 * @typedef {object} Header the first line of the generated file, after its slashes
 * @property {string} id of this content: code that was compiled of it ends with the same
 * @property {Record<string, number>} sources bytes of each, by its name in lib/
 *
 * @typedef {(id: string) => unknown} Require
 * @typedef {(exports: object, require: Require, module: NodeJS.Module, file: string, dir: string) => void}
 *   Body
 *   of a module
 * @typedef {{ files: Record<string, string> | undefined, run: Body }} Part files: names by what is required;
 *   undefined: of a source, which is not in a generated file
 *
 * @typedef {object} Later what may be loaded later
 * @property {string} id of the content of the other file
 * @property {Record<string, number>} sources as in Header
 * @property {Record<string, { start: number, end: number, files: Record<string, string> }>} places of bodies
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

const bundleFile = `${__dirname}${path.sep}start${path.sep}bundle`
const laterFile = `${bundleFile}-later`
const cache = /** @type {Record<string, NodeJS.Module>} */ (/** @type {any} */ (Module)._cache)

/**
 * What a start needs: loaded from the generated file, or else from the sources.
 * @typedef {object} Started
 * @property {typeof import('./shared')} shared
 * @property {typeof import('./options')} options
 * @property {typeof import('./warnings')} warnings
 * @property {{ script: vm.Script, id: string }} [bundle] the generated file, where it is in use
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

/** by name @type {Record<string, Part>} */
let parts = Object.create(null)
let bundleId = ''
/** what may be loaded later, once it was read; null: it is no use @type {LaterFile | null | undefined} */
let laterParts

/** @returns {Started | undefined} undefined where the generated file is no use */
function loadBundle () {
  try {
    const text = fs.readFileSync(bundleFile, 'latin1')
    const { id, sources } = /** @type {Header} */ (parse(text.slice(2, text.indexOf('\n'))))
    if (!isFresh(bundleFile, sources) || isLoaded(sources)) return undefined
    const script = new vm.Script(text, { filename: bundleFile, cachedData: readCode(id) })
    parts = script.runInThisContext()
    bundleId = id
    return { ...loadStarted(), bundle: { script, id } }
  } catch {
    parts = Object.create(null)
    laterParts = null
    return undefined
  }
}

/** @returns {Started | undefined} undefined where Node has to load the sources */
function loadSources () {
  try {
    return loadStarted()
  } catch {
    return undefined
  }
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
 * Returns whether the sources are those that a file was made of.
 * @param {string} generatedFile
 * @param {Header['sources']} sources
 */
function isFresh (generatedFile, sources) {
  const inCheckout = fs.existsSync(`${__dirname}${path.sep}..${path.sep}tsconfig.json`)
  const latest = fs.statSync(generatedFile).mtimeMs + (inCheckout ? 0 : INSTALLING_MS)
  return Object.keys(sources).every((name) => {
    const { size, mtimeMs } = fs.statSync(fileOf(name))
    return size === sources[name] && mtimeMs <= latest
  })
}

/** Returns whether one of the sources is loaded already. @param {Header['sources']} sources */
function isLoaded (sources) {
  return Object.keys(sources).some((name) => cache[fileOf(name)] !== undefined)
}

/** @param {string} name in lib/ */
function fileOf (name) {
  if (name.startsWith('..')) return path.join(__dirname, name)
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
  const { files, run } = parts[name] ?? partLater(name) ?? partOfSource(file)
  const module = /** @type {any} */ (new Module(file))
  module.filename = file
  load.modules[file] = module
  const requireFrom = (/** @type {string} */ id) => {
    const required = files === undefined ? nameOf(module.path, id) : files[id]
    if (required !== undefined && (files === undefined || isBundled(required))) {
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

/** @param {string} name */
function isBundled (name) {
  return parts[name] !== undefined || readLater()?.places[name] !== undefined
}

/** @param {string} name @returns {Part | undefined} one that is not in the first file */
function partLater (name) {
  const place = readLater()?.places[name]
  if (place === undefined) return undefined
  const { bytes } = /** @type {LaterFile} */ (readLater())
  const { start, end, files } = place
  const body = bytes.toString('utf8', start, end)
  const run = /** @type {Body} */ (vm.compileFunction(body, PARAMETERS, { filename: fileOf(name) }))
  return { files, run }
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

/**
 * Reads what may be loaded later, once.
 * @typedef {{ bytes: Buffer, places: Later['places'] }} LaterFile bytes: the bodies
 * @returns {LaterFile | undefined} undefined where it cannot be used
 */
function readLater () {
  if (laterParts !== undefined) return laterParts ?? undefined
  try {
    const bytes = fs.readFileSync(laterFile)
    const end = bytes.indexOf('\n')
    const { id, sources, places } = /** @type {Later} */ (parse(bytes.toString('utf8', 0, end)))
    const isUsed = id === bundleId && isFresh(laterFile, sources)
    laterParts = isUsed ? { bytes: bytes.subarray(end + 1), places } : null
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error)
    if (code !== 'EMFILE' && code !== 'ENFILE') laterParts = null
  }
  return laterParts ?? undefined
}

/** @type {Started} */
const started = loadFromMainRealm() ?? (isUsable() ? loadBundle() ?? loadSources() : undefined) ?? {
  shared: require('./shared'),
  options: require('./options'),
  warnings: require('./warnings')
}

// Not a literal: import() of index.js would take its keys for names (cjs-module-lexer).
module.exports = Object.assign(started, { bundleFile, codeFile })
