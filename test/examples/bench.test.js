'use strict'

// The benchmark itself, on a run too short for meaningful figures: it writes its measurements.

const test = require('ava')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { node, root } = require('../helpers/run')
const { median } = require('../../bench/median')
const { planOf } = require('../../bench/plan')
const { groupsOf } = require('../../bench/rounds')
const { terminal, page, withSummary } = require('../../bench/table')

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

test.serial('a server is measured bare and under longstack, and the active engine is named', async (t) => {
  const asked = ['--subjects', 'longstack-js', '--workloads', 'hello', '--rounds', '2']
  const { report, stdout } = await figures(t, asked)
  t.is(report.versions.length, 1)
  const [{ node: version, results }] = report.versions
  t.is(version, process.versions.node)
  const names = results.map(({ subject, workload }) => `${workload} ${subject}`)
  t.deepEqual(names, ['hello bare', 'hello longstack-js'])
  const [bare, longstack] = results

  t.is(bare.ratio, 1)
  t.deepEqual(bare.ratios, [])
  t.is(bare.over, 0)
  t.is(bare.rssOver, 0)
  t.is(longstack.ratios.length, 2, 'one ratio a round')
  t.true(longstack.ratios.every((ratio) => ratio > 0))
  t.is(longstack.ratio, (longstack.ratios[0] + longstack.ratios[1]) / 2, 'their median')
  for (const { value, units, heapUsed, rss, failed } of results) {
    t.is(failed, undefined)
    t.true(value > 0, 'microseconds a request')
    t.true(units > 0)
    t.true(rss > heapUsed && heapUsed > 1e6, 'bytes')
  }
  t.true(bare.busy.subjects > 0 && bare.busy.load > 0)
  t.is(longstack.inForce.engine, 'js')
  t.is(longstack.inForce.fault, undefined)
  t.is(longstack.warning, undefined)
  t.is(bare.inForce, undefined)
  t.regex(stdout, /^longstack-js .* js$/m)
  t.regex(stdout, /^Busy: the CPU of the subjects to \d+ %, that of their loads to \d+ %\./m)
})

test.serial('a loop has a cost but no load; a requested feature that is not active is reported', async (t) => {
  const options = ['--subjects', 'hooks,longstack-full', '--workloads', 'awaits']
  const { report, file, stdout } = await figures(t, options)
  const [bare, hooks, longstack] = report.versions[0].results
  t.is(bare.busy.load, 0)
  t.is(hooks.failed, undefined)
  t.true(hooks.ratio > 0 && longstack.ratio > 0)
  t.regex(longstack.inForce.engine, /^(native|js)$/)
  t.is(longstack.warning === undefined, longstack.inForce.engine === 'native')
  t.is(/^Warning: longstack-full: native was requested/m.test(stdout), longstack.inForce.engine !== 'native')

  const again = await node([conductor, '--from', file])
  t.is(again.code, 0)
  t.is(again.stdout, stdout, 'saved figures make the same tables')
})

test.serial('a client, generated programs and errors have figures', async (t) => {
  const names = ['fetch', 'bundle', 'errors', 'relearn']
  const { report } = await figures(t, ['--subjects', 'hooks', '--workloads', names.join()])
  const { results } = report.versions[0]
  t.deepEqual(results.map(({ workload, subject }) => `${workload} ${subject}`),
    names.flatMap((name) => [`${name} bare`, `${name} hooks`]))
  t.deepEqual(results.filter(({ failed }) => failed !== undefined), [])
  t.true(results.every(({ value, units }) => value > 0 && units > 0))
})

test.serial('short processes alternate with bare ones', async (t) => {
  const names = ['first-error', 'start-up', 'capture']
  const { report } = await figures(t, ['--subjects', 'longstack-js', '--workloads', names.join()])
  const [{ results, capture }] = report.versions
  t.deepEqual(results.map(({ workload, subject }) => `${workload} ${subject}`),
    ['first-error bare', 'first-error longstack-js', 'start-up bare', 'start-up longstack-js'])
  t.deepEqual(results.map(({ failed }) => failed), results.map(() => undefined))
  t.true(results.every(({ value }) => value > 0))
  t.is(results[3].ratios.length, report.how.turns)

  t.true(capture.v8 > 0)
  t.is(capture.walk === undefined, capture.engine === 'js', 'what is not there has no price')
  if (capture.engine === 'native') t.true(capture.walk > 0 && capture.step > 0 && capture.hits > 0.99)
})

test('groups have at most four members, and equal sizes', (t) => {
  t.deepEqual(groupsOf([]), [])
  t.deepEqual(groupsOf(['a', 'b']), [['a', 'b']])
  t.deepEqual(groupsOf(['a', 'b', 'c', 'd']), [['a', 'b', 'c', 'd']])
  t.deepEqual(groupsOf(['a', 'b', 'c', 'd', 'e']), [['a', 'b', 'c', 'd'], ['e', 'a', 'b', 'c']])
})

test('the limits are known for this Node, and can be narrowed', (t) => {
  const [{ version, tasks }] = planOf({ node: process.execPath, bars: true })
  t.is(version, process.versions.node)
  t.true(tasks.some(({ workload, subjects }) => workload === 'real' && subjects.includes('longstack-spans')))
  const narrow = planOf({ node: process.execPath, bars: true, workloads: 'real', subjects: 'longstack-full' })
  t.deepEqual(narrow[0].tasks, [{ workload: 'real', subjects: ['longstack-full'] }])
})

const mistakes = [
  [['--subjects', 'longstak-js'], /^Unknown subject "longstak-js"\. Did you mean "longstack-js"\?$/m],
  [['--workloads', 'hullo'], /^Unknown workload "hullo"\. Did you mean "hello"\?$/m],
  [['--workloads', ','], /^No workload is named\.$/m],
  [['--rounds', '0'], /^--rounds must be an integer, 1 or more, not "0"\.$/m],
  [['--rounds', 'x'], /^--rounds must be/m],
  [['--seconds', '0'], /^--seconds must be a number above 0 and up to 600, not "0"\.$/m],
  [['--seconds', 'x'], /^--seconds must be/m],
  [['--node', '/nowhere/node'], /^\/nowhere\/node is not a Node binary that runs on this machine\.$/m],
  [['--from', '/nowhere/figures.json'], /^\/nowhere\/figures\.json cannot be read: .*\.$/m],
  [['--json', '/nowhere/figures.json'], /^There is no directory for \/nowhere\/figures\.json\.$/m],
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
  const { subjects } = require('../../bench/subjects')
  const { workloads } = require('../../bench/workloads')
  for (const name of [...Object.keys(subjects), ...Object.keys(workloads)]) {
    t.regex(stdout, new RegExp(`(^|\\s)${name}(\\s|$)`), name)
  }
})

/** @param {string} workload @param {number} value */
const bareOf = (workload, value) => ({ subject: 'bare', workload, value, over: 0, ratio: 1, ratios: [] })

/** @param {string} workload @param {number} value @param {number[]} ratios */
const fullOf = (workload, value, ratios) =>
  ({ subject: 'longstack-full', workload, value, ratio: median(ratios), ratios })

/** @param {number} rssOver bytes */
const memory = (rssOver) => ({ heapUsed: 4e6, rss: 5e7 + rssOver, rssOver })

/** Figures as a run saves them. */
const example = {
  date: '2026-01-02T03:04:05.000Z',
  machine: { cpu: 'a processor', processors: 2, memory: 2 ** 33, system: 'Linux', loadBefore: 0 },
  how: { pinned: true, rounds: 3, seconds: 6, turns: 15, hops: 1e6, quick: false, conductor: 'v20.0.0' },
  peers: { trace: '3.2.0' },
  subjects: {
    bare: { says: 'nothing' },
    'longstack-full': { says: 'full' },
    trace: { says: 'stacks' },
    wtfnode: { says: 'handles' }
  },
  workloads: {
    hello: { says: 'a server', unit: 'µs/request', shows: 'ratio', warm: 10 },
    awaits: { says: 'a loop', unit: 'ns/await', shows: 'value', warm: 2 },
    'start-up': { says: 'a start', unit: 'ms', shows: 'over', warm: 0 }
  },
  versions: [{
    node: '20.0.0',
    results: [
      { ...bareOf('hello', 10), ...memory(0), busy: { subjects: 0.99, load: 0.5 } },
      {
        ...fullOf('hello', 12, [1.1, 1.2, 1.3]),
        over: 2,
        ...memory(1e7),
        inForce: { engine: 'native' }
      },
      {
        subject: 'trace',
        workload: 'hello',
        value: 90,
        over: 80,
        ratio: 9,
        ratios: [8, 10],
        ...memory(0),
        failed: 'out of memory',
        failures: 1
      },
      { subject: 'wtfnode', workload: 'hello', ratios: [], failed: 'Error: a | b', failures: 2 },
      bareOf('awaits', 40),
      { ...fullOf('awaits', 150, [3.75]), over: 110 },
      bareOf('start-up', 20),
      { ...fullOf('start-up', 35, [1, 2, 3, 4, 5, 6]), over: 15.1 },
      { subject: 'wtfnode', workload: 'start-up', ratios: [], failed: 'exit code 1', failures: 1 }
    ],
    memory: [
      { case: 'timers', subject: 'bare', left: 0.1, peak: 60 },
      { case: 'timers', subject: 'longstack-full', failed: 'exit code 1' }
    ]
  }]
}

test('tables have every round, compare overheads with that of full, and show failures', (t) => {
  const text = terminal(example)
  t.regex(text, /^trace +90\.0 +80\.0 +9\.00 +8\.00 10\.00 +40\.0 × .*failed once: out of memory$/m)
  t.regex(text, /^longstack-full +12\.0 +2\.00 +1\.20 +1\.10 1\.20 1\.30 +1\.0 × .*native$/m)
  t.regex(text, /^longstack-full .* × +60\.0 +10\.0 +4\.0 +native$/m, 'rss, over bare, heap')
  t.regex(text, /^longstack-full +35\.0 +15\.1 +3\.50 +1\.00–6\.00 /m, 'of many rounds min and max')
  t.regex(text, /^wtfnode +failed: Error: a \| b$/m)
  t.regex(text, /^wtfnode +failed: exit code 1$/m)
  t.regex(text, /^timers +0\.10 \(60\) +failed$/m)
  t.regex(text, /^Busy: the CPU of the subjects to 99 %, that of their loads to 50 %\.$/m)

  const markdown = page(example)
  t.true(markdown.includes('| wtfnode | failed | '))
  t.true(markdown.includes('| longstack-full | 1.20 | 150 ns | +15.1 ms |'))
  t.regex(markdown, /2026-01-02 with Node 20\.0\.0 on a processor/)
  t.regex(markdown, /Warm-up: 10, 2 s, depending on the workload\. Measured: 6 s in each of 3 rounds;/)
  t.notRegex(markdown, /quick run|no taskset/)
  t.regex(page({ ...example, how: { ...example.how, quick: true } }), /A quick run/)
  t.regex(page({ ...example, how: { ...example.how, pinned: false } }), /there was no taskset/)
  for (const table of markdown.match(/(^\|.*\n)+/gm) ?? []) {
    const widths = table.trim().split('\n').map((line) => line.replaceAll('\\|', '').split('|').length)
    t.is(new Set(widths).size, 1, 'every row of a table is as wide as its heading')
  }
})

test('a load generator without time to spare is reported as the bottleneck', (t) => {
  const [version] = example.versions
  const [bare, ...others] = version.results
  const results = [{ ...bare, busy: { subjects: 0.7, load: 0.97 } }, ...others]
  const busy = terminal({ ...example, versions: [{ ...version, results }] })
  t.regex(busy, /The load generators were the bottleneck\./)
})

test('the table of the README stands between its markers', (t) => {
  const readme = fs.readFileSync(path.join(root, 'README.md'), 'utf8')
  const written = withSummary(readme, example)
  t.true(written.includes('|  | bare | full |'))
  t.true(written.includes('| HTTP server, constant response, Node 20 | 10.0 µs | 1.20 |'))
  t.true(written.includes('| one `await`, Node 20 | 40.0 ns | 150 ns |'))
  t.true(written.includes('| start of a process, Node 20 | 20.0 ms | +15.1 ms |'))
  t.is(withSummary(written, example), written, 'the same figures change nothing')
  t.throws(() => withSummary('a README without', example), { message: /lacks the marks/ })
})

test('results of several runs are merged: later figures win', async (t) => {
  const [version] = example.versions
  const results = [{ ...version.results[1], ratio: 1.4, ratios: [1.4] }]
  const files = [example, { ...example, versions: [{ node: '20.0.0', results }] }].map((report, i) => {
    const file = path.join(folder(t), `${i}.json`)
    fs.writeFileSync(file, JSON.stringify(report))
    return file
  })
  const { code, stdout } = await node([conductor, '--from', files.join()])
  t.is(code, 0)
  t.regex(stdout, /^longstack-full +12\.0 +2\.00 +1\.40 +1\.40 /m)
  t.notRegex(stdout, /1\.10 1\.20 1\.30/)
  t.regex(stdout, /^trace +90\.0 /m, 'what was measured once is still there')
})

test('only --docs writes the pages', async (t) => {
  const files = [cost, path.join(root, 'README.md')]
  const read = () => files.map((file) => fs.existsSync(file) && fs.readFileSync(file, 'utf8'))
  const before = read()
  const file = path.join(folder(t), 'figures.json')
  fs.writeFileSync(file, JSON.stringify(example))
  const { code, stdout } = await node([conductor, '--from', file])
  t.is(code, 0)
  t.is(stdout, `${terminal(example)}\n`)
  t.deepEqual(read(), before)
})
