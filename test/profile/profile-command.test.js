'use strict'

// longstack profile app.js: the program behaves as without it, and the profile is written when it ends.

const test = require('ava')
const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { node, root } = require('../helpers/run')

const main = path.join(root, 'lib', 'cli', 'main.js')
const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-profile-'))
test.after.always(() => fs.rmSync(directory, { recursive: true, force: true }))

let files = 0

/** Writes a program. @param {string} source @returns {string} its file */
function fileOf (source) {
  const file = path.join(directory, `app${++files}.js`)
  fs.writeFileSync(file, source)
  return file
}

/** @param {string[]} args */
const profile = (...args) => node([main, 'profile', ...args])

const work = `
  function spin (ms) { const end = performance.now() + ms; while (performance.now() < end); }
  console.log('to stdout', process.argv.slice(2).join())
  console.error('to stderr')
  setTimeout(function later () { spin(40); process.exitCode = 7 }, 50)
`

test('the profile goes to stderr after the program, whose output and exit code are unchanged', async (t) => {
  const { stdout, stderr, code } = await profile(fileOf(work), '--seconds', 'x')
  t.is(stdout, 'to stdout --seconds,x\n')
  t.is(code, 7)
  t.regex(stderr, /^to stderr\n\nProcess \d+, Node v\d+/)
  t.regex(stderr, /Where it ran\n[^]*later[^]*spin[^]*Where it waited\n[^]*waited: setTimeout\(50\)/)
})

test('the profile can be JSON, and written to files', async (t) => {
  const [pprof, stacks] = [path.join(directory, 'p.pb.gz'), path.join(directory, 'p.txt')]
  const { stdout, stderr } = await profile('--json', '--pprof', pprof, '--collapsed', stacks, fileOf(work))
  const { chains } = JSON.parse(stdout.slice(stdout.indexOf('{')))
  t.true(chains.some((/** @type {any} */ { label, ranMs }) => label === 'setTimeout(50)' && ranMs >= 40))
  t.is(stderr.match(/^Wrote /gm)?.length, 2)
  const isPrivate = (/** @type {string} */ file) => process.platform === 'win32' || (fs.statSync(file).mode & 0o077) === 0
  t.true([pprof, stacks].every(isPrivate), 'nobody else may read them')
  t.regex(fs.readFileSync(stacks, 'utf8'), /^Object\.<anonymous> \(.*app\d+\.js:5:\d+\) \d{5,}$/m)
  t.deepEqual([...fs.readFileSync(pprof).subarray(0, 2)], [0x1f, 0x8b])
})

for (const [name, source, expected] of /** @type {const} */ ([
  ['process.exit()', 'setTimeout(function soon () { process.exit(3) }, 30)', [3, null]],
  ['an error', "setTimeout(function soon () { throw new Error('on purpose') }, 30)", [1, null]],
  ['SIGTERM', "setTimeout(function soon () { process.kill(process.pid, 'SIGTERM') }, 30); setInterval(() => {}, 1000)", [null, 'SIGTERM']],
  ['SIGINT, which it handles', "setTimeout(function soon () { process.kill(process.pid, 'SIGINT') }, 30); process.on('SIGINT', () => process.exit(5))", [5, null]]
])) {
  test(`a program that ends by ${name} has a profile`, async (t) => {
    const { stderr, code, signal } = await profile('--no-samples', fileOf(source))
    t.deepEqual([code, signal], [...expected])
    t.regex(stderr, /Process \d+, Node v[^]*Where it waited\n[^]*setTimeout\(30\)/)
  })
}

test('the profile is printed when the time is over, and the program keeps running', async (t) => {
  const source = "setInterval(function beat () {}, 20); process.on('SIGTERM', () => { console.log('end'); process.exit() })"
  const child = spawn(process.execPath, [main, 'profile', '--seconds', '0.3', '--no-samples', fileOf(source)])
  const ended = new Promise((resolve) => child.on('close', resolve))
  let [text, stdout] = ['', '']
  child.stdout.on('data', (part) => { stdout += part })
  await new Promise((resolve) => child.stderr.on('data', (part) => {
    text += part
    if (/Where it waited\n[^]*setInterval\(20\)/.test(text)) resolve(undefined)
  }))
  t.is(stdout, '')
  child.kill('SIGTERM')
  t.is(await ended, 0)
  t.is(stdout, 'end\n')
})

test('programs that it starts are not profiled, and notice nothing', async (t) => {
  const source = `
    const { fork } = require('node:child_process')
    const names = Object.keys(process.env).filter((name) => name.includes('LONGSTACK'))
    console.log(JSON.stringify([names, process.listenerCount('exit') >= 0]))
    if (process.argv[2] === undefined) fork(__filename, ['child'])
  `
  const { stdout, stderr } = await profile(fileOf(source))
  t.is(stdout, '[[],true]\n[[],true]\n')
  t.is(stderr.match(/^Process \d+/gm)?.length, 1)
})

test('wrong usage is one sentence and exit code 2', async (t) => {
  for (const [args, sentence] of /** @type {Array<[string[], RegExp]>} */ ([
    [[], /Missing script or process id\./],
    [['--seconds', '0', 'app.js'], /--seconds must be a number above 0, at most 1800\. Received "0"\./],
    [['--seconds', '1e3', 'app.js'], /--seconds must be/],
    [['--sceonds', '1', 'app.js'], /Did you mean --seconds\?/],
    [['--collapsed', 'x', '--value', 'time', 'app.js'], /--value must be ran, waited or cpu\./],
    [['--value', 'cpu', 'app.js'], /--value needs --collapsed\./],
    [['--html', 'x', '--pprof', './x', 'app.js'], /Two outputs name the same file\./],
    [['1', '2'], /One process at a time\. Received "2"\./]
  ])) {
    const { stderr, code } = await profile(...args)
    t.is(code, 2, stderr)
    t.regex(stderr, sentence)
  }
  t.regex((await profile('--help')).stdout, /longstack profile \[flags\] PID/)
})
