'use strict'

// npm run build: compiles the addon for the running Node. --quiet, for `prepare` in a checkout, compiles only
// if compiler and headers are installed and the binary is stale; prints at most one line and never fails.
// Without a binary, longstack uses its JavaScript engine.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { binaryName, ownDirectory, target } = require('../lib/platform')
const { unsupportedBuildOption } = require('../lib/stacks/binding')
const { checkBinary } = require('./binary')
const { compile, isFresh, abiOf } = require('./compile')
const { fetchNode } = require('./nodes')
const { targets } = require('./targets')

const quiet = process.argv.includes('--quiet')

/** @returns {string | undefined} the directory of the running Node's headers, if they are installed */
function installedHeaders () {
  const { node_prefix: buildPrefix } = /** @type {any} */ (process.config.variables)
  const nextToNode = path.dirname(path.dirname(process.execPath))
  const prefixes = [process.env.npm_config_nodedir, nextToNode, buildPrefix, '/usr']
  const directories = prefixes.filter(Boolean).map((prefix) => path.join(prefix, 'include', 'node'))
  return directories.find((directory) => abiOf(directory) === Number(process.versions.modules))
}

/** @param {string} out */
async function build (out) {
  const include = installedHeaders()
  if (include !== undefined) return compile({ platform: target(), include, out })
  if (quiet) throw new Error("Node's headers are not installed")
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  try {
    const home = path.join(directory, 'node')
    fetchNode(`node-${process.platform}-${process.arch}@${process.versions.node}`, home)
    await compile({ platform: target(), include: path.join(home, 'include', 'node'), out })
  } finally {
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

async function main () {
  const out = path.join(ownDirectory(), binaryName(process.versions.modules))
  if (!Object.hasOwn(targets, target())) throw new Error(`there is no native engine for ${target()}`)
  const option = unsupportedBuildOption()
  if (option !== undefined) throw new Error(`this Node was built with ${option}`)
  if (quiet && isFresh(out)) return
  await build(out)
  if (!quiet) console.log(`${path.relative('', out)}: needs ${checkBinary(out, target()).needs}`)
}

main().catch((error) => {
  const { message } = /** @type {Error} */ (error)
  const reason = quiet ? message.split('\n', 1)[0].replace(/:$/, '') : message
  console.error(`longstack: the native engine was not built: ${reason}`)
  if (!quiet) process.exitCode = 1
})
