'use strict'

// Runs the program of test/fixtures/layouts in one cell of the matrix, bare and under longstack, and compares
// the results.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { stripVTControlCharacters } = require('node:util')
const { quoteWord } = require('../../lib/cli/env')
const { inherited, quoteForShell, withoutHops } = require('./run')

/** @typedef {import('./cover').Combination} Cell */
/** @typedef {import('./layouts').Project} Project */
/** @typedef {'stdout' | 'stderr'} StreamName */

const RUN_MS = 120_000
const INPUT = 'some input'
/** Bash's descriptors of sockets to the test, which resemble Node's pipes. */
const OWN = { stdout: 3, stderr: 4, stdin: 5 }

/** Programs that end with the terminal receive SIGHUP; the reader of a pipe ignores it. */
const READER = "trap '' HUP; exec cat"

/**
 * Bash redirections for each kind of stdout or stderr; empty: the terminal.
 * @type {Record<string, (fd: number, name: StreamName) => string>}
 */
const redirections = {
  socket: (fd, name) => `${fd}>&${OWN[name]}`,
  pipe: (fd, name) => `${fd}> >(${READER} >&${OWN[name]})`,
  file: (fd, name) => `${fd}>"$SCRATCH/${name}"`,
  closed: (fd) => `${fd}>&-`,
  null: (fd) => `${fd}>/dev/null`,
  full: (fd) => `${fd}>/dev/full`,
  terminal: () => ''
}

const AS_STDOUT = 'as stdout' // further kind of stderr: 2>&1

/** Bash redirections for each kind of stdin. @type {Record<string, string>} */
const inputs = {
  socket: `<&${OWN.stdin}`,
  pipe: `< <(printf '${INPUT}')`,
  file: '<"$SCRATCH/input"',
  closed: '<&-',
  null: '</dev/null',
  terminal: ''
}

/**
 * Ways to load longstack into a program; command: starts the program instead of node.
 * @typedef {{ flags?: string[], nodeOptions?: string[], command?: string[], cwd?: string }} Way
 * @type {Record<string, (project: Project) => Way>}
 */
const ways = {
  '-r': () => ({ flags: ['-r', 'longstack/register'] }),
  '--import': () => ({ flags: ['--import', 'longstack/register'] }),
  'NODE_OPTIONS -r': () => ({ nodeOptions: ['-r', 'longstack/register'] }),
  'NODE_OPTIONS --import': () => ({ nodeOptions: ['--import', 'longstack/register'] }),
  'NODE_OPTIONS -r FILE, -r': ({ register }) => ({ flags: ['-r', 'longstack/register'], nodeOptions: ['-r', register] }),
  '-r, --import': () => ({ flags: ['-r', 'longstack/register', '--import', 'longstack/register'] }),
  '-r FILE': ({ register }) => ({ flags: ['-r', register], cwd: os.tmpdir() }),
  'longstack run' ({ register, flags }) {
    const nodeOptions = flags.length > 0 ? [`--node-options=${flags.join(' ')}`] : []
    return { command: [path.join(path.dirname(register), 'cli', 'main.js'), 'run', ...nodeOptions] }
  }
}

/** Values of LONGSTACK_SPANS. @type {Record<string, (scratch: string) => string | undefined>} */
const outputs = {
  off: () => undefined,
  file: (scratch) => path.join(scratch, 'spans.jsonl'),
  '-': () => '-',
  '/dev/stdout': () => '/dev/stdout',
  '/dev/stderr': () => '/dev/stderr'
}

/** Returns the stream that spans go to. @param {Cell} cell @returns {StreamName | undefined} */
function spanStream ({ spans, stderr }) {
  if (spans === '/dev/stderr') return stderr === AS_STDOUT ? 'stdout' : 'stderr'
  return spans === '-' || spans === '/dev/stdout' ? 'stdout' : undefined
}

/** Returns whether output to it is lost. @param {string} kind of a stream */
const isLost = (kind) => ['closed', 'null', 'full'].includes(kind)

/** @param {Cell} cell @returns {number} spans of the program's only request, if they can be read */
function expectedSpans (cell) {
  const stream = spanStream(cell)
  return cell.spans === 'off' || (stream !== undefined && isLost(cell[stream])) ? 0 : 2
}

/** Printed once if spans are lost. */
const WARNING = /^longstack: spans cannot be written to [^\n]+ \(ENOSPC\)\. [^\n]+\n/m
const SPAN = /^\{"(?:traceId|longstack)"[^\n]*\}\n/gm

/**
 * @typedef {object} Played
 * @property {string} stdout including terminal output
 * @property {string} stderr
 * @property {number | null} code
 * @property {string | null} signal
 * @property {any} seen observations of the program; undefined if it ended too early
 * @property {string[]} spans lines
 */

/**
 * Runs the program once, as a child process of the test.
 * @param {Cell} cell
 * @param {Project} project
 * @param {string} scratch a directory that does not exist yet
 * @param {boolean} isTraced
 * @returns {Promise<Played>}
 */
async function play (cell, project, scratch, isTraced) {
  fs.mkdirSync(scratch, { recursive: true })
  for (const directory of [scratch, path.dirname(scratch)]) fs.chmodSync(directory, 0o777)
  fs.writeFileSync(path.join(scratch, 'input'), INPUT)
  const { cwd = project.cwd, ...way } = ways[cell.way](project)
  const { flags = [], nodeOptions = [], command } = isTraced ? way : {}
  const main = path.join(project.main, cell.main)
  const words = [process.execPath, ...(command ?? [...project.flags, ...flags]), main]
  const script = path.join(scratch, 'run.sh')
  fs.writeFileSync(script, shellScript(words, cell))
  const options = [...project.preloads, ...nodeOptions].map(quoteWord).join(' ')
  // A socket that receives spans is non-blocking from the start: docs/sinks.md
  const isLong = cell.stdout !== 'terminal' && !(cell.stdout === 'socket' && spanStream(cell) === 'stdout')
  const env = {
    ...inherited,
    SCRATCH: scratch,
    LAYOUT_END: cell.end,
    LAYOUT_SEEN: path.join(scratch, 'seen'),
    TERM: 'xterm-256color',
    ...(isLong && { LAYOUT_LONG: 'yes' }),
    ...(options !== '' && { NODE_OPTIONS: options }),
    ...(isTraced && { LONGSTACK_CAPTURE: cell.capture, LONGSTACK_SPANS: outputs[cell.spans](scratch) })
  }
  const isOnTerminal = [cell.stdin, cell.stdout, cell.stderr].includes('terminal')
  const started = isOnTerminal ? ['script', '-qec', 'bash "$SCRATCH/run.sh"', '/dev/null'] : ['bash', script]
  return collect(cell, scratch, await run(started, { cwd, env, ...project.user }))
}

/** @param {string[]} words of the command @param {Cell} cell */
function shellScript (words, { stdin, stdout, stderr }) {
  const quoted = words.map(quoteForShell)
  const last = stderr === AS_STDOUT ? '2>&1' : redirections[stderr](2, 'stderr')
  const streams = [inputs[stdin], redirections[stdout](1, 'stdout'), last]
  const closed = Object.values(OWN).map((fd) => `${fd}>&-`)
  return `stty cols 100 2>/dev/null\nexec ${[...quoted, ...streams, ...closed].join(' ')}\n`
}

/**
 * @typedef {{ texts: string[], code: number | null, signal: string | null }} Ended texts by descriptor
 *
 * @param {string[]} words
 * @param {import('node:child_process').SpawnOptions} options
 * @returns {Promise<Ended>}
 */
function run ([command, ...args], options) {
  const stdio = /** @type {import('node:child_process').StdioOptions} */ (Array(6).fill('pipe'))
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio, timeout: RUN_MS, killSignal: 'SIGKILL' })
    const texts = child.stdio.map(() => '')
    for (const fd of [1, 2, OWN.stdout, OWN.stderr]) {
      const stream = /** @type {import('node:stream').Readable} */ (child.stdio[fd])
      stream.setEncoding('utf8').on('data', (text) => { texts[fd] += text })
    }
    for (const fd of [0, OWN.stdin]) {
      const stream = /** @type {import('node:stream').Writable} */ (child.stdio[fd])
      stream.on('error', () => {}).end(fd === OWN.stdin ? INPUT : '')
    }
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ texts, code, signal }))
  })
}

/** @param {Cell} cell @param {string} scratch @param {Ended} ended @returns {Played} */
function collect (cell, scratch, { texts, code, signal }) {
  /** @param {string} name */
  const read = (name) => {
    const file = path.join(scratch, name)
    return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : ''
  }
  const [seen, exit] = read('seen').split('\n')
  const terminal = stripVTControlCharacters(texts[1].replaceAll('\r\n', '\n'))
  let stdout = texts[OWN.stdout] + read('stdout') + terminal
  let stderr = texts[OWN.stderr] + read('stderr') + texts[2]
  const spans = [stdout, stderr, read('spans.jsonl')].flatMap((text) => text.match(SPAN) ?? [])
  if (spanStream(cell) !== undefined) [stdout, stderr] = [stdout, stderr].map((text) => text.replace(SPAN, ''))
  if (cell[spanStream(cell) ?? ''] === 'full') {
    [stdout, stderr] = [stdout, stderr].map((text) => text.replace(WARNING, ''))
  }
  return { stdout, stderr, code, signal, seen: seen === '' ? undefined : { ...JSON.parse(seen), exit }, spans }
}

/**
 * Lists the differences of a program under longstack, one per line.
 * @param {Cell} cell
 * @param {Played} bare
 * @param {Played} traced
 */
function differencesOf (cell, bare, traced) {
  return differences(comparable(bare, cell), comparable(traced, cell), '')
}

/** Returns the parts that must be equal. @param {Played} played @param {Cell} cell */
function comparable ({ spans, ...played }, { name }) {
  const quoted = (/** @type {string} */ text) => JSON.stringify(text).slice(1, -1)
  const text = JSON.stringify(played).replaceAll(quoted(name), 'NAME').replaceAll(/\(node:\d+\)/g, '(node)')
  return JSON.parse(text, (_, value) => typeof value === 'string' ? withoutHops(withoutCode(value)) : value)
}

/** Removes source lines, which a terminal shows below frames. @param {string} text */
function withoutCode (text) {
  return text.replace(/\n {6,}(\d+| +) ?│[^\n]*(?=\n)/g, '')
}

/** @param {any} expected @param {any} value @param {string} place @returns {string[]} */
function differences (expected, value, place) {
  const areObjects = [expected, value].every((one) => typeof one === 'object' && one !== null)
  if (!areObjects) return value === expected ? [] : [`${place}: ${shorten(value)} instead of ${shorten(expected)}`]
  const keys = new Set([...Object.keys(expected), ...Object.keys(value)])
  return [...keys].flatMap((key) => differences(expected[key], value[key], `${place}/${key}`))
}

/** @param {unknown} value */
const shorten = (value) => String(JSON.stringify(value)).replace(/(x{99}\\n)+/g, 'x…')

module.exports = { AS_STDOUT, differencesOf, expectedSpans, inputs, outputs, play, redirections, ways }
