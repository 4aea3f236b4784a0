'use strict'

// npm run try -- VERSION [FILE…]: checks whether longstack works on a Node version that CI does not test.
// Fetches it from npm, compiles the addon for it, runs the trial as on a user's machine
// (lib/stacks/trial.js), and runs all or the given tests on it. Exit code 1: the trial or a test has failed.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { binaryName, ownDirectory, target } = require('../lib/platform')
const { abiOf, compile, isFresh } = require('./compile')
const { fetchNode } = require('./nodes')

const root = path.join(__dirname, '..')
const AVA = path.join(root, 'node_modules', 'ava', 'entrypoints', 'cli.mjs')
const ATTEMPTS = 5 // repeats, because a trial times out on a busy machine
const STATE = "const { engine, engineCode } = require('./index').stats(); console.log(engine, engineCode)"
const VERSIONS = "const { node, v8 } = process.versions; console.log('Node', node, 'with V8', v8)"

/**
 * Compiles the addon if it is missing. At the end, removes an addon for an ABI without a package.
 * @param {string} include directory of headers
 */
async function build (include) {
  const out = path.join(ownDirectory(), binaryName(Number(abiOf(include))))
  if (fs.existsSync(out) && isFresh(out)) return
  if (!fs.existsSync(out)) process.once('exit', () => fs.rmSync(out, { force: true }))
  await compile({ platform: target(), include, out })
}

/** @param {string} version @param {string[]} files */
async function main (version, files) {
  const home = path.join(root, '.cache', 'try', version)
  fs.mkdirSync(path.dirname(home), { recursive: true })
  fetchNode(`node-${process.platform}-${process.arch}@${version}`, home)
  const bin = path.join(home, 'bin')
  const node = path.join(bin, 'node')
  const PATH = `${bin}${path.delimiter}${process.env.PATH}`
  const env = { ...process.env, PATH, XDG_CACHE_HOME: path.join(home, 'cache') }
  /** @param {string[]} args @param {import('node:child_process').StdioOptions} [stdio] */
  const run = (args, stdio = 'inherit') => spawnSync(node, args, { cwd: root, env, stdio, encoding: 'utf8' })

  run(['-e', VERSIONS])
  await build(path.join(home, 'include', 'node'))
  let isGood = false
  for (let attempt = 0; attempt < ATTEMPTS && !isGood; attempt++) {
    fs.rmSync(env.XDG_CACHE_HOME, { recursive: true, force: true })
    const begin = performance.now()
    const { stdout, signal } = run(['-r', './lib/register.js', '-e', STATE], ['ignore', 'pipe', 'inherit'])
    isGood = stdout.startsWith('native')
    console.log(`first start: ${stdout.trim() || signal}, ${Math.round(performance.now() - begin)} ms`)
  }
  const tests = run([AVA, ...files])
  console.log(`tests: ${tests.status === 0 ? 'passed' : 'failed'}`)
  if (!isGood || tests.status !== 0) process.exitCode = 1
}

process.on('SIGINT', () => process.exit(130))
const [version, ...files] = process.argv.slice(2)
if (version === undefined) {
  console.error('npm run try -- VERSION [FILE…]: which version of Node?')
  process.exitCode = 2
} else {
  main(version, files)
}
