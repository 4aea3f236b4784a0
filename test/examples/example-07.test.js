'use strict'

// Example 07: a loop without end is told while it spins, with its line and its request, and takes nobody along; an expensive
// request is named as the one that delays the cheap ones, where it does its work at once.

const test = require('ava')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')
const { sameAnswers, goodClaims } = require('../helpers/examples')
const { node, root } = require('../helpers/run')

const file = path.join(root, 'examples', '07-never-comes-back.js')
const lineOf = (/** @type {string} */ text) => fs.readFileSync(file, 'utf8').split('\n').findIndex((line) => line.trim() === text) + 1

/** @param {import('ava').ExecutionContext} t */
async function story (t) {
  const { stdout, stderr, code } = await node([file, '--keep'], { timeout: 120_000 })
  t.is(stderr, '')
  t.is(code, 0)
  const [, never, slow] = stdout.split(/^(?=The server that)/m)
  const [, folder] = /^longstack report (.*never-comes-back-\w+).\*\.jsonl$/m.exec(slow) ?? t.fail(stdout)
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  return { stdout, never, slow, folder }
}

/** The figures of a line that begins with a name. @param {string} text @param {string} name */
function figures (text, name) {
  const [line] = new RegExp(`^${name}  +\\d.*$`, 'm').exec(text) ?? ['']
  return line.slice(name.length).match(/\d+(\.\d+)?/g)?.map(Number) ?? []
}

test.serial('the story: what never comes back is told while it spins, what is merely slow by whom it delays', async (t) => {
  const { never, slow, folder } = await story(t)

  const loop = lineOf('while (true);')
  const live = never.slice(0, never.indexOf('is killed (SIGKILL)'))
  const said = live.split('\n').filter((line) => /^ *\d+ {2}server │ /.test(line)).map((line) => line.slice(line.indexOf('│') + 2)).join('\n')
  const report = new RegExp('^longstack: the event loop is blocked by GET /forever, for \\S+ \\w+ so far\n(?: {2}sampled.*\n)?' +
    ` {4}at comeBackNever \\(${file}:${loop}:\\d+\\)\n {4}at answer \\(${file}:\\d+:\\d+\\)\n {2}── GET /forever`, 'm')
  t.regex(said, report)
  for (const [who, route] of [['Ann', '/forever'], ['Ben', '/hello']]) {
    const seen = live.split('\n').filter((line) => line.includes(` ${who} `) && line.includes('│')).map((line) => line.slice(line.indexOf('│') + 2))
    t.deepEqual(seen, ['connected', `sent GET ${route}`, 'no answer in 1.3 s: gives up'])
  }
  t.regex(never, new RegExp(`^ {2}GET /forever at comeBackNever \\(${file}:${loop}:\\d+\\)\n.*; one callback had not ended$`, 'm'))
  t.regex(never, /^Still open\n {2}a blocking callback of GET \/forever, /m)
  const records = fs.readFileSync(path.join(folder, 'never.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line))
  const open = records.filter(({ attributes }) => attributes['longstack.end'] === 'open')
  t.deepEqual(open.map(({ name, attributes }) => [name, attributes['longstack.blocked_by']]), [['blocked', 'GET /forever']])
  t.regex(open[0].attributes['code.stacktrace'], /at comeBackNever /)

  const names = ['at once', 'in slices', 'worker pool', 'cluster']
  const [summary, pictures, rest] = slow.split(/^(?:Density|Where there)/m)
  for (const name of names) {
    const [min, q1, median, mean, q3, max, p99] = figures(summary, name)
    t.true(min > 10 && min <= q1 && q1 <= median && median <= q3 && q3 <= p99 && p99 <= max && mean > min && mean < max, summary)
    t.regex(pictures, new RegExp(`^${name} +[ ▁▂▃▄▅▆▇█]+\n +[ ·├─▒┃┤]*┃`, 'm'))
  }
  for (const name of names) t.regex(rest, new RegExp(`^${name} .* +\\d+ % +\\d+ % .* ms +\\S`, 'm'))
  const primes = lineOf('for (let divisor = 2; divisor * divisor <= n && prime; divisor++) prime = n % divisor !== 0')
  const blocker = /^ {2}GET \/expensive at countPrimes \(.*07-never-comes-back\.js:(\d+):\d+\)\n {4}blocked the event loop \d+ times: .*delayed \d+ spans?/m
  const [, at] = blocker.exec(rest) ?? t.fail(rest)
  t.true(Math.abs(Number(at) - primes) <= 3)

  // How long anything takes is the machine's affair; whom the cheap requests waited for is not.
  const cheap = fs.readFileSync(path.join(folder, 'atOnce.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line)).filter(({ name }) => name === 'GET /cheap')
  const waited = cheap.flatMap(({ attributes }) => attributes['longstack.delayed_by']).filter(({ name, ms }) => name === 'GET /expensive' && ms > 20)
  t.true(waited.length > 0)
})

test.serial('the answers are the same, traced or not, and however the work is done', async (t) => {
  const answers = await sameAnswers(t, file)
  const end = answers.indexOf('connected\n')
  const all = answers.slice(0, end)
  const [first, ...others] = [0, 1, 2, 3].map((i) => all.slice(end / 4 * i, end / 4 * (i + 1)))
  t.deepEqual(others, [first, first, first])
  t.deepEqual(first.match(/^HTTP\/1.1 200 OK\r$/mg)?.length, 3)
  for (const body of ['cheap', '49098 primes', 'busy']) t.true(first.includes(`\r\n\r\n${body}\n`))
  t.is(answers.slice(end), ['/forever', '/cheap'].map((route) => `connected\nsent GET ${route}\nno answer in 0.3 s: gives up\n`).join(''))
})

test.serial('its claims', async (t) => {
  const { claims, tables } = await goodClaims(t, file)
  t.is(new Set(claims.map(({ id }) => id)).size, claims.length)
  const { off, on } = claims.find(({ id }) => id === 'busy-loop')
  for (const { a, b } of [off, on]) t.true(b > 200 && b > a, `${a} ${b}`)
  t.is(tables[0].rows.length, 8)
})

test.serial('the stuck server ends with the example, whatever ends that', async (t) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-test-')) // nobody is left to clear up
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const example = spawn(process.execPath, [file], { env: { ...process.env, TMPDIR: folder }, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => example.kill('SIGKILL'))
  let text = ''
  for await (const chunk of example.stdout.setEncoding('utf8')) {
    text += chunk
    if (text.includes('sent GET /hello')) break
  }
  const list = `/proc/${example.pid}/task/${example.pid}/children`
  if (!fs.existsSync(list)) {
    t.log('skipped: this kernel does not list the children of a process')
    return t.falsy(process.env.CI)
  }
  const [server] = fs.readFileSync(list, 'utf8').trim().split(' ')
  t.true(runs(server))
  example.kill('SIGKILL')
  await once(example, 'exit')
  for (let i = 0; i < 200 && runs(server); i++) await delay(100)
  t.false(runs(server))
})

/** @param {string} pid */
function runs (pid) {
  try {
    return !/\) [ZX] /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
