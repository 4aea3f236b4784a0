'use strict'

// Makes the files that ../start.js loads instead of the sources, without comments: one with the modules for a
// start, one with those the process may need later, and V8's code caches of both. --quiet, for `prepare`,
// prints at most one line and never fails; without the files, everything works but starts more slowly.
// --pack, before packing, makes code caches for each installed Node; a missing one is reported, and is an
// error only in CI.

const { spawnSync } = require('node:child_process')
const { createHash } = require('node:crypto')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { attempt } = require('../files')
const { ownDirectory } = require('../platform')

const ENTRIES = ['shared.js', 'tracer.js', 'options.js', 'warnings.js', 'attribution/error-hops.js']
const FIRST_MAJOR = 22 // V8 11 of Node 20 gives functions the file name they were compiled with
const INHERITED = /^(LONGSTACK|NODE_)/

// Dependencies that may load on top of the program's stack, so the bundle includes them
const BUNDLED_PACKAGES = ['source-map-support', 'source-map', 'buffer-from']
const PACKAGES = 'node_modules/' // prefix of their files' names, as if lib/ contained them

const lib = path.join(__dirname, '..')
const MAX_DIGITS = 6 // digits of a source's size

const BUNDLE = 'bundle'
const LATER = 'bundle-later'
const bundleFile = path.join(__dirname, BUNDLE)
const nodes = path.join(lib, '..', '.cache', 'node')

/**
 * Resolves the id of a `require` call.
 * @param {string} id required id
 * @param {string} name name in lib/ of the requiring file
 * @returns {string | undefined} name in lib/; undefined if it does not belong in the generated files
 */
function requiredBy (id, name) {
  if (BUNDLED_PACKAGES.includes(id)) return slashed(require.resolve(id)).replace(/^.*(?=node_modules\/)/, '')
  if (!id.startsWith('.')) return undefined
  const file = path.posix.join(path.posix.dirname(name), id).replace(/^\.\.\/lib\//, '')
  return /\.js(on)?$/.test(file) ? file : `${file}.js`
}

/** @param {string} file */
const slashed = (file) => file.replaceAll('\\', '/')

/** @returns {string} licences of the packages as a comment; copies must include them */
function licences () {
  const texts = BUNDLED_PACKAGES.map((id) => {
    const folder = path.dirname(require.resolve(`${id}/package.json`))
    const licence = fs.readdirSync(folder).find((file) => file.startsWith('LICENSE'))
    if (licence === undefined) throw new Error(`${id} has no licence`)
    return `${id}\n\n${fs.readFileSync(path.join(folder, licence), 'utf8')}`
  })
  return `/*\n${texts.join('\n').replaceAll('*/', '* /')}*/\n`
}

/** @param {string} name in lib/ @returns {string} its file */
function fileOf (name) {
  return name.startsWith(PACKAGES) ? require.resolve(name.slice(PACKAGES.length)) : path.join(lib, name)
}

/** Returns whether esbuild is installed; a checkout has it, an installed longstack may not. */
const hasEsbuild = () => attempt(() => require.resolve('esbuild')) !== undefined

/**
 * @typedef {object} Part a source
 * @property {number} size in bytes
 * @property {Record<string, string | undefined>} files required files by id
 * @property {string} body body of the function that loads it
 */

/** @param {string} name in lib/ @returns {Part} */
function partOf (name) {
  const text = fs.readFileSync(fileOf(name), 'utf8')
  const size = Buffer.byteLength(text)
  if (name.endsWith('.json')) return { size, files: {}, body: `module.exports = ${text}` }
  const { code } = require('esbuild').transformSync(text, { legalComments: 'none' })
  const ids = [...code.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, id]) => id)
  const files = Object.fromEntries(ids.map((id) => [id, requiredBy(id, name)]))
  return { size, files, body: code.replace(/[^\0-\xff]/g, escaped) }
}

/** V8 stores a text with such a letter in two bytes per letter. @param {string} letter of an expression */
const escaped = (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`

/** @returns {string[]} sources loaded at start */
function loadedAtStart () {
  for (const name of ENTRIES) require(`../${name}`)
  const names = Object.keys(require.cache).map((file) => slashed(path.relative(lib, file)))
  return names.filter((name) => !/^(\.\.|start)\//.test(name))
}

/** @returns {string[]} contents of the two files */
function makeContents () {
  const first = loadedAtStart()
  const all = new Map(first.map((name) => [name, partOf(name)]))
  for (const { files } of all.values()) { // grows during the loop
    for (const name of Object.values(files)) {
      if (name !== undefined && !all.has(name)) all.set(name, partOf(name))
    }
  }
  const parts = [...all]
  const lists = [parts.slice(0, first.length), parts.slice(first.length)]
  const [text, later] = lists.map((list) => `({ __proto__: null,\n${list.map(memberOf).join(',\n')}\n})\n`)
  const texts = [text, `${licences()}${later}`] // a start needs no package
  const id = createHash('sha256').update(texts.join('')).digest('hex').slice(0, 16)
  return texts.map((content, i) => {
    const own = lists[i].filter(([name]) => !name.startsWith(PACKAGES)) // package files are not needed
    const sources = Object.fromEntries(own.map(([name, { size }]) => [name, size]))
    return `${headerOf(id, sources)}${content}`
  })
}

/**
 * Returns the first line. Its length does not depend on the sizes: V8 rejects a code cache for a text of
 * another length, and packed sources have no comments.
 * @param {string} id
 * @param {Record<string, number>} sources
 */
function headerOf (id, sources) {
  const header = JSON.stringify({ id, sources })
  return `//${header.replace(/":(\d+)/g, (_, size) => `":${size.padStart(MAX_DIGITS)}`)}\n`
}

/** @param {string} content of a generated file */
function splitHeader (content) {
  const end = content.indexOf('\n')
  return { header: JSON.parse(content.slice(2, end)), text: content.slice(end + 1) }
}

/** @param {string} content of a generated file @returns {string} id of its build */
const idOf = (content) => splitHeader(content).header.id

/**
 * Returns a generated file with other source sizes.
 * @param {string} content
 * @param {(name: string) => number} sizeOf
 */
function withSizes (content, sizeOf) {
  const { header: { id, sources }, text } = splitHeader(content)
  const sizes = Object.keys(sources).map((name) => [name, sizeOf(name)])
  return `${headerOf(id, Object.fromEntries(sizes))}${text}`
}

/** @param {[name: string, part: Part]} part */
function memberOf ([name, { files, body }]) {
  const names = `{ __proto__: null, ${JSON.stringify(files).slice(1, -1)} }`
  const run = `run (exports, require, module, __filename, __dirname) {\n${body}}`
  return `${JSON.stringify(name)}: { files: ${names}, ${run} }`
}

/** @param {string} file @param {string | Buffer} content written atomically, for concurrent readers */
function write (file, content) {
  const unfinished = `${file}.${process.pid}`
  fs.writeFileSync(unfinished, content)
  fs.renameSync(unfinished, file)
}

/** Makes the code caches by running a start in the Node that will use them. @param {string} node */
function compileWith (node) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !INHERITED.test(name)))
  const { status, stderr, error } = spawnSync(node, [__filename, '--code'], { env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${node} made no code: ${error?.message ?? stderr}`)
}

function writeCode () {
  if (Number(process.versions.node.split('.')[0]) < FIRST_MAJOR) return
  const { bundles, codeName } = require('../start')
  require('../register')
  process.once('beforeExit', () => {
    const [first, later] = bundles?.() ?? []
    if (first === undefined) throw new Error('they are not used')
    fs.mkdirSync(ownDirectory(), { recursive: true })
    const writeOf = (/** @type {string} */ name, /** @type {typeof first} */ { script, id }) => {
      const code = Buffer.concat([script.createCachedData(), Buffer.from(id, 'latin1')])
      write(path.join(ownDirectory(), codeName(name)), code)
    }
    writeOf(BUNDLE, first)
    require('../../index').enable({ spans: os.devNull })
    if (later !== undefined) writeOf(LATER, later)
  })
}

/** @returns {string[]} directories of this platform and of all platforms with binaries */
function platformDirectories () {
  const parent = path.dirname(ownDirectory())
  fs.mkdirSync(ownDirectory(), { recursive: true })
  return fs.readdirSync(parent).map((name) => path.join(parent, name))
}

/**
 * Removes code caches that belong to other texts.
 * @param {string} directory
 * @param {string} id id of the text
 */
function removeCode (directory, id) {
  const files = fs.readdirSync(directory).map((name) => path.join(directory, name))
  for (const file of files.filter(isCode)) if (!isCodeOf(file, id)) fs.rmSync(file)
}

/** @param {string} file */
const isCode = (file) => /^bundle(-later)?\.\d+\.\d/.test(path.basename(file))

/**
 * Returns whether a file is the code cache of a text.
 * @param {string} file
 * @param {string} id id of the text
 */
function isCodeOf (file, id) {
  return isCode(file) && fs.readFileSync(file, 'latin1').endsWith(id)
}

function makeBundles () {
  const [bundle, later] = makeContents()
  const directories = platformDirectories()
  const laterFiles = directories.map((directory) => path.join(directory, LATER))
  const contents = new Map(laterFiles.map((file) => [file, later])).set(bundleFile, bundle)
  for (const directory of directories) removeCode(directory, idOf(bundle))
  // Even if unchanged, so that they are newer than their sources
  contents.forEach((text, file) => write(file, Buffer.from(text, 'latin1')))
}

function main () {
  if (process.argv.includes('--code')) return writeCode()
  // An installed longstack keeps the packaged file, and makes a code cache for this Node.
  if (hasEsbuild() || !fs.existsSync(bundleFile)) makeBundles()
  const names = process.argv.includes('--pack') && fs.existsSync(nodes) ? fs.readdirSync(nodes) : []
  const others = names.map((name) => path.join(nodes, name, 'bin', 'node'))
  const present = others.filter((file) => fs.existsSync(file))
  for (const node of new Set([process.execPath, ...present])) compileWith(node)
}

/** @param {Error} error */
function report ({ message }) {
  const quiet = process.argv.includes('--quiet')
  console.error(`longstack: starts from its sources: ${quiet ? message.split('\n', 1)[0] : message}`)
  const lenient = quiet || (process.argv.includes('--pack') && !process.env.CI)
  if (!lenient) process.exitCode = 1
}

if (require.main === module) {
  try {
    main()
  } catch (error) {
    report(/** @type {Error} */ (error))
  }
}

module.exports = { BUNDLE, LATER, idOf, isCodeOf, withSizes }
