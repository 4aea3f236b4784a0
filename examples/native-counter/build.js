'use strict'

// node examples/native-counter/build.js [directory]
//
// Compiles counter.c with one call of a C compiler ($CC, else cc). The addon uses only Node-API: it runs on
// every Node since 10.20, not only on the one that compiled it.

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')

/** Finds Node's headers: in npm_config_nodedir, next to Node's binary, or where packages install them. */
function findHeaders () {
  const home = path.dirname(path.dirname(process.execPath))
  const prefixes = [process.env.npm_config_nodedir ?? home, home, '/usr/local', '/usr']
  const directories = prefixes.map((prefix) => path.join(prefix, 'include', 'node'))
  return directories.find((directory) => fs.existsSync(path.join(directory, 'node_api.h')))
}

/**
 * @param {string} source
 * @param {string} out the binary
 * @throws {Error} without a compiler or headers
 */
function build (source, out) {
  const include = findHeaders()
  if (include === undefined) throw new Error('the headers of Node are not found: set npm_config_nodedir')
  const [command, ...words] = (process.env.CC || 'cc').split(/\s+/)
  const link = process.platform === 'darwin' ? ['-bundle', '-undefined', 'dynamic_lookup'] : ['-shared']
  const flags = ['-std=c11', '-O2', '-fPIC', '-Wall', '-Wextra', '-isystem', include, ...link]
  execFileSync(command, [...words, ...flags, '-o', out, source], { stdio: ['ignore', 'inherit', 'inherit'] })
}

if (require.main === module) {
  const directory = process.argv[2] ?? __dirname
  build(path.join(__dirname, 'counter.c'), path.join(directory, 'counter.node'))
}

module.exports = { build }
