'use strict'

// Runs Node's own tests with longstack in its modes, and what fails without a preload and with an empty hook
// as well: node test/suites/node-core.js DIRECTORY --help. A file of tests is one process; it passes if that
// exits with 0. Results are lines of JSON, and a file that has a line is not run again.

const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const { Socket } = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')
const { parseArgs } = require('node:util')
const { environmentOf, parseModes } = require('./modes')

const BARE_MS = 20_000 // a file that takes longer by itself is left out
const TRACED_MS = 60_000
const REPEATS = 3
const OUTPUT_CHARS = 3000
const GRACE_MS = 1000 // a process that has left the group may hold stdout open

const usage = `Usage: node test/suites/node-core.js DIRECTORY [options] [-- FLAGS]

Runs the tests in DIRECTORY, the folder test of Node's repository, with the Node that runs this and FLAGS of it.

  --sets A,B       folders of DIRECTORY (default async-hooks,parallel,sequential)
  --match REGEX    only files whose name matches
  --modes A,B      full, js, spans (default these), stdout: spans to \`-\`
  --stdout KIND    what stdout of the tests is, without longstack as well: file (default), socket, pipe
  --results FILE   lines of JSON, continued if there are some (default node-core.ndjson)
  --jobs N         processes at a time (default 2)
  --seconds N      stops after so long with exit code 3; run it again to continue
  --again          runs what differed, or was unsteady, once more
  --summary        runs nothing, prints the counts of the file of results

States: ok; fails, slow: without a preload; hook: an empty hook fails, too; stacks: fails because a stack is
longer, and not with LONGSTACK_ERRORS=off; lines: fails because lines of spans are on stdout, and not where
these are not written; unsteady: not each of ${REPEATS} times; differs: all else.`

/** What stdout of the tests may be. */
const kinds = ['file', 'socket', 'pipe']

/**
 * @typedef {import('./modes').Column} Column
 *
 * @typedef {object} Result a line of the file of results
 * @property {string} file
 * @property {Column} column
 * @property {'ok' | 'fails' | 'slow' | 'hook' | 'stacks' | 'lines' | 'unsteady' | 'differs'} state
 * @property {string} [rates] failures of each column that was repeated
 * @property {string} [output] the end of what a failure printed
 *
 * @typedef {object} Place
 * @property {number} job gives the process ports of its own
 * @property {string} stdout what it is
 * @property {string[]} nodeFlags
 */

if (require.main === module) main()

async function main () {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      sets: { type: 'string', default: 'async-hooks,parallel,sequential' },
      match: { type: 'string', default: '' },
      modes: { type: 'string' },
      stdout: { type: 'string', default: 'file' },
      results: { type: 'string', default: 'node-core.ndjson' },
      jobs: { type: 'string', default: '2' },
      seconds: { type: 'string', default: 'Infinity' },
      again: { type: 'boolean', default: false },
      summary: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false }
    }
  })
  const [directory, ...nodeFlags] = positionals
  const isWrong = (directory === undefined && !values.summary) || !kinds.includes(values.stdout)
  if (values.help || isWrong) {
    console.log(usage)
    process.exitCode = values.help ? 0 : 2
    return
  }
  const store = openResults(values.results, values.again)
  if (!values.summary) {
    const modes = parseModes(values.modes)
    const files = listTests(path.resolve(directory), values.sets.split(','), new RegExp(values.match))
    const end = Date.now() + Number(values.seconds) * 1000
    const queue = files.filter((file) => modes.some((mode) => store.isMissing(file, mode)))
    const jobs = Array.from({ length: Number(values.jobs) }, async (_, job) => {
      const place = { job, stdout: values.stdout, nodeFlags }
      while (queue.length > 0 && Date.now() < end) {
        await runFile(path.resolve(directory), String(queue.shift()), modes, store, place)
      }
    })
    await Promise.all(jobs)
    if (queue.length > 0) process.exitCode = 3
  }
  store.print()
}

/**
 * Runs one file in all columns that have no result yet.
 * @param {string} directory
 * @param {string} file
 * @param {import('./modes').Mode[]} modes
 * @param {ReturnType<typeof openResults>} store
 * @param {Place} place
 */
async function runFile (directory, file, modes, store, place) {
  /**
   * @param {Column} column
   * @param {number} [times]
   * @param {{ keepsStacks?: boolean, dropsLines?: boolean }} [options]
   * @returns {Promise<{ failures: number, output: string, slow: boolean }>}
   */
  async function repeat (column, times = 1, options = {}) {
    let failures = 0
    let slow = false
    let output = ''
    for (let i = 0; i < times; i++) {
      const run = await runTest(directory, file, column, place, options)
      if (run.code === 0) continue
      failures++
      slow ||= run.slow
      output = `${run.code}\n${run.output}`
    }
    return { failures, output, slow }
  }

  /** @param {import('./modes').Mode} mode */
  async function causeOf (mode) {
    if ((await repeat(mode, REPEATS, { keepsStacks: true })).failures === 0) return 'stacks'
    if (mode !== 'stdout') return 'differs'
    return (await repeat(mode, REPEATS, { dropsLines: true })).failures === 0 ? 'lines' : 'differs'
  }

  for (const mode of modes) {
    if (!store.isMissing(file, mode)) continue
    const first = await repeat(mode)
    if (first.failures === 0) {
      store.add({ file, column: mode, state: 'ok' })
      continue
    }
    if (store.isMissing(file, 'bare')) {
      const { failures, slow } = await repeat('bare', 2)
      store.add({ file, column: 'bare', state: failures < 2 ? 'ok' : slow ? 'slow' : 'fails' })
    }
    if (store.stateOf(file, 'bare') !== 'ok') return

    const again = await repeat(mode, REPEATS - 1)
    const hook = await repeat('hook', REPEATS)
    const bare = await repeat('bare', REPEATS)
    const failures = 1 + again.failures
    /** @type {Result['state']} */
    let state = 'unsteady'
    if (hook.failures === REPEATS) state = 'hook'
    else if (failures === REPEATS && hook.failures + bare.failures === 0) {
      state = await causeOf(mode)
    }
    const rates = `${failures} of ${REPEATS}, empty hook ${hook.failures}, bare ${bare.failures}`
    store.add({ file, column: mode, state, rates, output: first.output })
    console.log(`${file} ${mode}: ${state} (${rates})`)
  }
}

/**
 * @param {string} directory
 * @param {string} file
 * @param {Column} column
 * @param {Place} place
 * @param {{ keepsStacks?: boolean, dropsLines?: boolean }} options
 * @returns {Promise<{ code: number | string, slow: boolean, output: string }>}
 */
async function runTest (directory, file, column, { job, stdout, nodeFlags }, options) {
  const temporary = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-core-'))
  const name = path.join(temporary, 'output')
  const output = fs.openSync(name, 'w')
  const { flags, variables } = readHeader(path.join(directory, file))
  const pipe = stdout === 'pipe' ? openPipe(path.join(temporary, 'pipe')) : undefined
  try {
    const child = spawn(process.execPath, [...nodeFlags, ...flags, path.join(directory, file)], {
      cwd: path.dirname(directory),
      env: {
        ...environmentOf(column, temporary, options),
        NODE_TEST_DIR: temporary,
        TEST_THREAD_ID: String(job),
        TEST_SERIAL_ID: String(job),
        TEST_PARALLEL: '1',
        ...variables
      },
      stdio: ['ignore', pipe?.input ?? (stdout === 'socket' ? 'pipe' : output), output],
      detached: true // a group of its own, which is ended as a whole
    })
    if (pipe !== undefined) fs.closeSync(pipe.input)
    const reader = pipe?.reader ?? child.stdout
    reader?.on('data', (chunk) => fs.writeSync(output, chunk))
    let slow = false
    const timer = setTimeout(() => {
      slow = true
      killGroup(child.pid)
    }, column === 'bare' ? BARE_MS : TRACED_MS)
    const [code, signal] = await once(child, 'exit')
    clearTimeout(timer)
    killGroup(child.pid)
    if (reader?.closed === false) await Promise.race([once(reader, 'close'), sleep(GRACE_MS)])
    reader?.destroy()
    const text = code === 0 ? '' : fs.readFileSync(name, 'utf8').slice(-OUTPUT_CHARS)
    return { code: signal ?? code, slow, output: text }
  } finally {
    fs.closeSync(output)
    fs.rmSync(temporary, { recursive: true, force: true, maxRetries: 3 })
  }
}

/**
 * Makes a pipe: what spawn makes is a socket.
 * @param {string} name
 */
function openPipe (name) {
  execFileSync('mkfifo', [name])
  const fd = fs.openSync(name, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  return { reader: new Socket({ fd, readable: true, writable: false }), input: fs.openSync(name, 'w') }
}

/** @param {number} [pid] */
function killGroup (pid) {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // all of it has ended
  }
}

/**
 * Reads what a test wants: lines "// Flags: --expose-gc" and "// Env: NAME=value".
 * @param {string} file
 */
function readHeader (file) {
  const text = fs.readFileSync(file, 'utf8')
  const flags = [...text.matchAll(/^\/\/ Flags:\s+(.*)$/gm)].flatMap(([, list]) => list.trim().split(/\s+/))
  const variables = [...text.matchAll(/^\/\/ Env:\s+(.*)$/gm)].flatMap(([, list]) => list.trim().split(/\s+/))
  return { flags, variables: Object.fromEntries(variables.map((pair) => pair.split(/=(.*)/s).slice(0, 2))) }
}

/**
 * @param {string} directory
 * @param {string[]} sets
 * @param {RegExp} pattern
 * @returns {string[]} relative to the directory, with slashes
 */
function listTests (directory, sets, pattern) {
  return sets.flatMap((set) => fs.readdirSync(path.join(directory, set)).sort()
    .filter((name) => /^test-.*\.m?js$/.test(name) && pattern.test(name))
    .map((name) => `${set}/${name}`))
}

/**
 * @param {string} name of the file of results
 * @param {boolean} again leaves out what differed, or was unsteady
 */
function openResults (name, again) {
  const lines = fs.existsSync(name) ? fs.readFileSync(name, 'utf8').split('\n').filter(Boolean) : []
  /** @type {Map<string, Result>} */
  const results = new Map()
  for (const line of lines) put(JSON.parse(line))
  for (const [key, { state }] of results) if (again && /^(differs|unsteady)$/.test(state)) results.delete(key)

  /** @param {Result} result */
  function put (result) {
    results.set(`${result.file} ${result.column}`, result)
  }

  return {
    /** @param {string} file @param {string} column */
    stateOf: (file, column) => results.get(`${file} ${column}`)?.state,
    /** @param {string} file @param {string} column a file that fails by itself misses nothing */
    isMissing (file, column) {
      const bare = results.get(`${file} bare`)?.state
      return !results.has(`${file} ${column}`) && (bare === undefined || bare === 'ok')
    },
    /** @param {Result} result */
    add (result) {
      put(result)
      fs.appendFileSync(name, `${JSON.stringify(result)}\n`)
    },
    print () {
      /** @type {Map<string, Record<string, number>>} */
      const counts = new Map()
      for (const { column, state } of results.values()) {
        const row = counts.get(column) ?? {}
        row[state] = (row[state] ?? 0) + 1
        counts.set(column, row)
      }
      for (const [column, row] of counts) {
        console.log(`${column}: ${Object.entries(row).map(([state, count]) => `${count} ${state}`).join(', ')}`)
      }
    }
  }
}
