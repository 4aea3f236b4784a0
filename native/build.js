'use strict'

// npm run build: compiles the addon for the Node that runs this.
// --quiet, for `prepare` in a checkout: only where everything is at hand, only what is not made yet; says at most one
// line and never fails. Where nothing was made longstack works without.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { binaryFile, target, unsupportedBuildOption } = require('../lib/stacks/binding')
const { compile, fresh, abiOf, libraries } = require('./compile')
const { fetchNode } = require('./nodes')

const quiet = process.argv.includes('--quiet')

/** A folder with the headers of the running Node, where its installation has one. */
function headersAtHand () {
  const prefixes = [path.dirname(path.dirname(process.execPath)), /** @type {any} */ (process.config.variables).node_prefix, '/usr']
  const folders = [process.env.npm_config_nodedir, ...prefixes].filter(Boolean).map((prefix) => path.join(prefix, 'include', 'node'))
  return folders.find((folder) => abiOf(folder) === Number(process.versions.modules))
}

/** @param {string} out */
function build (out) {
  const include = headersAtHand()
  if (include !== undefined) return compile({ include, out })
  if (quiet) throw new Error("Node's headers are not installed")
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  try {
    fetchNode(`node-${process.platform}-${process.arch}@${process.versions.node}`, path.join(folder, 'node'))
    compile({ include: path.join(folder, 'node', 'include', 'node'), out })
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

function main () {
  const out = binaryFile(target(), process.versions.modules)
  if (process.platform !== 'linux') throw new Error(`there is no native engine for ${process.platform} yet`)
  const option = unsupportedBuildOption()
  if (option !== undefined) throw new Error(`this Node was built with ${option}`)
  if (quiet && fresh(out)) return
  build(out)
  if (!quiet) console.log(`${path.relative('', out)}: needs ${libraries(out).needs}`)
}

try {
  main()
} catch (error) {
  const message = /** @type {Error} */ (error).message
  console.error(`longstack: no native engine was built: ${quiet ? message.split('\n', 1)[0].replace(/:$/, '') : message}`)
  if (!quiet) process.exitCode = 1
}
