'use strict'

// Models of a report in which nothing is what it should be, as a hostile file may make them.

function oddModels () {
  const nonsense = [null, undefined, 3, 'x', [], {}, NaN]
  const names = ['files', 'span', 'notes', 'routes', 'slowest', 'blockers', 'open', 'traces', 'verdict', 'failures', 'series', 'tree', 'slowTree', 'changes']
  const odd = Object.fromEntries(names.map((name) => [name, nonsense]))
  const inner = { name: 3, kind: {}, summary: 3, box: { outliers: 'x' }, density: { x: 1 }, split: { wait: [] }, delayedBy: [3, {}], status: 7, stack: {}, traceId: [], runs: [1, [2]] }
  const traces = { a: [inner, { ...inner, startUnixMs: 5 }], __proto__: [] }
  const site = { ms: 3, callers: [3, {}], at: {}, summary: 'x', byBucket: [0, 'x', 1e9, 5] }
  const node = { name: {}, kind: 'root', ms: 5, count: 'x', traceIds: [{}], children: [null, 3, { kind: 'waited', ms: 5, byBucket: [-1, 5] }, { kind: 'evil', ms: 5 }, { kind: 'ran', ms: NaN }] }
  const series = { fromUnixMs: 5, stepMs: 1, buckets: 1e9, count: 'x', errors: [{}], p50: [NaN], routes: [3, { name: 3, kind: {}, count: [{}], histogram: [1, 2] }] }
  const failure = { type: {}, message: [], routes: [3, { name: {}, count: 'x' }], byBucket: {}, stack: 7 }
  const full = {
    routes: [{ ...inner, sites: [site, 3] }],
    slowest: [inner],
    blockers: [inner],
    open: [inner],
    traces,
    series,
    tree: node,
    slowTree: { ...node, children: [node] },
    failures: [failure],
    verdict: [{ sentence: 'x', rule: {}, advice: 3, figures: 3 }],
    changes: { sites: [{ callers: 3 }], blockers: 'x' }
  }
  return [{}, odd, full, { ...full, compare: full }]
}

module.exports = { oddModels }
