'use strict'

// Makes the one file that ../start.js loads in place of the sources that a start needs: their text without
// comments, and code that V8 has compiled of it. --quiet, for `prepare`: says at most one line and never
// fails; without the file everything works, and starts slower. --pack, before packing: code for each Node at
// hand; what cannot be made is said, and is an error in CI only.

const { spawnSync } = require('node:child_process')
const { createHash } = require('node:crypto')
const fs = require('node:fs')
const path = require('node:path')

/** @typedef {import('typescript')} TypeScript */

const ENTRIES = ['shared.js', 'options.js', 'warnings.js']
const FIRST_MAJOR = 22 // V8 11 of Node 20 gives functions the file name that they had when they were compiled
const INHERITED = /^(LONGSTACK|NODE_)/

const lib = path.join(__dirname, '..')
const bundleFile = path.join(__dirname, 'bundle')
const nodes = path.join(lib, '..', '.cache', 'node')

/**
 * Returns what a file requires when it is loaded: names in lib/ by what it says.
 * @param {TypeScript} ts
 * @param {import('typescript').SourceFile} tree
 * @param {string} name
 */
function requiredBy (ts, tree, name) {
  /** @type {Record<string, string>} */
  const files = {}
  /** @type {(node: import('typescript').Node) => void} */
  const visit = (node) => {
    if (ts.isFunctionLike(node)) return
    if (ts.isCallExpression(node) && node.expression.getText() === 'require') {
      const id = /** @type {import('typescript').StringLiteral} */ (node.arguments[0]).text
      const file = path.posix.join(path.posix.dirname(name), id)
      if (id.startsWith('.')) files[id] = file.endsWith('.js') ? file : `${file}.js`
    }
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return files
}

/**
 * Returns whether a node contains text of several lines, whose spaces count.
 * @param {TypeScript} ts
 * @param {import('typescript').Node} node
 * @returns {boolean}
 */
function hasLongText (ts, node) {
  const isText = ts.isTemplateExpression(node) || ts.isNoSubstitutionTemplateLiteral(node)
  if (isText && node.getText().includes('\n')) return true
  return ts.forEachChild(node, (child) => hasLongText(ts, child)) ?? false
}

/** A checkout has it, an installed longstack need not. */
function hasTypescript () {
  try {
    require.resolve('typescript')
    return true
  } catch {
    return false
  }
}

/** @returns {string} the content of the file */
function bundle () {
  const ts = /** @type {TypeScript} */ (require('typescript'))
  /** @type {Record<string, number>} */
  const sources = {}
  /** @type {string[]} */
  const parts = []
  /** @param {string} name */
  const add = (name) => {
    if (name in sources) return
    const text = fs.readFileSync(path.join(lib, name), 'utf8')
    if (/[^\0-\xff]/.test(text)) throw new Error(`lib/${name} has letters that take two bytes`)
    sources[name] = Buffer.byteLength(text)
    const tree = ts.createSourceFile(name, text, ts.ScriptTarget.ESNext, true, ts.ScriptKind.JS)
    const files = requiredBy(ts, tree, name)
    const printed = ts.createPrinter({ removeComments: true }).printFile(tree)
    const short = hasLongText(ts, tree) ? printed : printed.replace(/^ +/gm, '')
    const map = `{ __proto__: null, ${JSON.stringify(files).slice(1, -1)} }`
    const run = `run (exports, require, module, __filename, __dirname) {\n${short}}`
    parts.push(`${JSON.stringify(name)}: { files: ${map}, ${run} }`)
    Object.values(files).forEach(add)
  }
  ENTRIES.forEach(add)
  const text = `({ __proto__: null,\n${parts.join(',\n')}\n})\n`
  const id = createHash('sha256').update(JSON.stringify(sources)).update(text).digest('hex').slice(0, 16)
  return `//${JSON.stringify({ id, sources })}\n${text}`
}

/** @param {string} file @param {string | Buffer} content written at once, also while others read it */
function write (file, content) {
  const unfinished = `${file}.${process.pid}`
  fs.writeFileSync(unfinished, content)
  fs.renameSync(unfinished, file)
}

/** Code is made by the Node that is to use it, of what a start runs. @param {string} node */
function compileWith (node) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !INHERITED.test(name)))
  const { status, stderr, error } = spawnSync(node, [__filename, '--code'], { env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${node} made no code: ${error?.message ?? stderr}`)
}

function writeCode () {
  if (Number(process.versions.node.split('.')[0]) < FIRST_MAJOR) return
  const { bundle, codeFile } = require('../start')
  if (bundle === undefined) throw new Error('it is not used')
  require('../register')
  const { script, id } = bundle
  process.on('exit', () => {
    write(codeFile(), Buffer.concat([script.createCachedData(), Buffer.from(id, 'latin1')]))
  })
}

/** Code of another text is no use. */
function removeCode () {
  for (const name of fs.readdirSync(__dirname)) {
    if (name.startsWith('bundle.')) fs.rmSync(path.join(__dirname, name))
  }
}

function makeBundle () {
  const text = bundle()
  const present = fs.existsSync(bundleFile) ? fs.readFileSync(bundleFile, 'latin1') : ''
  if (text !== present) removeCode()
  // Also where it is the same: it is younger than its sources now
  write(bundleFile, Buffer.from(text, 'latin1'))
}

function main () {
  if (process.argv.includes('--code')) return writeCode()
  // An installed longstack keeps the file that came with it, and gets code for this Node.
  if (hasTypescript() || !fs.existsSync(bundleFile)) makeBundle()
  const names = process.argv.includes('--pack') && fs.existsSync(nodes) ? fs.readdirSync(nodes) : []
  const others = names.map((name) => path.join(nodes, name, 'bin', 'node'))
  const present = others.filter((file) => fs.existsSync(file))
  for (const node of new Set([process.execPath, ...present])) compileWith(node)
}

try {
  main()
} catch (error) {
  const message = /** @type {Error} */ (error).message
  const quiet = process.argv.includes('--quiet')
  console.error(`longstack: starts from its sources: ${quiet ? message.split('\n', 1)[0] : message}`)
  const lenient = quiet || (process.argv.includes('--pack') && !process.env.CI)
  if (!lenient) process.exitCode = 1
}
