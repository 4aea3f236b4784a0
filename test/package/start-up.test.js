'use strict'

// Modules that longstack/register loads before the program's first line, the main cost for a short program.

const test = require('ava')
const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { target } = require('../../lib/platform')
const { program, root } = require('../helpers/run')

const MAX_FILES = 105
// Without the addon, what reports that it is missing is loaded as well.
const MAX_BYTES = 618_000

/**
 * @param {Record<string, string>} env
 * @returns {Promise<{ files: string[], bytes: number, modules: string[] }>}
 */
async function loaded (env = {}) {
  const { stdout } = await program(`
    const modules = process.moduleLoadList.filter((name) => name.startsWith('NativeModule ')).map((name) => name.slice(13))
    const files = Object.keys(require.cache).filter((file) => /[\\\\/]lib[\\\\/]/.test(file))
    const texts = files.map((file) => require('node:fs').readFileSync(file, 'utf8'))
    console.log(JSON.stringify({
      files,
      bytes: texts.join('').length,
      modules
    }))`, { env })
  return JSON.parse(stdout)
}

test('only the recording parts are loaded', async (t) => {
  const { files, bytes, modules } = await loaded()
  t.true(files.length > 20 && files.length <= MAX_FILES, files.join('\n'))
  t.true(bytes <= MAX_BYTES, String(bytes))
  for (const name of ['perf_hooks', 'worker_threads', 'net', 'http', 'inspector', 'crypto', 'zlib']) t.false(modules.includes(name), name)
})

test('nothing is loaded in callbacks of the program: its first timers are as early as without longstack', async (t) => {
  const { stdout, stderr } = await program(`
    const { Worker, isMainThread } = require('node:worker_threads')
    const { fork } = require('node:child_process')
    const files = () => Object.keys(require.cache).filter((file) => file.startsWith(${JSON.stringify(root)}))
    const before = files()
    const who = isMainThread ? process.send ? 'child' : 'main thread' : 'worker'
    setImmediate(() => setTimeout(async () => {
      await null
      const { stack } = new Error('x')
      console.log(who, stack.includes('── setTimeout'), files().filter((file) => !before.includes(file)))
      if (who === 'main thread') { fork(__filename); new Worker(__filename) }
    }, 1))`)
  const lines = stdout.trim().split('\n').sort()
  t.deepEqual(lines, ['child true []', 'main thread true []', 'worker true []'], stderr)
})

test('spans need no threads', async (t) => {
  const { modules } = await loaded({ LONGSTACK_SPANS: '-' })
  for (const name of ['worker_threads', 'http', 'inspector', 'crypto', 'zlib']) t.false(modules.includes(name), name)
})

const STATE = `
  const bundle = require('./lib/start').bundles?.()[0]
  const trace = require('./index.js')
  const path = require('node:path')
  const inCache = (name) => require.cache[path.join(__dirname, 'lib', ...name.split('/'))] !== undefined
  setTimeout(function later () {
    const { fault, enabled } = trace.stats()
    console.log(JSON.stringify({
      used: bundle !== undefined,
      changed: globalThis.changed,
      refused: bundle?.script.cachedDataRejected,
      enabled,
      fault,
      cached: inCache('tracer.js') && inCache('core/clock.js'),
      hops: trace.chain().length,
      stack: trace.span('one', {}, function inside () { return new Error('told').stack }),
      internals: trace.enable({ internals: true }) &&
        trace.span('one', {}, function inside () { return new Error('told').stack })
    }))
  }, 1)`

/** @param {string} folder of longstack */
function generatedFiles (folder) {
  return [path.join(folder, 'lib', 'start'), path.join(folder, 'native', 'prebuilds', target())]
    .filter((directory) => fs.existsSync(directory))
    .flatMap((directory) => fs.readdirSync(directory).map((name) => path.join(directory, name)))
    .filter((name) => path.basename(name).startsWith('bundle'))
}

/**
 * A copy of longstack with its generated file, as a tarball has it.
 * @param {import('ava').ExecutionContext} t
 */
function copy (t) {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-start-')))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  for (const name of ['lib', 'report', 'index.js', 'package.json', 'native/prebuilds']) {
    const from = path.join(root, name)
    const options = { recursive: true, preserveTimestamps: true }
    if (fs.existsSync(from)) fs.cpSync(from, path.join(folder, name), options)
  }
  for (const name of generatedFiles(folder)) fs.rmSync(name)
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  const entries = Object.entries(process.env).filter(([name]) => !/^(LONGSTACK|NODE_)/.test(name))
  const env = /** @type {NodeJS.ProcessEnv} */ (Object.fromEntries(entries))
  /** @param {string[]} args @param {NodeJS.ProcessEnv} [more] */
  const run = (args, more = {}) => {
    const options = /** @type {const} */ ({ cwd: folder, encoding: 'utf8' })
    const child = spawnSync(process.execPath, args, { ...options, env: { ...env, ...more } })
    const { status, stdout, stderr } = child
    t.is(status, 0, stderr)
    return { stdout, stderr }
  }
  fs.writeFileSync(path.join(folder, 'state.js'), STATE)
  run([path.join('lib', 'start', 'build.js')])
  /** @param {string[]} [args] @param {NodeJS.ProcessEnv} [more] */
  const state = (args = [], more = {}) => {
    return JSON.parse(run([...args, '-r', './lib/register.js', 'state.js'], more).stdout)
  }
  return { folder, state, run }
}

const hasCode = Number(process.versions.node.split('.')[0]) >= 22

test('the generated file matches its sources', (t) => {
  const { folder, state, run } = copy(t)
  const bundled = state()
  t.true(bundled.used)
  t.is(bundled.refused, hasCode ? false : undefined)
  t.deepEqual([bundled.enabled, bundled.fault, bundled.cached], [true, undefined, true])
  t.false(bundled.stack.includes(path.join(folder, 'lib')), bundled.stack)
  t.true(bundled.internals.includes(path.join(folder, 'lib')), bundled.internals)
  const plain = state([], { NODE_V8_COVERAGE: path.join(folder, 'coverage') })
  t.false(plain.used)
  // A collection in between leaves the reader alone
  const aged = (/** @type {string} */ stack) => {
    return stack.replace(/[\d.]+ m?s/g, 'N ms').replace(/ · reader: [^─]*─/, ' ─')
  }
  t.is(aged(bundled.stack), aged(plain.stack))
  t.is(bundled.hops, plain.hops)
  t.true(state(['--jitless']).used)
  const { stdout } = run(['--import', './lib/register.js', '--input-type=module', '-e',
    'import trace from "./lib/esm.mjs"; console.log(trace.stats().enabled)'])
  t.is(stdout, 'true\n')
})

test('a moved folder works as well', (t) => {
  const { folder } = copy(t)
  fs.mkdirSync(path.join(folder, 'moved'))
  const cwd = path.join(folder, 'moved')
  for (const name of ['lib', 'report', 'index.js', 'package.json', 'native', 'node_modules', 'state.js']) {
    fs.renameSync(path.join(folder, name), path.join(cwd, name))
  }
  const args = ['-r', './lib/register.js', 'state.js']
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: 'utf8' })
  t.is(status, 0, stderr)
  const { used, internals } = JSON.parse(stdout)
  t.true(used)
  t.true(internals.includes(path.join(folder, 'moved', 'lib')), internals)
})

test('a generated file that is stale, damaged or missing is ignored without harm', (t) => {
  const { folder, state } = copy(t)
  const file = path.join(folder, 'lib', 'start', 'bundle')
  const code = generatedFiles(folder).filter((name) => path.basename(name).startsWith('bundle.'))
  t.is(code.length, hasCode ? 1 : 0)
  for (const name of code) {
    const whole = fs.readFileSync(name)
    const start = whole.subarray(0, 1000)
    for (const part of ['', 'no code', start, Buffer.concat([start, whole.subarray(-16)])]) {
      fs.writeFileSync(name, part)
      const { used, enabled, fault } = state()
      t.deepEqual([used, enabled, fault], [true, true, undefined])
    }
  }
  for (const name of ['core/clock.js', 'api.js']) { // of each generated file one
    const source = path.join(folder, 'lib', name)
    const { mtime } = fs.statSync(source)
    const text = fs.readFileSync(source, 'utf8')
    const change = 'globalThis.changed = 1//'
    const comment = text.indexOf('// ')
    const sameSize = text.slice(0, comment) + change + text.slice(comment + change.length)
    for (const [changed, time] of /** @type {Array<[string, Date]>} */ ([
      [`${text}\n${change}\n`, mtime], [sameSize, new Date(Date.now() + 120_000)]
    ])) {
      fs.writeFileSync(source, changed)
      fs.utimesSync(source, time, time)
      t.like(state(), { used: true, changed: 1, enabled: true }, name)
      fs.writeFileSync(source, text)
      fs.utimesSync(source, mtime, mtime)
      t.like(state(), { used: true, changed: undefined, enabled: true }, name)
    }
  }
  const text = fs.readFileSync(file, 'latin1')
  const broken = text.replace('function installWhole() {', 'function installWhole( {')
  for (const damaged of ['', text.slice(0, text.length / 2), broken]) {
    fs.writeFileSync(file, damaged)
    const { used, enabled, fault } = state()
    t.deepEqual([used, enabled, fault], [false, true, undefined])
  }
  fs.rmSync(file)
  t.false(state().used)
})
