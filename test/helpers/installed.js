'use strict'

// longstack as installed by users: packed from a copy of the checkout, and installed in an empty folder
// without scripts.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { target } = require('../../lib/platform')
const { root } = require('./run')

const OFFLINE = /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT|ENOTCACHED)\b/
const INHERITED = /^(LONGSTACK|NODE_|AVA_|npm_(config_local_prefix|package_|lifecycle_|command)|FORCE_COLOR|NO_COLOR)/
const KEPT = [[20, '115'], [22, '127'], [24, '137'], [26, '147']]
const LEFT_OUT = new Set(['.git', '.cache', 'node_modules', 'bench', 'release'])
const nodes = path.join(root, '.cache', 'node')

/** Whether parts that may be missing on a developer's machine are required. */
const strict = Boolean(process.env.CI) || process.env.NODES === 'all'

/**
 * @param {string} command
 * @param {string[]} args
 * @param {object} options
 * @param {string} options.cwd
 * @param {Record<string, string>} [options.env]
 * @returns {Promise<{ code: number | null, signal: string | null, stdout: string, stderr: string }>}
 */
function run (command, args, { cwd, env = {} }) {
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !INHERITED.test(name)))
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...clean, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text) => { stdout += text })
    child.stderr.setEncoding('utf8').on('data', (text) => { stderr += text })
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
}

/** Returns the Node versions to test: the running one, and those cached by CI. */
function versions () {
  const running = { major: Number(process.versions.node.split('.')[0]), node: process.execPath, abi: process.versions.modules }
  const kept = KEPT.map(([major, abi]) => ({ major: Number(major), node: path.join(nodes, String(major), 'bin', 'node'), abi: String(abi) }))
  const others = kept.filter(({ major }) => major !== running.major)
  return {
    there: [running, ...others.filter(({ node }) => fs.existsSync(node))],
    missing: others.filter(({ node }) => !fs.existsSync(node))
  }
}

/**
 * Copies the checkout, without its history, for scripts that write to it.
 * @param {string} copy a new directory
 */
function copyCheckout (copy) {
  fs.cpSync(root, copy, {
    recursive: true,
    preserveTimestamps: true,
    filter: (name) => !LEFT_OUT.has(path.relative(root, name))
  })
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'))
  fs.mkdirSync(path.join(copy, '.cache'))
  if (fs.existsSync(nodes)) fs.symlinkSync(nodes, path.join(copy, '.cache', 'node'))
}

/**
 * Packs as for a release, and installs the main package and this platform's package.
 * @param {string} folder a new one
 * @returns {Promise<{ app: string, home: string, tarball: string, offline?: string }>} the empty folder, and
 *   longstack in it
 */
async function install (folder) {
  const copy = path.join(folder, 'copy')
  const app = path.join(folder, 'app')
  copyCheckout(copy)
  // A developer's machine uses existing binaries: fetching and compiling for four versions takes minutes
  const options = ['--dry-run', `--out=${folder}`, ...(strict ? [] : ['--no-build'])]
  const packed = await run(process.execPath, [path.join(copy, 'publish', 'index.js'), ...options], { cwd: copy })
  if (packed.code !== 0) throw new Error(packed.stderr)
  const { version } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'))
  const tarball = path.join(folder, `longstack-${version}.tgz`)
  const tarballs = [tarball, path.join(folder, `longstack-${target()}-${version}.tgz`)].filter((file) => fs.existsSync(file))

  fs.mkdirSync(app)
  fs.writeFileSync(path.join(app, 'package.json'), '{ "private": true }')
  const home = path.join(app, 'node_modules', 'longstack')
  const args = ['install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--fetch-retries=1', `--prefix=${app}`, ...tarballs]
  try {
    await npm(args, app)
    return { app, home, tarball }
  } catch (error) {
    const offline = OFFLINE.exec(/** @type {Error} */ (error).message)?.[0]
    if (offline === undefined || strict) throw error
    for (const file of tarballs) await unpack(file, file === tarball ? home : `${home}-${target()}`)
    return { app, home, tarball, offline }
  }
}

/** Installs without npm, with the checkout's dependencies. @param {string} tarball @param {string} home */
async function unpack (tarball, home) {
  fs.mkdirSync(home, { recursive: true })
  const { code, stderr } = await run('tar', ['-xzf', tarball, '-C', home, '--strip-components=1'], { cwd: home })
  if (code !== 0) throw new Error(stderr)
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(home, 'node_modules'))
}

/** @param {string[]} args @param {string} cwd */
async function npm (args, cwd) {
  const { code, stderr } = await run('npm', ['--loglevel=error', ...args], { cwd })
  if (code !== 0) throw new Error(`npm ${args[0]} failed:\n${stderr}`)
}

module.exports = { OFFLINE, copyCheckout, install, versions, run, strict }
