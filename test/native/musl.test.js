'use strict'

// On musl: some of these tests, run by a Node for musl. Zig compiles the binary here, and musl itself is that
// of Debian 13 (.ci/run), because Node's wheels require 1.2.4 or later.

const { spawnSync } = require('node:child_process')
const path = require('node:path')
const test = require('ava')
const { compile, isFresh } = require('../../native/compile')
const { binaryName, ownDirectory } = require('../../lib/platform')
const { run } = require('../helpers/installed')
const { register, root } = require('../helpers/run')
const { skip } = require('../helpers/skip')
const { wheelNode } = require('../helpers/wheel-nodes')

const PLATFORM = 'linuxmusl-x64'
const ABIS = { 20: 115, 22: 127, 24: 137, 26: 147 }
const MAJOR = 24 // that more is tested on
const LOADERS = { 'linuxmusl-x64': '/lib/ld-musl-x86_64.so.1', 'linux-x64': '/lib64/ld-linux-x86-64.so.2' }

/** What depends on the C library: stacks and their bounds, threads, clocks, thread-locals, connections. */
const FILES = [
  'chains/chains-timers', 'chains/chains-promises', 'chains/chains-files', 'chains/chains-sockets',
  'chains/workers', 'attribution/attribution', 'native/native-matches-js', 'spans/spans', 'blocked/blocked-interrupts'
]

const TOLD = `
  const { Worker } = require('node:worker_threads')
  const tell = "const { engine, engineCode, clock, clockCode } = require('longstack').stats();" +
    'console.log(engine, engineCode, clock, clockCode)'
  eval(tell)
  new Worker(tell, { eval: true })
`

/**
 * Returns the Node to test with, and has its addon compiled.
 * @param {number} major
 * @returns {Promise<{ node: string, why?: undefined } | { node?: undefined, why: string }>}
 */
async function prepare (major) {
  try {
    if (`${process.platform}-${process.arch}` !== 'linux-x64') throw new Error('it is made for Linux x64')
    const node = wheelNode(PLATFORM, major)
    const { status, signal, error } = spawnSync(node, ['--version'])
    if (status !== 0) throw new Error(`there is no musl that it runs with: ${signal ?? error?.message}`)
    const out = path.join(ownDirectory(PLATFORM), binaryName(ABIS[major]))
    const include = path.join(root, '.cache', 'node', String(major), 'include', 'node')
    if (!isFresh(out)) await compile({ platform: PLATFORM, include, out })
    return { node }
  } catch (error) {
    return { why: `no Node ${major} for musl: ${/** @type {Error} */ (error).message.split('\n', 1)[0]}` }
  }
}

/**
 * @param {string} title
 * @param {number} major
 * @param {(t: import('ava').ExecutionContext, node: string) => Promise<void>} body
 */
function onMusl (title, major, body) {
  test.serial(title, async (t) => {
    t.timeout(300_000)
    const { node, why } = await prepare(major)
    if (node !== undefined) return body(t, node)
    skip(t, why)
  })
}

for (const major of [20, 22, 24, 26]) {
  onMusl(`Node ${major}: engine and clock pass their tests of themselves, in workers too`, major, async (t, node) => {
    const { stdout, stderr } = await run(node, ['-r', register, '-e', TOLD], { cwd: root })
    t.deepEqual(stdout.trim().split('\n'), Array(2).fill('native SELF_TEST_PASSED on SELF_TEST_PASSED'), stderr)
  })
}

onMusl('the C library is recognized, also where its loader is called by name', MAJOR, async (t, node) => {
  for (const [platform, file] of Object.entries({ [PLATFORM]: node, 'linux-x64': process.execPath })) {
    for (const loader of [[], [LOADERS[platform]]]) {
      const [command, ...args] = [...loader, file, '-p', 'require("./lib/platform").target()']
      const { stdout } = await run(command, args, { cwd: root })
      t.is(stdout.trim(), platform, loader[0])
    }
  }
})

onMusl('tests pass that pass on glibc', MAJOR, async (t, node) => {
  const ava = path.join(root, 'node_modules', 'ava', 'entrypoints', 'cli.mjs')
  const files = FILES.map((name) => path.join('test', `${name}.test.js`))
  const { code, stdout, stderr } = await run(node, [ava, ...files], { cwd: root })
  t.is(code, 0, `${stdout}\n${stderr}`)
  t.regex(stdout, /\d{2,} tests passed/)
})
