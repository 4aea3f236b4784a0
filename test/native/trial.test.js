'use strict'

// The trial of the addon on untested platforms: copies of the package with an empty list of tested platforms,
// with the real addon or a harmful one, which is compiled here.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { build } = require('../../examples/native-counter/build')
const { binaryName, ownDirectory, target } = require('../../lib/platform')
const { loadBinding } = require('../../lib/stacks/binding')
const { isTested } = require('../../lib/stacks/tested')
const { run, strict, versions } = require('../helpers/installed')
const { root } = require('../helpers/run')

const ATTEMPTS = 10 // on a machine so busy that a trial takes too long
const PATIENCE_MS = 10_000 // of a start that tries an addon which hangs, on a busy machine
const SEVERAL = 3 // processes at once

/** What the addon does, by the numbers of test/fixtures/trial/addon.c, and what is told of it. */
const harms = [
  { name: 'SIGSEGV', harm: 1, code: 'TRIAL_CRASHED', why: 'its trial in a child process ended with SIGSEGV' },
  { name: 'SIGILL', harm: 2, code: 'TRIAL_CRASHED', why: 'its trial in a child process ended with SIGILL' },
  { name: 'abort()', harm: 3, code: 'TRIAL_CRASHED', why: 'its trial in a child process ended with SIGABRT' },
  { name: 'the end of the process', harm: 4, code: 'TRIAL_FAILED', why: 'its trial in a child process failed: exit code 3' },
  { name: 'waiting for ever', harm: 5, code: 'TRIAL_HUNG', why: 'its trial in a child process did not end within 1.5 s' },
  { name: 'a loop without end', harm: 6, code: 'TRIAL_HUNG', why: 'its trial in a child process did not end within 1.5 s' },
  { name: 'a self-test that fails', harm: 7, code: 'TRIAL_FAILED', why: 'its trial in a child process failed: self-test failed: 1' },
  { name: 'SIGSEGV in the self-test', harm: 8, code: 'TRIAL_CRASHED', why: 'its trial in a child process ended with SIGSEGV' },
  { name: 'SIGSEGV at the end', harm: 9, code: 'TRIAL_CRASHED', why: 'its trial in a child process ended with SIGSEGV' }
]

const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-trial-')))
test.after.always(() => fs.rmSync(folder, { recursive: true, force: true }))
const scratch = () => fs.mkdtempSync(path.join(folder, 'scratch-'))

/** Where nothing can be made or written, for root either. */
const NOWHERE = '/dev/null/nowhere'
const binary = path.join(ownDirectory(), binaryName(process.versions.modules))
/** A trial of it is short. */
const crashing = path.join(folder, '1.node')

/** Counts the processes that a thread starts in this way: preloaded before longstack. */
const counter = path.join(folder, 'counter.js')
fs.writeFileSync(counter, `
  const processes = require('node:child_process')
  const { spawnSync } = processes
  globalThis.started = 0
  processes.spawnSync = function () {
    globalThis.started++
    return spawnSync.apply(this, arguments)
  }
`)

/** What is started: tells what is in force in its thread, and in a worker. */
const PROGRAM = `
  const { Worker, isMainThread, parentPort } = require('node:worker_threads')
  const trace = require('./index.js')
  const { engine, engineCode, engineWhy, fault } = trace.stats()
  const { started } = globalThis
  const state = { engine, engineCode, engineWhy, fault, started }
  if (!isMainThread) parentPort.postMessage(state)
  else {
    setTimeout(function later () {
      const { stack } = new Error('made')
      const { trial, text, notes } = trace.doctor()
      const tell = (worker) => console.log(JSON.stringify({ ...state, stack, trial, text, notes, worker }))
      if (process.permission) return tell()
      new Worker(__filename).on('message', tell)
    }, 1)
    process.exitCode = 7
  }
`

/** Why nothing can be tried here. */
function obstacle () {
  const why = loadBinding().failure?.code
  if (why !== undefined) return `no native part: ${why}`
  try {
    for (const { harm } of harms) build(sourceOf(harm), path.join(folder, `${harm}.node`))
  } catch (error) {
    return `nothing was compiled: ${error.message}`
  }
}

/** @param {number} harm */
function sourceOf (harm) {
  const file = path.join(folder, `${harm}.c`)
  fs.writeFileSync(file, `#define HARM ${harm}\n#include ${JSON.stringify(path.join(root, 'test/fixtures/trial/addon.c'))}\n`)
  return file
}

const why = obstacle()
const able = why === undefined ? test.serial : () => {}
if (why !== undefined) {
  test('without a compiler or a binary, the trial is not tested', (t) => {
    t.log(why)
    t.false(strict, why)
  })
}

/**
 * A copy of the package that was tested nowhere.
 * @param {string} [addon] in the place of its own
 */
function copy (addon) {
  const home = scratch()
  for (const name of ['lib', 'report', 'index.js', 'package.json']) fs.cpSync(path.join(root, name), path.join(home, name), { recursive: true, preserveTimestamps: true })
  for (const name of fs.readdirSync(path.join(home, 'lib', 'start'))) if (name.startsWith('bundle')) fs.rmSync(path.join(home, 'lib', 'start', name))
  const tested = path.join(home, 'lib', 'stacks', 'tested.js')
  const text = fs.readFileSync(tested, 'utf8')
  const emptied = text.replace(/(PLATFORMS = )\[[^\]]*\]/, '$1[]')
  if (emptied === text) throw new Error('nothing to take out of tested.js')
  fs.writeFileSync(tested, emptied)
  fs.writeFileSync(path.join(home, 'program.js'), PROGRAM)
  const prebuilds = path.join('native', 'prebuilds', target()) // others may be compiled meanwhile
  fs.cpSync(path.join(root, prebuilds), path.join(home, prebuilds), { recursive: true })
  if (addon !== undefined) fs.copyFileSync(addon, path.join(home, path.relative(root, binary)))
  return home
}

/**
 * Runs a program with a copy of the package.
 * @param {import('ava').ExecutionContext} t
 * @param {string} home
 * @param {object} options
 * @param {string} options.cache
 * @param {string[]} [options.args] of node
 * @param {Record<string, string | undefined>} [options.env]
 * @param {string} [options.node]
 */
async function start (t, home, { cache, args = [], env = {}, node = process.execPath }) {
  const begin = performance.now()
  const all = ['-r', counter, '-r', './lib/register.js', ...args, 'program.js']
  const variables = { XDG_CACHE_HOME: cache, LONGSTACK_CAPTURE: 'auto', ...env }
  const options = { cwd: home, env: /** @type {any} */ (variables) }
  const { code, signal, stdout, stderr } = await run(node, all, options)
  const ms = Math.round(performance.now() - begin)
  t.deepEqual([code, signal, withoutWarning(stderr)], [7, null, ''])
  const state = JSON.parse(stdout)
  t.is(state.fault, undefined)
  t.regex(state.stack, /^Error: made\n {4}at .*later.*\n[^]* {2}── setTimeout\(1\) · \d+ ms earlier ──\n {4}at Object/)
  return { ...state, ms }
}

/** Node and V8 warn of --allow-addons and --jitless. @param {string} stderr */
const withoutWarning = (stderr) => {
  return stderr.replace(/^\(node:\d+\) .*SecurityWarning.*\n\(Use .*\n|^Warning: disabling flag .*\n/, '')
}

/**
 * The first start with a cache: again where the machine was too busy for a trial that does end.
 * @param {import('ava').ExecutionContext} t
 * @param {string} home
 * @param {Parameters<typeof start>[2]} options
 * @param {string} code of what is expected
 */
async function firstStart (t, home, options, code = 'SELF_TEST_PASSED') {
  for (let attempt = 1; ; attempt++) {
    const state = await start(t, home, options)
    if (state.engineCode === code || state.engineCode !== 'TRIAL_HUNG' || attempt === ATTEMPTS) {
      t.is(state.engineCode, code, state.engineWhy)
      return state
    }
    t.log('this machine is busy')
    if (state.trial !== undefined) fs.rmSync(state.trial, { force: true })
  }
}

/** @param {string} file */
const identity = (file) => {
  const { ino, mtimeNs } = fs.statSync(file, { bigint: true })
  return [ino, mtimeNs]
}

able('a tested binary loads at once, and starts and writes nothing', async (t) => {
  for (const { node, major } of versions().there) {
    const args = ['-p', `require(${JSON.stringify(path.join(root, 'lib/stacks/tested.js'))}).isTested('linux-x64')`]
    t.is((await run(node, args, { cwd: root })).stdout, 'true\n', `Node ${major}`)
  }
  if (!isTested(target())) return
  const cache = scratch()
  const args = ['-r', counter, '-r', path.join(root, 'lib', 'register.js'), '-p', 'started']
  const { stdout, stderr } = await run(process.execPath, args, { cwd: root, env: { XDG_CACHE_HOME: cache } })
  t.deepEqual([stdout, stderr], ['0\n', ''])
  t.deepEqual(fs.readdirSync(cache), [])
})

able('a good addon is tried once', async (t) => {
  const home = copy()
  const cache = path.join(scratch(), 'is', 'made')
  const first = await firstStart(t, home, { cache })
  t.like(first, { engine: 'native', started: 1, worker: { engine: 'native', started: 0 } })
  t.is(path.dirname(first.trial), path.join(cache, 'longstack'))
  t.true(first.text.includes(first.trial))
  t.is(fs.statSync(path.dirname(first.trial)).mode & 0o777, 0o700)
  t.is(fs.statSync(first.trial).mode & 0o777, 0o600)
  const before = identity(first.trial)
  const second = await start(t, home, { cache })
  t.like(second, { engine: 'native', started: 0, trial: first.trial, worker: { engine: 'native', started: 0 } })
  t.deepEqual(identity(first.trial), before)
  t.log(`first start ${first.ms} ms, second ${second.ms} ms, both with a worker`)

  t.is((await firstStart(t, home, { cache, args: ['--jitless'] })).started, 1, 'other code, another trial')
  t.is((await start(t, home, { cache, args: ['--max-old-space-size=500'] })).started, 0)
  t.like(await start(t, home, { cache, env: { LONGSTACK_CAPTURE: 'js' } }), { engineCode: 'ASKED', started: 0 })
})

for (const { name, harm, code, why } of harms) {
  able(`a harmful addon is rejected: ${name}`, async (t) => {
    const home = copy(path.join(folder, `${harm}.node`))
    const cache = scratch()
    const first = await firstStart(t, home, { cache }, code)
    t.like(first, { engine: 'js', engineCode: code, engineWhy: why, started: 1 })
    t.true(first.ms < PATIENCE_MS, `${first.ms} ms`)
    t.like(first.worker, { engine: 'js', engineCode: code, started: 0 })
    t.deepEqual(first.notes, [`The native engine is not in use: ${why}. Delete ${first.trial} to try again.`])
    t.deepEqual(fs.readdirSync(home).filter((file) => /core/.test(file)), [])
    const before = identity(first.trial)
    const second = await start(t, home, { cache })
    t.like(second, { engine: 'js', engineCode: code, engineWhy: why, started: 0 })
    t.like(second.worker, { engine: 'js', engineCode: code, started: 0 })
    t.deepEqual(identity(first.trial), before)
    t.log(`first start ${first.ms} ms, second ${second.ms} ms, both with a worker`)
    if (harm > 1) return
    fs.copyFileSync(binary, path.join(home, path.relative(root, binary)))
    t.like(await firstStart(t, home, { cache }), { engine: 'native', started: 1 }, 'another addon, another trial')
    fs.rmSync(first.trial)
    fs.copyFileSync(path.join(folder, `${harm}.node`), path.join(home, path.relative(root, binary)))
    t.like(await firstStart(t, home, { cache }, code), { engine: 'js', started: 1 }, 'the file was deleted')
  })
}

able('a trial that hung is repeated after ten minutes, one that crashed is not', async (t) => {
  for (const [harm, started] of [[5, 1], [1, 0]]) {
    const home = copy(path.join(folder, `${harm}.node`))
    const cache = scratch()
    const { trial, engineCode } = await firstStart(t, home, { cache }, harm === 5 ? 'TRIAL_HUNG' : 'TRIAL_CRASHED')
    const result = JSON.parse(fs.readFileSync(trial, 'utf8'))
    fs.writeFileSync(trial, JSON.stringify({ ...result, at: result.at - 11 * 60 * 1000 }))
    t.like(await start(t, home, { cache }), { started, engineCode })
  }
})

able('if no result can be stored, each process runs a trial, and its workers do not', async (t) => {
  const env = { TMPDIR: NOWHERE }
  const home = copy()
  for (let i = 0; i < 2; i++) {
    const state = await firstStart(t, home, { cache: NOWHERE, env })
    t.like(state, { engine: 'native', started: 1, trial: undefined, worker: { engine: 'native', started: 0 } })
    t.log(`a start takes ${state.ms} ms`)
  }
  const state = await firstStart(t, copy(path.join(folder, '1.node')), { cache: NOWHERE, env }, 'TRIAL_CRASHED')
  t.like(state, { engine: 'js', started: 1, worker: { engine: 'js', engineCode: 'TRIAL_CRASHED', started: 0 } })
})

able('a directory accessible to others is not used', async (t) => {
  const home = copy(crashing)
  const own = `longstack-${process.geteuid?.()}`
  /** @type {Record<string, (directory: string) => void>} */
  const others = {
    'a link': (directory) => fs.symlinkSync(scratch(), directory),
    'one that others may enter': (directory) => { fs.mkdirSync(directory); fs.chmodSync(directory, 0o755) },
    'a file': (directory) => fs.writeFileSync(directory, '')
  }
  if (process.geteuid?.() === 0) {
    others["another user's"] = (directory) => {
      fs.mkdirSync(directory, { mode: 0o700 })
      fs.chownSync(directory, 65534, 65534)
    }
  }
  for (const [name, make] of Object.entries(others)) {
    const [cache, TMPDIR] = [scratch(), scratch()]
    make(path.join(cache, 'longstack'))
    const { trial } = await firstStart(t, home, { cache, env: { TMPDIR } }, 'TRIAL_CRASHED')
    t.is(path.dirname(trial), path.join(TMPDIR, own), name)
    make(path.join(TMPDIR, `${own}-`))
    fs.rmSync(path.join(TMPDIR, own), { recursive: true })
    fs.renameSync(path.join(TMPDIR, `${own}-`), path.join(TMPDIR, own))
    t.is((await firstStart(t, home, { cache, env: { TMPDIR } }, 'TRIAL_CRASHED')).trial, undefined, name)
    if (name !== 'a file') t.deepEqual(fs.readdirSync(path.join(cache, 'longstack')), [])
  }
})

able('the directory is below the user\'s home, or the one for temporary files', async (t) => {
  const home = copy(crashing)
  const XDG_CACHE_HOME = undefined
  const [HOME, TMPDIR] = [scratch(), scratch()]
  const below = process.platform === 'darwin' ? ['Library', 'Caches'] : ['.cache']
  const { trial } = await firstStart(t, home, { cache: '', env: { XDG_CACHE_HOME, HOME, TMPDIR } }, 'TRIAL_CRASHED')
  t.is(path.dirname(trial), path.join(HOME, ...below, 'longstack'))
  for (const [name, HOME] of /** @type {const} */ ([['empty', ''], ['relative', 'home'], ['absent', path.join(folder, 'absent')], ['no directory', NOWHERE]])) {
    const { trial } = await firstStart(t, home, { cache: '', env: { XDG_CACHE_HOME: 'relative', HOME, TMPDIR } }, 'TRIAL_CRASHED')
    t.is(path.dirname(path.dirname(trial)), TMPDIR, name)
  }
  if (process.geteuid?.() === 0) {
    const HOME = scratch()
    fs.chownSync(HOME, 65534, 65534)
    const { trial } = await firstStart(t, home, { cache: '', env: { XDG_CACHE_HOME, HOME, TMPDIR } }, 'TRIAL_CRASHED')
    t.is(path.dirname(path.dirname(trial)), TMPDIR, "another user's")
    t.deepEqual(fs.readdirSync(HOME), [])
  }
  const unset = await firstStart(t, home, { cache: '', env: { XDG_CACHE_HOME, HOME: undefined, TMPDIR } }, 'TRIAL_CRASHED')
  if (unset.trial !== undefined) fs.rmSync(unset.trial)
})

able('a corrupt result file is ignored and replaced', async (t) => {
  const home = copy(crashing)
  const cache = scratch()
  const { trial } = await firstStart(t, home, { cache }, 'TRIAL_CRASHED')
  const text = fs.readFileSync(trial, 'utf8')
  const { key } = JSON.parse(text)
  const nonsense = ['', '{', 'null', '[]', '{}', '"text"', '\0\xff', text.replace(key, 'another'),
    JSON.stringify({ key, at: 1, reason: { code: 'UNKNOWN' } }), JSON.stringify({ key, at: 1, reason: { code: 'TRIAL_CRASHED', detail: {} } })]
  for (const wrong of nonsense) {
    fs.writeFileSync(trial, wrong)
    t.like(await firstStart(t, home, { cache }, 'TRIAL_CRASHED'), { engine: 'js', started: 1 }, wrong)
    t.is(JSON.parse(fs.readFileSync(trial, 'utf8')).key, key)
  }
})

able('several processes at once all run a trial, and leave one file', async (t) => {
  const home = copy()
  const cache = scratch()
  const states = await Promise.all(Array.from({ length: SEVERAL }, () => start(t, home, { cache })))
  const codes = states.map(({ engineCode }) => engineCode)
  t.log(codes.join(', '))
  for (const code of codes) t.true(['SELF_TEST_PASSED', 'TRIAL_HUNG'].includes(code), code)
  t.deepEqual(fs.readdirSync(path.join(cache, 'longstack')), [path.basename(states[0].trial)])
  const next = await start(t, home, { cache })
  t.is(next.started, 0)
  if (codes.includes('SELF_TEST_PASSED')) t.is(next.engine, 'native', 'who was too slow takes nothing back')
})

able('each version of Node has its own trial', async (t) => {
  const home = copy()
  const cache = scratch()
  const { there } = versions()
  for (const { node } of there) await firstStart(t, home, { cache, node })
  t.is(fs.readdirSync(path.join(cache, 'longstack')).length, there.length)
  for (const { node } of there) t.is((await start(t, home, { cache, node })).started, 0)
})

able('if no process may be started, there is no trial, but earlier results count', async (t) => {
  if (!process.allowedNodeEnvironmentFlags.has('--permission')) return t.pass(`${process.version} has no such flag`)
  const home = copy()
  const cache = scratch()
  const args = ['--permission', '--allow-fs-read=*', '--allow-addons']
  t.like(await start(t, home, { cache, args }), {
    engine: 'js',
    engineCode: 'TRIAL_IMPOSSIBLE',
    engineWhy: 'it is untested on this platform and V8, and a trial is impossible: --permission forbids child processes',
    started: 0
  })
  await firstStart(t, home, { cache })
  t.like(await start(t, home, { cache, args }), { engine: 'native', started: 0 })
})

able('an executable that may be the program itself is not started', async (t) => {
  const home = copy()
  const node = path.join(scratch(), 'server')
  fs.copyFileSync(process.execPath, node)
  const { engineCode, engineWhy, started } = await start(t, home, { cache: scratch(), node })
  t.is(engineCode, 'TRIAL_IMPOSSIBLE')
  t.true(engineWhy.endsWith(`: ${node} is not called node`), engineWhy)
  t.is(started, 0)
})

able('the trial\'s process gets none of the program\'s settings', async (t) => {
  const home = copy()
  const log = path.join(home, 'log.txt')
  const preloaded = path.join(home, 'preloaded.js')
  fs.writeFileSync(preloaded, `require('node:fs').appendFileSync(${JSON.stringify(log)}, 'a thread\\n')`)
  const NODE_V8_COVERAGE = path.join(home, 'coverage')
  await firstStart(t, home, { cache: scratch(), env: { NODE_OPTIONS: `-r ${preloaded}`, NODE_V8_COVERAGE, LONGSTACK_SPANS: path.join(home, 'spans') } })
  const threads = fs.readFileSync(log, 'utf8').trim().split('\n').length
  t.is(threads % 2, 0, 'the main thread and a worker for each start')
  const processes = new Set(fs.readdirSync(NODE_V8_COVERAGE).map((name) => name.split('-')[1]))
  t.is(processes.size, threads / 2)
})
