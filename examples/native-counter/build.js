'use strict'

// node examples/native-counter/build.js [folder]: compiles counter.c, by one call of a C compiler ($CC, else cc). What
// comes out is Node-API: it runs on every Node from 10.20 on, not just on the one that compiled it.

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')

/** Node's headers, beside its binary or where the system keeps them; npm_config_nodedir says where else. */
function headers () {
  const prefixes = [process.env.npm_config_nodedir, path.dirname(path.dirname(process.execPath)), '/usr/local', '/usr']
  const folders = prefixes.filter((prefix) => prefix !== undefined).map((prefix) => path.join(prefix, 'include', 'node'))
  return folders.find((folder) => fs.existsSync(path.join(folder, 'node_api.h')))
}

/**
 * @param {string} source
 * @param {string} out the binary
 * @throws {Error} where there is no compiler, or there are no headers
 */
function build (source, out) {
  const include = headers()
  if (include === undefined) throw new Error('the headers of Node are not installed; npm_config_nodedir can say where they are')
  const [command, ...words] = (process.env.CC || 'cc').split(/\s+/)
  const link = process.platform === 'darwin' ? ['-bundle', '-undefined', 'dynamic_lookup'] : ['-shared']
  execFileSync(command, [...words, '-std=c11', '-O2', '-fPIC', '-Wall', '-Wextra', '-isystem', include, ...link, '-o', out, source], { stdio: ['ignore', 'inherit', 'inherit'] })
}

if (require.main === module) {
  const folder = process.argv[2] ?? __dirname
  build(path.join(__dirname, 'counter.c'), path.join(folder, 'counter.node'))
}

module.exports = { build }
