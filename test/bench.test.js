'use strict'

// The benchmark itself, on a run too short for its figures to be worth anything: what it writes means what it says.

const test = require('ava')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { node, root } = require('./helpers/run')
const { read } = require('../bench/generator')
const { terminal, page } = require('../bench/table')

const conductor = path.join(root, 'bench', 'run.js')
const cost = path.join(root, 'docs', 'cost.md')

/** @param {import('ava').ExecutionContext} t */
function folder (t) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-test-'))
  t.teardown(() => fs.rmSync(made, { recursive: true, force: true }))
  return made
}

/** @param {import('ava').ExecutionContext} t @param {string[]} args */
async function figures (t, args) {
  const file = path.join(folder(t), 'figures.json')
  const { code, stdout, stderr } = await node([conductor, '--quick', '--json', file, ...args])
  t.is(code, 0, stderr)
  return { report: JSON.parse(fs.readFileSync(file, 'utf8')), file, stdout, stderr }
}

test.serial('a server is measured under longstack and bare, and the engine in force is named', async (t) => {
  const { report, stdout } = await figures(t, ['--subjects', 'longstack-js', '--workloads', 'hello', '--rounds', '2'])
  t.is(report.versions.length, 1)
  const [{ node: version, results, startUp }] = report.versions
  t.is(version, process.versions.node)
  t.deepEqual(results.map(({ subject, workload }) => [subject, workload]), [['bare', 'hello'], ['longstack-js', 'hello']])
  const [bare, longstack] = results

  t.is(bare.ratio, 1)
  t.is(longstack.ratios.length, 2, 'one ratio a round')
  t.true(longstack.ratios.every((ratio) => ratio > 0))
  t.deepEqual(longstack.spread, [Math.min(...longstack.ratios), Math.max(...longstack.ratios)])
  t.true(longstack.ratio >= longstack.spread[0] && longstack.ratio <= longstack.spread[1])
  for (const { cpu, units, p50, p99, heapUsed, rss, failed } of results) {
    t.is(failed, undefined)
    t.true(cpu > 0 && cpu < 1e6, 'microseconds a request')
    t.true(units > 0)
    t.true(p99 >= p50 && p50 > 0)
    t.true(rss > heapUsed && heapUsed > 1e6, 'bytes')
  }
  t.is(longstack.inForce.engine, 'js')
  t.is(longstack.inForce.mode, 'full')
  t.is(longstack.inForce.fault, undefined)
  t.is(longstack.warning, undefined)
  t.is(bare.inForce, undefined)

  t.deepEqual(startUp.map(({ subject }) => subject), ['bare', 'longstack-js'])
  t.is(startUp[0].over, 0)
  t.true(startUp.every(({ ms }) => ms > 0))
  t.regex(stdout, /^longstack-js .* js, full$/m)

  const { capture } = report.versions[0]
  t.true(capture.v8 > 0)
  t.is(capture.walk === undefined, capture.engine === 'js', 'what is not there has no price')
  if (capture.engine === 'native') t.true(capture.walk > 0 && capture.take > 0 && capture.hits > 0.99)
})

test.serial('a loop without a server has a price and no latency; what was asked for and is not in force is said', async (t) => {
  const { report, file, stdout } = await figures(t, ['--subjects', 'hooks,longstack-native', '--workloads', 'timers'])
  const [bare, hooks, longstack] = report.versions[0].results
  t.deepEqual([bare.p99, hooks.p99, longstack.p99], [undefined, undefined, undefined])
  t.is(hooks.failed, undefined)
  t.true(hooks.ratio > 0 && longstack.ratio > 0)
  t.regex(longstack.inForce.engine, /^(native|js)$/)
  t.is(longstack.warning === undefined, longstack.inForce.engine === 'native')
  t.is(/^Warning: longstack-native: native was asked for/m.test(stdout), longstack.inForce.engine !== 'native')

  const again = await node([conductor, '--from', file])
  t.is(again.code, 0)
  t.is(again.stdout, stdout, 'saved figures make the same tables')
})

const mistakes = [
  [['--subjects', 'longstak-js'], /^Unknown subject "longstak-js"\. Did you mean "longstack-js"\?$/m],
  [['--workloads', 'hullo'], /^Unknown workload "hullo"\. Did you mean "hello"\?$/m],
  [['--workloads', ','], /^No workload is named\.$/m],
  [['--rounds', '0'], /^--rounds must be a whole number of at least 1, not "0"\.$/m],
  [['--rounds', 'x'], /^--rounds must be/m],
  [['--node', '/nowhere/node'], /^\/nowhere\/node is no Node that runs here\.$/m],
  [['--from', '/nowhere/figures.json'], /^\/nowhere\/figures\.json cannot be read: .*\.$/m],
  [['--json', '/nowhere/figures.json'], /^There is no folder for \/nowhere\/figures\.json\.$/m],
  [['--fast'], /--fast/],
  [['more'], /more/]
]

for (const [args, sentence] of mistakes) {
  test(`wrong usage: ${args.join(' ')}`, async (t) => {
    const { code, stdout, stderr } = await node([conductor, ...args])
    t.is(code, 2)
    t.is(stdout, '')
    t.regex(stderr, sentence)
    t.notRegex(stderr, /^ {4}at /m, 'a sentence, no stack')
  })
}

test('help names every subject and workload', async (t) => {
  const { code, stdout } = await node([conductor, '--help'])
  t.is(code, 0)
  for (const name of [...Object.keys(require('../bench/subjects').subjects), ...Object.keys(require('../bench/workloads').workloads)]) {
    t.regex(stdout, new RegExp(`(^|\\s)${name}(\\s|$)`), name)
  }
})

/** Figures as a run saves them. */
const example = {
  date: '2026-01-02T03:04:05.000Z',
  machine: { cpu: 'a processor', processors: 2, memory: 2 ** 33, system: 'Linux', loadBefore: 0 },
  how: { pinned: true, generator: 'own generator', startUp: 'own loop', rounds: 3, quick: false, conductor: 'v20.0.0' },
  peers: { trace: '3.2.0' },
  subjects: { bare: { says: 'nothing' }, 'longstack-native': { says: 'full' }, trace: { says: 'stacks' }, wtfnode: { says: 'handles' } },
  workloads: { hello: { says: 'a server', unit: 'request', server: true } },
  versions: [{
    node: '20.0.0',
    results: [
      { subject: 'bare', workload: 'hello', cpu: 10, ratio: 1, ratios: [1], spread: [0.98, 1.02], p99: 1, heapUsed: 4e6, rss: 5e7 },
      { subject: 'longstack-native', workload: 'hello', cpu: 9, ratio: 1.2, ratios: [1.2], spread: [1.1, 1.3], p99: 1, heapUsed: 4e6, rss: 5e7, inForce: { engine: 'native', mode: 'full' } },
      { subject: 'trace', workload: 'hello', cpu: 90, ratio: 9, ratios: [9], spread: [8, 10], p99: 5, heapUsed: 4e6, rss: 5e7, failed: 'out of memory', failures: 1 },
      { subject: 'wtfnode', workload: 'hello', ratios: [], failed: 'Error: a | b', failures: 2 }
    ],
    startUp: [{ subject: 'bare', ms: 20, over: 0 }, { subject: 'wtfnode', failed: 'exit code 1' }]
  }]
}

test('tables: overheads are compared with native full, and no failure is hidden', (t) => {
  const text = terminal(example)
  t.regex(text, /^trace +90\.0 +9\.00 +8\.00–10\.00 +40\.0 × .*failed once: out of memory$/m, '8 of overhead against 0.2')
  t.regex(text, /^longstack-native .* 1\.0 × .* native, full$/m)
  t.regex(text, /^wtfnode +failed: Error: a \| b$/m)
  t.regex(text, /^wtfnode +failed: exit code 1$/m)

  const markdown = page(example)
  t.true(markdown.includes('| wtfnode | failed: Error: a \\| b | '))
  t.regex(markdown, /2026-01-02 with Node 20\.0\.0 on a processor/)
  t.notRegex(markdown, /quick run/)
  t.regex(page({ ...example, how: { ...example.how, quick: true } }), /A quick run/)
  const widths = markdown.split('\n').filter((line) => line.startsWith('| ')).map((line) => line.replaceAll('\\|', '').split('|').length)
  t.deepEqual([...new Set(widths)].sort((a, b) => a - b), [4, 5, 11], 'every row of a table is as wide as its heading')
})

test('what wrk prints is understood, and its errors are failures', (t) => {
  const printed = '  Latency Distribution\n     50%  780.00us\n     75%    1.10ms\n     90%    1.42ms\n     99%    2.31ms\n  50123 requests in 2.00s, 7.5MB read\n'
  t.deepEqual(read(printed), { units: 50123, p50: 0.78, p99: 2.31 })
  t.throws(() => read(`${printed}  Non-2xx or 3xx responses: 12\n`), { message: /Non-2xx or 3xx responses: 12/ })
  t.throws(() => read(printed.replace('50123', '0')), { message: /no request was answered/ })
})

test('the page is written by --docs alone', async (t) => {
  const before = fs.existsSync(cost) ? fs.readFileSync(cost, 'utf8') : undefined
  const file = path.join(folder(t), 'figures.json')
  fs.writeFileSync(file, JSON.stringify(example))
  const { code, stdout } = await node([conductor, '--from', file])
  t.is(code, 0)
  t.is(stdout, `${terminal(example)}\n`)
  t.is(fs.existsSync(cost) ? fs.readFileSync(cost, 'utf8') : undefined, before)
})
