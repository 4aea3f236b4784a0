'use strict'

// The page of the articles' claims: its rendering of figures, and npm run articles, which measures, writes,
// and compares a second run with the first. Runs are too short for meaningful figures.

const test = require('ava')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { goodFigures } = require('../helpers/articles')
const { node, root } = require('../helpers/run')
const { page: pageOf, compared, measured } = require('../../bench/articles/page')

const conductor = path.join(root, 'bench', 'articles', 'run.js')

/** @param {import('ava').ExecutionContext} t */
function directory (t) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-test-'))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  return directory
}

const table = { title: 'Resources', heading: ['layer', 'number'], rows: [['net', '3.0']] }

/** Figures of one claim with these ratios, one a round; traced everything costs twice as much. */
function figures (/** @type {number[]} */ ratios, claim = {}) {
  const rounds = ratios.map((ratio) => [{
    id: 'hoisted',
    article: 'On Callbacks (A. Author, 2013)',
    said: 'a closure costs four times as much.',
    saidRatio: 4,
    a: 'hoisted',
    b: 'closure | inline',
    unit: 'ms',
    means: 'the price of the closure',
    why: { 'as said': 'It still is.', 'no difference': 'V8 improved.', 'other way round': 'Unknown.' },
    off: { a: 10, b: 10 * ratio },
    on: { a: 20, b: 20 * ratio },
    ...claim
  }])
  return {
    date: '2026-11-21T00:00:00.000Z',
    node: '24.0.0',
    quick: false,
    machine: { cpu: 'a CPU', processors: 2, memory: 2 ** 34, system: 'Linux', loadBefore: 0 },
    examples: [{ name: '03-example', title: '03 · An example', rounds, tables: [table] }]
  }
}

test('a ratio is the median of the rounds; its spread is four times the largest deviation, at least 10 %', (t) => {
  const wide = measured([1.8, 2, 2.2])
  t.is(wide.ratio, 2)
  t.true(Math.abs(wide.spread[0] - 2 * 0.9 ** 4) < 1e-9)
  t.true(Math.abs(wide.spread[1] - 2 / 0.9 ** 4) < 1e-9)
  const narrow = measured([1, 1, 1])
  t.true(Math.abs(narrow.spread[1] - 1.1) < 1e-9 && Math.abs(narrow.spread[0] - 1 / 1.1) < 1e-9)
  const outlier = measured([2, 2.2, 2, 1.9, 90])
  t.true(Math.abs(outlier.spread[1] - 2 * 1.1 ** 4) < 1e-9, 'of five rounds one may be far off')
})

test('the page has the old claim, the measurement, and why a figure no longer holds', (t) => {
  /** @param {number[]} ratios @param {{}} [claim] the last cell of the claim's row */
  const verdict = (ratios, claim) => /^\| hoisted: .* \| (.*) \|$/m.exec(pageOf(figures(ratios, claim)))?.[1]
  const holds = pageOf(figures([3.9, 4, 4.1]))
  t.true(holds.includes('| hoisted: closure \\| inline ÷ hoisted | 4.00 | 4.00 | 4.00 | as said |'))
  t.notRegex(holds, /^- \*\*hoisted/m, 'what holds needs no reason')
  t.true(pageOf(figures([0.9, 1, 1.2])).includes(
    '- **hoisted**, no difference (On Callbacks (A. Author, 2013)). V8 improved.'))
  t.is(verdict([0.9, 1.2, 1.3]), 'no difference', 'not in each round')
  t.is(verdict([1.02, 1.04, 1.1]), 'no difference', 'hardly any')
  t.is(verdict([1.02, 2.5, 9]), 'probably as said', 'the spread holds 1')
  t.is(verdict([1.02, 1.5, 9]), 'probably less than said', '4 was said')
  t.notRegex(pageOf(figures([1.02, 1.5, 9])), /^- \*\*hoisted/m, 'another run may have another outcome')
  t.is(verdict([1.5, 1.52, 1.5]), 'less than said')
  t.is(verdict([2.4, 2.4, 2.4]), 'probably less than said', 'half is in the spread')
  t.is(verdict([2.6, 2.6, 2.6]), 'probably as said', 'likewise')
  t.is(verdict([1.3, 1.08, 1.1]), 'less than said', '1 is in the spread')
  t.is(verdict([5], { saidRatio: 24 }), 'less than said')
  t.true(pageOf(figures([0.5, 0.5, 0.51])).includes('other way round (On Callbacks (A. Author, 2013)). Unknown.'))
  t.is(verdict([0.9, 0.8, 0.7]), 'probably other way round')
  t.is(verdict([2.5, 2.5, 2.5, 2.5, 0.9], { saidRatio: null }), 'as said', 'one of five is omitted')
  t.true(pageOf(figures([2], { saidRatio: null })).includes('| – | 2.00 |'))
  t.true(pageOf(figures([1], { why: {} })).includes('No reason is known for that outcome.'))
  const about = { saidRatio: null, saidSame: true }
  t.true(pageOf(figures([1.01], about)).includes('| 1 | 1.01 | 1.01 | as said |'))
  t.is(verdict([2], about), 'more with closure \\| inline')
  t.is(verdict([0.8], about), 'less with closure \\| inline')
  t.is(verdict([1.07], about), 'probably more with closure \\| inline')
})

test('the verdict and the stated spread do not contradict each other', (t) => {
  const below = [[0.7, 0.8, 0.99], [0.9, 0.95, 0.97]]
  const above = [[0.9, 1, 1.2], [1.01, 1.2, 1.3], [1.2, 1.21, 1.2], [4, 4, 4.1]]
  const five = [[1.3, 1.31, 1.3, 1.3, 0.8], [0.8, 0.8, 0.8, 0.81, 1.5]]
  for (const ratios of [...below, ...above, ...five]) {
    const { spread: [low, high] } = measured(ratios)
    const [, verdict] = /^\| hoisted: .* \| (.*) \|$/m.exec(pageOf(figures(ratios, { saidRatio: null }))) ?? []
    t.is(verdict === 'as said', low > 1, `${ratios}: ${verdict}`)
    t.is(verdict === 'other way round', high < 1, `${ratios}: ${verdict}`)
  }
})

test('two runs are compared by the spread of the first', (t) => {
  const first = figures([1.9, 2, 2.1])
  /** @param {number} ratio */
  const verdicts = (ratio) => {
    return compared(first, figures([ratio])).map(({ state, agrees }) => `${state} ${agrees}`)
  }
  t.deepEqual(verdicts(2.4), ['off true', 'on true'])
  t.deepEqual(verdicts(2.5), ['off false', 'on false'])
  t.deepEqual(verdicts(1.6), ['off false', 'on false'])
  t.deepEqual(compared(first, figures([2], { id: 'another' })), [], 'what the first run did not have')
})

test.serial('npm run articles measures an example, writes the page, and compares another run', async (t) => {
  const docs = directory(t)
  const args = [conductor, '--quick', '--rounds', '1', '--only', '06', '--docs', docs]
  const written = await node(args)
  t.is(written.code, 0, written.stderr)
  const text = fs.readFileSync(path.join(docs, 'articles.md'), 'utf8')
  const data = JSON.parse(fs.readFileSync(path.join(docs, 'articles.json'), 'utf8'))
  t.is(data.node, process.versions.node)
  t.true(data.examples[0].rounds[0].length > 0)
  for (const { id, off, on } of data.examples[0].rounds[0]) {
    t.true(text.includes(`| ${id}: `))
    for (const value of [off.a, off.b, on.a, on.b]) t.true(Number.isFinite(value) && value > 0, id)
  }
  t.true(text.includes('**A quick run'))

  const again = await node([...args, '--check'])
  const summary = /^(\d+) of (\d+) ratios agree with the page\.$/m.exec(again.stdout)
  const [, agree, total] = summary ?? t.fail(again.stdout + again.stderr)
  t.is(Number(total), data.examples[0].rounds[0].length * 2)
  t.is(again.code, agree === total ? 0 : 1)
  t.is(fs.readFileSync(path.join(docs, 'articles.md'), 'utf8'), text, 'a check writes nothing')

  const more = await node([...args, '--add'])
  t.is(more.code, 0, more.stderr)
  const both = JSON.parse(fs.readFileSync(path.join(docs, 'articles.json'), 'utf8')).examples[0].rounds
  t.deepEqual(both[0], data.examples[0].rounds[0])
  t.is(both.length, 2)
  const page = fs.readFileSync(path.join(docs, 'articles.md'), 'utf8')
  t.true(page.includes('in 2 rounds'))

  fs.rmSync(path.join(docs, 'articles.md'))
  t.is((await node([conductor, '--page', '--docs', docs])).code, 0)
  t.is(fs.readFileSync(path.join(docs, 'articles.md'), 'utf8'), page, 'the page is made of its figures')
})

const shapes = {
  '01-intercept': ['interception'],
  '02-tcp-net-http': ['net-over-raw', 'http-over-net', 'closures-raw', 'closures-net', 'closures-http'],
  '03-primes-in-nexttick': ['primes-large-closure', 'primes-memory'],
  '04-serving-files': ['chunk-size', 'string-over-buffer', 'large-strings', 'fresh-over-reused',
    'utf8-over-latin1', 'more-connections'],
  '05-deferring': ['deferring-timeout', 'deferring-immediate', 'deferring-starves'],
  '07-never-comes-back': ['busy-loop', 'all-but-your-code', 'two-in-pool', 'slices', 'slices-price', 'pool',
    'cluster', 'median']
}

for (const [name, ids] of Object.entries(shapes)) {
  test.serial(`${name}: its figures have the shape that the page reads`, async (t) => {
    const { claims, tables } = await goodFigures(t, name)
    t.deepEqual(claims.map(({ id }) => id), ids)
    t.true(tables.length > 0)
    if (name === '03-primes-in-nexttick') countsAreRight(t, tables[0].rows)
  })
}

/**
 * A recursion is two hops: the callback that the caller set, and all others.
 */
function countsAreRight (/** @type {import('ava').ExecutionContext} */ t, /** @type {string[][]} */ rows) {
  t.is(rows.length, 5)
  for (const [way, full, js] of rows) t.deepEqual([full, js], ['1 + 499', '1 + 499'], way)
}

test('wrong usage is a sentence and exit code 2', async (t) => {
  const docs = directory(t)
  const usage = async (/** @type {string[]} */ ...args) => {
    const { code, stderr } = await node([conductor, '--docs', docs, ...args])
    t.is(code, 2)
    return stderr
  }
  t.regex(await usage('--only', '99'), /^There is no example "99"\. Known are 01/)
  t.regex(await usage('--rounds', '0'), /^--rounds must be an integer/)
  t.regex(await usage('--check'), /^There are no figures yet/)
  t.regex(await usage('--add'), /^There are no figures yet/)
  t.regex(await usage('--add', '--check'), /^A check writes nothing/)
  t.regex(await usage('--node', '/nowhere'), /is not a Node binary that runs on this machine/)
  t.regex(await usage('--chekc'), /chekc/)
})
