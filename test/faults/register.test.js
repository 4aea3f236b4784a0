'use strict'

// The preload never ends a program, no matter what fails to load: one line on stderr, and the program runs.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { target } = require('../../lib/platform')
const { oldNodes } = require('../helpers/old-nodes')
const { root, register, runsAll } = require('../helpers/run')

const OFF = /^longstack: off, [^\n]+\. The program runs without it\.\n$/
const PROGRAM = `
  setTimeout(() => {
    const { format } = require('util')
    console.log(format('%s runs', 'it'), Error.prepareStackTrace === undefined, Error.stackTraceLimit)
    process.exitCode = 4
  }, 1)
`

const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(LONGSTACK|NODE_)/.test(name)))

/** @param {import('ava').ExecutionContext} t */
function temporary (t) {
  const directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-off-')))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  return directory
}

/**
 * A copy of what a start can load.
 * @param {import('ava').ExecutionContext} t
 */
function copy (t) {
  const directory = temporary(t)
  for (const name of ['lib', 'package.json', 'native/prebuilds']) {
    const source = path.join(root, name)
    if (fs.existsSync(source)) {
      fs.cpSync(source, path.join(directory, name), { recursive: true, preserveTimestamps: true })
    }
  }
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(directory, 'node_modules'))
  fs.writeFileSync(path.join(directory, 'program.js'), PROGRAM)
  return directory
}

/**
 * A copy that has no generated files, in which a source that is gone would be.
 * @param {import('ava').ExecutionContext} t
 */
function copyOfSources (t) {
  const directory = copy(t)
  fs.rmSync(path.join(directory, 'lib', 'start', 'bundle'), { force: true })
  return directory
}

/**
 * @param {string} cwd
 * @param {string[]} args
 * @param {{ node?: string, more?: NodeJS.ProcessEnv }} [options]
 */
function run (cwd, args, { node = process.execPath, more = {} } = {}) {
  const { status, signal, stdout, stderr } = spawnSync(node, args, { cwd, encoding: 'utf8', env: { ...env, ...more } })
  return { status, signal, stdout, stderr }
}

/** Ways in which a file of longstack's is broken. @type {Record<string, (file: string) => void>} */
const damages = {
  absent: (file) => fs.rmSync(file),
  empty: (file) => fs.truncateSync(file),
  halved: (file) => fs.truncateSync(file, Math.floor(fs.statSync(file).size / 2)),
  throwing: (file) => fs.appendFileSync(file, '\nthrow null\n'),
  foreign: (file) => fs.writeFileSync(file, 'module.exports = new Proxy({}, { get () { throw new Error("damaged") } })\n'),
  directory (file) {
    fs.rmSync(file)
    fs.mkdirSync(file)
  }
}

test('however a file of longstack is broken, there is at most one line, and the program runs', (t) => {
  const directory = copy(t)
  const listed = run(directory, ['-r', './lib/register.js', '-p', 'JSON.stringify(Object.keys(require.cache))'], {
    more: { NODE_V8_COVERAGE: path.join(directory, 'coverage') } // loads the sources
  })
  const ownFiles = JSON.parse(listed.stdout).filter((/** @type {string} */ file) =>
    file.startsWith(path.join(directory, 'lib')) && path.basename(file) !== 'register.js')
  t.true(ownFiles.length > 20, listed.stdout)
  const bare = run(directory, ['program.js'])
  const bundles = [path.join('lib', 'start'), path.join('native', 'prebuilds', target())]
    .map((name) => path.join(directory, name))
    .flatMap((parent) => fs.readdirSync(parent).map((name) => path.join(parent, name)))
    .filter((name) => path.basename(name).startsWith('bundle'))
  const names = Object.keys(damages)
  const others = names.filter((name) => name !== 'absent')
  let off = 0
  for (const [i, file] of [...ownFiles, ...bundles].entries()) {
    const sample = i % 3 === 0 ? [names[(i / 3) % names.length]] : []
    // Every file is absent once, and is broken in two of the other ways
    const full = ['absent', others[i % others.length], others[(i + 2) % others.length]]
    for (const name of runsAll ? full : sample) {
      const original = fs.readFileSync(file)
      damages[name](file)
      const result = run(directory, ['-r', './lib/register.js', 'program.js'])
      const label = `${path.relative(directory, file)} ${name}: ${result.stderr}`
      t.deepEqual([result.status, result.signal], [4, null], label)
      if (OFF.test(result.stderr)) {
        off++
        t.is(result.stdout, bare.stdout, label)
      } else {
        // Reported once on a machine: what loads the addon is broken
        t.regex(result.stderr, /^(longstack: the native engine is missing: [^\n]+\n)?$/, label)
        t.regex(result.stdout, /^it runs (true|false) /, label)
      }
      fs.rmSync(file, { recursive: true, force: true })
      fs.writeFileSync(file, original)
    }
  }
  t.true(off > ownFiles.length / 9, `${off} of ${ownFiles.length}`)
})

test('a feature that fails to load at the start prints one line, and the program runs', (t) => {
  const directory = copyOfSources(t)
  for (const name of ['sinks', 'spans', 'blocked']) fs.rmSync(path.join(directory, 'lib', name), { recursive: true })
  for (const more of [{ LONGSTACK_SPANS: 'spans.jsonl' }, { LONGSTACK_BLOCKED: '50' }]) {
    const { status, stdout, stderr } = run(directory, ['-r', './lib/register.js', 'program.js'], { more })
    t.is(status, 4)
    t.regex(stderr, /^longstack: [^\n]+\n$/)
    t.regex(stdout, /^it runs /)
  }
})

test('deleted files are loaded from the generated ones', (t) => {
  const directory = copy(t)
  for (const name of ['core', 'spans', 'sinks']) fs.rmSync(path.join(directory, 'lib', name), { recursive: true })
  const more = { LONGSTACK_SPANS: 'spans.jsonl' }
  const { status, stdout, stderr } = run(directory, ['-r', './lib/register.js', 'program.js'], { more })
  t.deepEqual([status, stderr], [4, ''])
  t.regex(stdout, /^it runs false /, 'with longstack')
})

test('a worker of such a program prints nothing and runs', (t) => {
  const directory = copyOfSources(t)
  fs.rmSync(path.join(directory, 'lib', 'tracer.js'))
  const { status, stdout, stderr } = run(directory, ['-r', './lib/register.js', '-e', `
    const { Worker } = require('worker_threads')
    new Worker("console.log('worker'); setTimeout(process.exit, 1, 5)", { eval: true }).on('exit', console.log)`])
  t.deepEqual([status, stdout], [0, 'worker\n5\n'])
  t.regex(stderr, OFF)
})

test('import is as lenient as require', (t) => {
  const directory = copyOfSources(t)
  fs.rmSync(path.join(directory, 'lib', 'tracer.js'))
  const bare = run(directory, ['program.js'])
  const result = run(directory, ['--import', './lib/register.js', 'program.js'])
  t.deepEqual([result.status, result.stdout], [4, bare.stdout])
  t.regex(result.stderr, /^longstack: off, it cannot start: Cannot find module .*tracer'\. The program runs without it\.\n$/)
})

const { nodes, reasons } = oldNodes()
for (const reason of reasons) test(reason, (t) => t.pass())

for (const { major, file } of nodes) {
  test(`Node ${major} runs the program after one line`, (t) => {
    const directory = temporary(t)
    fs.writeFileSync(path.join(directory, 'program.js'), PROGRAM)
    const more = { NODE_OPTIONS: `-r ${register}`, LONGSTACK_SPANS: 'spans.jsonl' }
    const result = run(directory, ['program.js'], { node: file, more })
    t.deepEqual([result.status, result.stdout], [4, 'it runs true 10\n'])
    t.regex(result.stderr, OFF)
    t.regex(result.stderr, new RegExp(`Node v${major}\\..* is too old: 20 or later is needed`))
    const failing = run(directory, ['-e', 'setTimeout(() => { throw new Error("told") }, 1)'], { node: file, more })
    t.is(failing.status, 1)
    t.regex(failing.stderr, /^longstack: off, .*\n.*Error: told\n/s)
    t.false(fs.existsSync(path.join(directory, 'spans.jsonl')))
  })
}

test('with too few descriptors to start, the program runs with longstack if it runs without', (t) => {
  if (process.platform !== 'linux') return t.pass()
  const directory = temporary(t)
  fs.writeFileSync(path.join(directory, 'program.js'), PROGRAM)
  let lines = 0
  for (let limit = 14; limit <= 40; limit += runsAll ? 1 : 2) {
    const [bare, traced] = [[], ['-r', register]].map((preload) =>
      run(directory, ['-c', `ulimit -n ${limit}; exec "$0" "$@"`, process.execPath, ...preload, 'program.js'], { node: '/bin/sh' }))
    if (bare.status !== 4) continue
    t.deepEqual([traced.status, traced.stdout.slice(0, 8)], [4, 'it runs '], `${limit}: ${traced.stderr}`)
    t.true(traced.stderr === '' || OFF.test(traced.stderr), traced.stderr)
    lines++
  }
  t.true(lines > 3)
})
