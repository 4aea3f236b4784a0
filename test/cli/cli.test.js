'use strict'

// Frame of the command line: help, wrong usage, output streams.

const test = require('ava')
const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { file, longstack, main, span } = require('../helpers/span-files')
const { version } = require('../../package.json')

test('every command has help, and prints nothing else', async (t) => {
  for (const args of [['--help'], ['-h'], ['help'], ['run', '--help'], ['report', '--help'], ['report', '-h'], ['doctor', '--help'], ['help', 'run']]) {
    const { stdout, stderr, code } = await longstack(args, { env: { COLUMNS: '80' } })
    t.is(code, 0, args.join(' '))
    t.is(stderr, '')
    t.regex(stdout, /longstack/)
    t.true(stdout.split('\n').every((line) => line.length <= 80), args.join(' '))
  }
  const [wide, narrow] = await Promise.all(['100', '40'].map((COLUMNS) => longstack(['report', '--help'], { env: { COLUMNS } })))
  t.true(narrow.stdout.split('\n').every((line) => line.length <= 40))
  t.deepEqual(narrow.stdout.split(/\s+/), wide.stdout.split(/\s+/), 'no word is broken')
  for (const flag of ['--version', '-v']) t.is((await longstack([flag])).stdout, `${version}\n`)
})

/** @type {Array<[string[], RegExp]>} */
const wrong = [
  [[], /Missing command/],
  [['reprot'], /Unknown command "reprot"\. Did you mean "report"\?/],
  [['constructor'], /Unknown command "constructor"\. There is no file or directory with that name either\./],
  [[__filename], /Unknown command ".*"\. For a file, use "longstack run .*cli\.test\.js"\./],
  [['/dev/null'], /For a file, use "longstack report \/dev\/null"\./],
  [['0'], /"0" is neither a process id/],
  [['profile', ':3000'], /longstack profile takes a script or a process id\. Received ":3000"\./],
  [['--frames', '3'], /Unknown flag "--frames": use a command first/],
  [['why'], /Missing process id, port or address/],
  [['why', '1', '2'], /One target at a time\. Received "2"/],
  [['why', 'app.js'], /"app\.js" is neither a process id, nor :PORT, ADDRESS:PORT or the path of a/],
  [['why', ':0'], /":0" is neither a process id/],
  [['why', ':65536'], /":65536" is neither a process id/],
  [['why', 'db.internal:5432'], /"db\.internal:5432": an address has numbers, as in 127\.0\.0\.1:5432/],
  [['why', '--only', 'TPC', '1'], /Unknown subsystem "TPC"\. Did you mean "TCP"\?/],
  [['why', '--watch=soon', '1'], /--watch must be a number of seconds, at least 0\.1\. Received "soon"/],
  [['why', '--older-than', '-1', '1'], /--older-than/],
  [['attach'], /Missing process id/],
  [['attach', '--spans', '-', '1'], /--spans - would write to the output of the process\. Name a file\./],
  [['attach', '--blocked', '0', '1'], /--blocked must be an integer of at least 1\. Received "0"/],
  [['diff'], /Missing process id/],
  [['diff', '--seconds', '0', '1'], /--seconds must be an integer of at least 1/],
  [['report'], /Missing file argument/],
  [['report', '--jsno', 'x'], /Unknown flag "--jsno"\. Did you mean --json\?/],
  [['report', '--toString', 'x'], /Unknown flag "--toString"/],
  [['report', '-x', 'x'], /Unknown flag "-x"/],
  [['report', '--json', '--markdown', 'x'], /--json and --markdown both go to standard output/],
  [['report', '--json=1', 'x'], /--json takes no value/],
  [['report', 'x', '--html'], /--html needs a value/],
  [['report', 'x', '--html', '--json'], /--html needs a value/],
  [['report', 'x', '--top', 'many'], /--top must be an integer of at least 1\. Received "many"/],
  [['report', 'x', '--top', '3', '--top', '4'], /--top was given twice/],
  [['report', 'x', '--html', 'x'], /"x" is an input file and would be overwritten/],
  [['report', 'x', '--html', 'y', '--trace', './y'], /name the same file/],
  [['report', '-', '--trace', 'y', '--json'], /read only once/],
  [['report', '-', '--compare', '-'], /Standard input can be only one/],
  [['report', 'x', '--json', '--html', '-'], /Only one output can go to standard output/],
  [['doctor', 'now'], /takes no arguments\. Received "now"/],
  [['run'], /Missing script argument/],
  [['run', '--frames', '7'], /Missing script argument/],
  [['run', '--framse', '7', 'x.js'], /Unknown flag "--framse"\. Did you mean --frames\?/],
  [['run', '--frames', 'few', 'x.js'], /--frames: Option "frames" must be an integer from 1 to 200\. Received "few"/],
  [['run', '--filter', 'TPC', 'x.js'], /--filter: Unknown subsystem "TPC"\. Did you mean "TCP"\?/],
  [['run', '--spans', 'a.jsonl;slowr=5', 'x.js'], /--spans: .*slower/],
  [['run', '--blocked', '0', 'x.js'], /--blocked: /],
  [['run', '--fail-on-leak=soon', 'x.js'], /--fail-on-leak must be an integer of at least 1\. Received "soon"/],
  [['run', '--node-options', '"--a', 'x.js'], /Unterminated quote in --node-options/]
]

for (const [args, sentence] of wrong) {
  test(`wrong usage: longstack ${args.join(' ')}`, async (t) => {
    const { stdout, stderr, code } = await longstack(args)
    t.is(code, 2)
    t.is(stdout, '')
    t.regex(stderr, sentence)
    t.regex(stderr, /^longstack: [^\n]+\nSee longstack (\w+ )?--help\.\n$/)
  })
}

test('the doctor prints text and data', async (t) => {
  const { stdout, code } = await longstack(['doctor'])
  t.is(code, 0)
  t.regex(stdout, /^longstack +\d/)
  const data = JSON.parse((await longstack(['doctor', '--json'])).stdout)
  t.is(data.node, process.versions.node)
  t.is(data.enabled, true)
})

test('a reader that goes away ends the command without an error', (t) => {
  const spans = file(t, Array.from({ length: 3000 }, (_, i) => span({ name: `GET /${i}`, at: i })))
  const script = `set -o pipefail; '${process.execPath}' '${main}' report --json '${spans}' 2> '${spans}.err' | head -n 1`
  t.is(execFileSync('bash', ['-c', script], { timeout: 60_000 }).toString(), '{\n')
  t.is(fs.readFileSync(`${spans}.err`, 'utf8'), '')
})

test('large files are read by a process with less memory, pipes are not', async (t) => {
  const large = file(t, [span({ name: 'GET /large' })])
  fs.appendFileSync(large, '\n')
  fs.truncateSync(large, 300 << 20) // a hole: its last line is no span
  const report = await longstack(['report', large, '--json'])
  t.is(report.code, 0)
  const model = JSON.parse(report.stdout)
  t.deepEqual(model.routes.map((/** @type {any} */ { name }) => name), ['GET /large'])
  const script = `'${process.execPath}' '${main}' report --json '${large}' <(cat '${file(t, [span({ name: 'GET /piped', at: 1 })])}')`
  const piped = JSON.parse(execFileSync('bash', ['-c', script], { timeout: 60_000 }).toString())
  t.deepEqual(piped.routes.map((/** @type {any} */ { name }) => name).sort(), ['GET /large', 'GET /piped'])
})

test('an output that cannot be written is reported in one sentence', async (t) => {
  const spans = file(t, [span()])
  for (const flag of ['--html', '--trace']) {
    const { stderr, code } = await longstack(['report', spans, flag, '/nowhere/out'])
    t.is(code, 1)
    t.regex(stderr, /^longstack: [^\n]*\/nowhere\/out[^\n]*\n$/)
  }
})

test('the package installs a working command', (t) => {
  const { bin } = require('../../package.json')
  t.is(path.resolve(__dirname, '..', '..', bin.longstack), main)
  t.true((fs.statSync(main).mode & 0o111) !== 0)
  t.is(execFileSync(main, ['--version'], { env: { ...process.env, PATH: `${path.dirname(process.execPath)}:${process.env.PATH}` } }).toString(), `${version}\n`)
})

test('on a terminal there are colours, and NO_COLOR is obeyed', (t) => {
  try {
    execFileSync('script', ['-qec', 'true', '/dev/null'])
  } catch {
    if (process.env.CI) return t.fail('script of util-linux is not here')
    return t.pass('not tried: there is no script of util-linux')
  }
  const spans = file(t, Array.from({ length: 50 }, (_, i) => span({ at: i, ms: i, failed: i === 1 })))
  const onTerminal = (/** @type {Record<string, string>} */ env) => {
    const { FORCE_COLOR, NO_COLOR, CI, ...clean } = process.env
    const command = `'${process.execPath}' '${main}' report '${spans}'`
    return execFileSync('script', ['-qec', command, '/dev/null'], { env: { ...clean, TERM: 'xterm-256color', ...env }, timeout: 60_000 }).toString()
  }
  t.true(onTerminal({}).includes('\u001b[31m1 error'))
  t.false(onTerminal({ NO_COLOR: '1' }).includes('\u001b'))
})
