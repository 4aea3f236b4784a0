'use strict'

// Figures of a report, compared with Python's and with definitions written out here: quartiles of type 7, R's
// boxplot.stats, bw.nrd0 and a sum of Gaussian kernels.

const test = require('ava')
const { execFileSync } = require('node:child_process')
const { file, report, span } = require('../helpers/span-files')

const PYTHON = `
import json, math, statistics, sys
def sevens(xs, p):
    xs = sorted(xs); h = (len(xs) - 1) * p; i = math.floor(h)
    return xs[i] + (xs[min(i + 1, len(xs) - 1)] - xs[i]) * (h - i)
def box(xs):
    xs = sorted(xs); n = len(xs); n4 = math.floor((n + 3) / 2) / 2
    d = [n4, (n + 1) / 2, n + 1 - n4]
    q1, m, q3 = [0.5 * (xs[math.floor(k) - 1] + xs[math.ceil(k) - 1]) for k in d]
    inside = [x for x in xs if q1 - 1.5 * (q3 - q1) <= x <= q3 + 1.5 * (q3 - q1)]
    return dict(low=inside[0], q1=q1, median=m, q3=q3, high=inside[-1], outliers=[x for x in xs if not inside[0] <= x <= inside[-1]])
def nrd0(xs):
    hi = statistics.stdev(xs); lo = min(hi, (sevens(xs, .75) - sevens(xs, .25)) / 1.34)
    return 0.9 * (lo or hi or abs(xs[0]) or 1) * len(xs) ** -0.2
out = []
for case in json.load(sys.stdin):
    xs = case['values']
    q = statistics.quantiles(xs, n=4, method='inclusive') if len(xs) > 1 else xs * 3
    bw = nrd0(xs) if len(xs) > 1 else None
    k = lambda x, w: sum(math.exp(-0.5 * ((x - v) / w) ** 2) for v in xs) / (len(xs) * w * math.sqrt(2 * math.pi))
    out.append(dict(summary=dict(min=min(xs), q1=q[0], median=q[1], mean=statistics.fmean(xs), q3=q[2], max=max(xs), p99=sevens(xs, .99), p999=sevens(xs, .999)),
      box=box(xs), bandwidth=bw, y=[k(x, w) for x, w in case['at']]))
json.dump(out, sys.stdout)
`

/** @param {number} seed */
function random (seed) {
  let state = seed
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32
}

/**
 * Durations to the microsecond, as a program has them.
 * @param {number} count
 * @param {(draw: () => number) => number} shape
 */
function durations (count, shape) {
  const draw = random(count)
  return Array.from({ length: count }, () => Math.round(shape(draw) * 1000) / 1000)
}

const normal = (/** @type {() => number} */ draw) =>
  Math.sqrt(-2 * Math.log(draw() + 1e-12)) * Math.cos(2 * Math.PI * draw())
const cases = {
  one: [3.5],
  two: [1, 2],
  five: [5, 1, 4, 2, 3],
  equal: Array(20).fill(2.5),
  zeros: [0, 0, 0, 0],
  seven: [2.1, 3.3, 0.4, 12, 7.7, 3.3, 100],
  uniform: durations(1001, (draw) => draw() * 50),
  skewed: durations(1500, (draw) => Math.exp(1 + 0.6 * normal(draw))),
  modes: durations(1600, (draw) => draw() < 0.8 ? 3 + 0.2 * normal(draw) : 60 + normal(draw)),
  many: durations(30_000, (draw) => Math.exp(1 + 0.4 * normal(draw)))
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {unknown} actual
 * @param {unknown} expected
 * @param {string} what
 */
function near (t, actual, expected, what, tolerance = 1e-9) {
  t.true(typeof actual === 'number' && Math.abs(actual - Number(expected)) <= tolerance * Math.max(1, Math.abs(Number(expected))), `${what}: ${actual}, not ${expected}`)
}

test('quartiles, boxes and curves match those of R and Python', async (t) => {
  const records = Object.entries(cases).flatMap(([name, values]) =>
    values.map((ms, i) => span({ name, ms, at: i }))
  )
  const { model, code, stderr } = await report([file(t, records)])
  t.is(code, 0, stderr)
  const routes = Object.fromEntries(model.routes.map((/** @type {any} */ route) => [route.name, route]))
  const asked = Object.entries(cases).map(([name, values]) => ({
    values,
    at: pointsOf(routes[name].density)
  }))
  const python = JSON.parse(execFileSync('python3', ['-c', PYTHON], { input: JSON.stringify(asked), maxBuffer: 1 << 26 }).toString())

  for (const [i, [name, values]] of Object.entries(cases).entries()) {
    const { count, summary, box, density } = routes[name]
    const truth = python[i]
    t.is(count, values.length)
    for (const key in truth.summary) near(t, summary[key], truth.summary[key], `${name} ${key}`)
    for (const key of ['low', 'q1', 'median', 'q3', 'high']) near(t, box[key], truth.box[key], `${name} box ${key}`)
    const { outliers } = truth.box
    t.is(box.outlierCount, outliers.length, `${name} outliers`)
    t.true(box.outliers.length === Math.min(200, outliers.length))
    if (outliers.length <= 200) box.outliers.forEach((/** @type {number} */ ms, /** @type {number} */ j) => near(t, ms, outliers[j], `${name} outlier ${j}`))
    else t.deepEqual([box.outliers[0], box.outliers[199]], [outliers[0], outliers[outliers.length - 1]], 'first and last are kept')
    if (values.length < 2) {
      t.is(density, undefined)
      continue
    }
    const step = density.x[1] - density.x[0]
    near(t, density.bandwidth, Math.max(truth.bandwidth, step), `${name} bandwidth`)
    // Above 2000 values those within a thirty-second of a bandwidth are taken together.
    const peak = Math.max(...density.y)
    pointsOf(density).forEach((_, j) => near(t, density.y[j * 16] / peak, truth.y[j] / peak, `${name} density ${j}`, values.length > 2000 ? 1e-3 : 1e-5))
    t.is(density.beyond, values.filter((ms) => ms > density.x[density.x.length - 1]).length)
  }
})

/** Each sixteenth point of a curve. @param {any} density @returns {Array<[number, number]>} */
function pointsOf (density) {
  return density === undefined
    ? []
    : density.x
      .filter((/** @type {number} */ _, /** @type {number} */ i) => i % 16 === 0)
      .map((/** @type {number} */ x) => [x, density.bandwidth])
}

test('a curve has an area of one', async (t) => {
  const { model } = await report([file(t, cases.skewed.map((ms, i) => span({ ms, at: i })))])
  const [{ density: { x, y, beyond } }] = model.routes
  const area =
    y.reduce((/** @type {number} */ sum, /** @type {number} */ height) => sum + height, 0) * (x[1] - x[0])
  near(t, area, 1 - beyond / cases.skewed.length, 'area', 0.02)
})

test('sampled lines weigh as much as the spans that they represent', async (t) => {
  const kept = [[1, 10], [2, 10], [7, 10], [3, 1], [50, 1], [9, 4]]
  const sampled = kept.map(([ms, weight], i) => span({ ms, at: i, failed: ms === 7, attributes: weight === 1 ? {} : { 'longstack.sample_ratio': 1 / weight } }))
  const all = kept.flatMap(([ms, weight], i) =>
    Array.from({ length: weight }, () => span({ ms, at: i, failed: ms === 7 }))
  )
  const estimated = (await report([file(t, sampled)])).model
  const exact = (await report([file(t, all)])).model
  const [[a], [b]] = [estimated.routes, exact.routes]
  t.is(a.count, 6)
  near(t, a.weighted, 36, 'weighted')
  near(t, a.errors, 10, 'errors')
  near(t, a.rate, b.rate, 'rate')
  for (const key in b.summary) near(t, a.summary[key], b.summary[key], key)
  for (const key of ['low', 'q1', 'median', 'q3', 'high']) near(t, a.box[key], b.box[key], `box ${key}`)
  t.regex(estimated.notes.join('\n'), /^4 lines are sampled .* estimates/)
  t.deepEqual(exact.notes, [])
})

test('nanoseconds are preserved: durations are differences of integers', async (t) => {
  const one = { ...span(), startTimeUnixNano: '1763685600999999999', endTimeUnixNano: '1763685601000000000' }
  const { model } = await report([file(t, [one])])
  t.is(model.routes[0].summary.max, 1e-6)
})

test('parts of the time are means over the lines that have them', async (t) => {
  const { split } = require('../helpers/span-files')
  const { model } = await report([file(t, [
    span({ ms: 10, attributes: split({ run: 4, waited: 5, delayed: 1 }, { TIMER: 3, TCP: 2 }) }),
    span({ ms: 20, attributes: split({ run: 2, waited: 13, delayed: 5 }, { TIMER: 10, unknown: 3 }) }),
    span({ ms: 30 }),
    span({ ms: 30, attributes: { ...split({ run: 1000 }), 'longstack.waited_ms': '7' } })
  ])])
  t.deepEqual(model.routes[0].split, {
    run: 3,
    waited: 9,
    delayed: 3,
    wait: { TIMER: 6.5, TCP: 1, unknown: 1.5 }
  })
})
