'use strict'

// Limits, clocks, signals and flags: a program behaves the same with and without longstack.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { buildShim, compare, runOnce, temporary, testPlans, ways } = require('../helpers/faults')
const { againIfStarved } = require('../helpers/starved')
const { register, runsAll } = require('../helpers/run')
const { recordsOf } = require('../helpers/records')

const FIRST = ['-r', path.join(__dirname, '..', 'fixtures', 'faults', 'on.js')]
const OPEN_ALL = `const files = globalThis.files = []; try { for (;;) files.push(fs.openSync("/dev/null")) } catch (error) { console.log(error.code) }
  for (let i = 0; i < 3; i++) fs.closeSync(files.pop())`
const CLOSE_ALL = 'for (const file of globalThis.files) fs.closeSync(file)'
const HOUR_S = 3600
const STOPPED_MS = 2000

const major = Number(process.versions.node.split('.')[0])
const permission = major >= 24 ? '--permission' : '--experimental-permission'
const { shim } = buildShim()
const preloaded = { ...(shim !== undefined && { LD_PRELOAD: shim }), FAULT_NAME: 'spans' }
const isRoot = process.getuid?.() === 0

/**
 * @typedef {object} Case
 * @property {string[]} [first]
 * @property {string[]} [args]
 * @property {Record<string, string>} [env]
 * @property {string} [shell]
 * @property {string} [spans]
 * @property {RegExp} [says] the only line of longstack; none without
 * @property {Record<string, string>} [options]
 * @property {boolean} [isOff] tracing does not start
 */

/** @type {Record<string, Case>} */
const cases = {
  'too many open files': { shell: 'ulimit -n 40', env: { DURING: OPEN_ALL, AFTER: CLOSE_ALL } },
  'no home, no directory for temporary files, a huge environment': {
    env: {
      HOME: '', TMPDIR: '/nonexistent', ...Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`LARGE_${i}`, 'x'.repeat(10_000)]))
    }
  },
  'a current directory that is deleted': { shell: 'mkdir gone && cd gone && rmdir ../gone' },
  'a current directory that is deleted, and a relative name': {
    shell: 'mkdir gone && cd gone && rmdir ../gone', spans: 'spans.jsonl', says: /LONGSTACK_SPANS: .*: the name is relative to a directory that was deleted\./
  },
  'an environment without PATH and locale': { shell: 'unset PATH LANG HOME PWD' },
  'a limit of the address space': { shell: 'ulimit -v 2500000' },
  '--jitless': { args: ['--jitless'] },
  '--no-addons': { args: ['--no-addons'] },
  '--frozen-intrinsics': { args: ['--frozen-intrinsics', '--no-warnings'] },
  '--disable-proto=delete': { args: ['--disable-proto=delete'] },
  '--disable-proto=throw': { args: ['--disable-proto=throw'] },
  '--stack-size=300': { args: ['--stack-size=300'] },
  '--max-old-space-size=24': { args: ['--max-old-space-size=24'] },
  'the permission model without a right to write': {
    args: ['--no-warnings', permission, '--allow-fs-read=*', ...(major >= 25 ? ['--allow-net'] : [])],
    says: /permission model forbids it \(ERR_ACCESS_DENIED\)/
  }
}

/** @type {Record<string, Case>} */
const shimmed = {
  'no thread for the watchdog': {
    first: FIRST,
    env: { FAULT_THREADS: '11' },
    options: { LONGSTACK_BLOCKED: '5000' },
    says: /blocking callbacks cannot be detected(?:: | without the native engine)/
  },
  'no memory for large blocks at start': { first: FIRST, env: { FAULT_BYTES: String(1 << 20) }, says: /longstack: off, /, isOff: true },
  'no memory for large blocks later': { env: { FAULT_BYTES: String(1 << 20), DURING: 'switchFaults("on")' } },
  'a wall clock that jumps by hours to and fro': {
    env: { FAULT_CLOCK: String(HOUR_S), DURING: 'switchFaults("on")' }, options: { LONGSTACK_BLOCKED: '5000' }
  },
  'a wall clock that jumps from the start': { first: FIRST, env: { FAULT_CLOCK: String(HOUR_S) } }
}

if (isRoot && spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'none', '/proc']).status === 0) {
  cases['no /proc'] = {
    shell: 'if [ -z "$M" ]; then export M=1; exec unshare -m /bin/sh -c \'mount -t tmpfs none /proc; exec "$0" "$@"\' "$0" "$@"; fi'
  }
}

/**
 * Asserts that spans of a file have sane lengths: nothing here takes as long as the wall clock jumps.
 * @param {import('ava').ExecutionContext} t
 * @param {string} file
 */
function assertTimes (t, file) {
  if (!fs.existsSync(file)) return
  for (const { startTimeUnixNano, endTimeUnixNano, name } of recordsOf(fs.readFileSync(file, 'utf8'))) {
    const seconds = Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e9
    t.true(seconds >= 0 && seconds < HOUR_S / 2, `${name}: ${seconds} s`)
    const start = Number(BigInt(startTimeUnixNano) / 1_000_000n)
    t.true(Math.abs(start - Date.now()) < 2 * HOUR_S * 1000, startTimeUnixNano)
  }
}

let turn = 0

/** @param {string} title @param {Case} plan */
function testCase (title, { says, options = {}, isOff = false, env = {}, spans, ...plan }) {
  const chosen = runsAll ? ways : [ways[turn++ % ways.length]]
  test(title, async (t) => {
    for (const way of chosen) {
      const directory = temporary(t)
      const file = spans ?? path.join(directory, 'spans.jsonl')
      const prepare = () => fs.rmSync(path.join(directory, 'spans.jsonl'), { force: true })
      const scene = { directory, prepare, spans: file, env: { REQUESTS: '24', THREADS: '0', ...env }, ...plan }
      const given = way.capture === 'js' && says === undefined ? {} : options // without the addon `blocked` tells so
      const { traced: { stats }, lines } = await compare(t, scene, way, given)
      const label = `${way.capture} ${lines}`
      t.is(lines.length, says === undefined ? 0 : 1, label)
      if (says !== undefined) t.regex(lines[0], says, label)
      if (isOff || stats?.spans === undefined) {
        t.true(isOff || spans !== undefined, label)
        continue
      }
      t.is(stats.fault, undefined, label)
      const { open, ended, written, waiting, dropped } = stats.spans
      t.deepEqual([open, ended, written + waiting + dropped], [0, 48, 48], label)
      if (says === undefined) t.is(written, ended, label)
      assertTimes(t, file)
    }
  })
}

testPlans(testCase, cases, Object.entries(shimmed).map(([title, plan]) => {
  return [title, { ...plan, env: { ...preloaded, ...plan.env } }]
}))

if (process.platform !== 'win32') {
  test.serial('two seconds of SIGSTOP do not count as a blocking callback', (t) => againIfStarved(t, stop))
}

/** @param {import('ava').ExecutionContext} t */
async function stop (t) {
  const directory = temporary(t)
  let isStopped = false
  /** @param {import('node:child_process').ChildProcess} child */
  const started = (child) => child.stdout?.once('data', () => {
    child.kill('SIGSTOP')
    isStopped = true
    setTimeout(() => child.kill('SIGCONT'), STOPPED_MS)
  })
  const prepare = () => fs.rmSync(path.join(directory, 'spans.jsonl'), { force: true })
  const env = { REQUESTS: '40', THREADS: '0', AFTER: 'await wait(300)' }
  const scene = { directory, prepare, started, env }
  const { traced: { stats }, lines } = await compare(t, scene, ways[0], { LONGSTACK_BLOCKED: '1000' })
  t.true(isStopped)
  t.deepEqual(lines, [])
  t.is(stats.spans.written, 80)
  assertTimes(t, path.join(directory, 'spans.jsonl'))
}

/**
 * Runs a program bare and traced.
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {string[]} args of node
 */
async function ending (t, source, args) {
  const directory = temporary(t)
  const file = path.join(directory, 'program.js')
  fs.writeFileSync(file, source)
  const bare = await runOnce({ directory, file, args }, [], {})
  for (const { capture } of ways) {
    const spans = path.join(directory, 'spans.jsonl')
    const own = { LONGSTACK_CAPTURE: capture, LONGSTACK_SPANS: spans }
    const traced = await runOnce({ directory, file, args }, ['-r', register], own)
    const label = `${capture} ${traced.stderr}`
    t.deepEqual([traced.code, traced.signal, traced.stdout], [bare.code, bare.signal, bare.stdout], label)
  }
  return bare
}

test('a program that runs out of memory dies as it would without longstack', async (t) => {
  const { code, signal } = await ending(t, `
    console.log('begins')
    const kept = []
    const grow = () => { for (let i = 0; i < 1000; i++) kept.push(new Array(1000).fill(i)); setImmediate(grow) }
    grow()`, ['--max-old-space-size=32'])
  t.true(signal === 'SIGABRT' || code === 134, `${code} ${signal}`)
})

test('a tiny stack overflows in callbacks and promises, and the errors are caught', async (t) => {
  const { stdout } = await ending(t, `
    const deep = (n) => n === 0 ? 0 : 1 + deep(n - 1)
    const overflow = () => { try { deep(1e6) } catch (error) { return error instanceof RangeError } }
    console.log(overflow())
    setTimeout(() => {
      console.log(overflow())
      Promise.resolve().then(overflow).then(console.log)
      process.nextTick(() => console.log(overflow()))
    }, 1)`, ['--stack-size=200'])
  t.is(stdout, 'true\ntrue\ntrue\ntrue\n')
})

test('if the reader of stdout goes away, the program ends as it would without longstack', async (t) => {
  const directory = temporary(t)
  /** @param {import('node:child_process').ChildProcess} child */
  const started = (child) => { child.stdout?.destroy() }
  for (const spans of ['-', path.join(directory, 'spans.jsonl')]) {
    const scene = { directory, started, spans, env: { REQUESTS: '24', THREADS: '0' } }
    const { lines } = await compare(t, scene, ways[0])
    t.true(lines.length <= 1, String(lines))
  }
})
