'use strict'

const test = require('ava')
const { treeLines } = require('../../../../report/render/tree')
const { columnsOf } = require('../../../../report/render/wrap')

/** @param {string} kind @param {string} name @param {number} ms @param {any[]} children */
function node (kind, name, ms, children = [], count = 1) {
  return { kind, name, ms, count, children }
}

const tree = node('root', 'all requests', 1000, [
  node('route', 'GET /cheap', 100, [node('ran', 'ran', 60), node('delayed', 'delayed by others', 40)], 10),
  node('route', 'GET /report', 900, [
    node('frame', 'report (/app/app.js:24:9)', 700, [
      node('frame', 'pool.query (/app/lib/pool.js:34:9)', 700, [node('waited', 'TCP 127.0.0.1:5432', 700, [], 40)])
    ]),
    node('ran', 'ran', 120, [node('frame', 'hash (/app/lib/hash.js:3:1)', 100), node('frame', 'tiny (/app/x.js:1:1)', 1)]),
    node('beside', 'ran beside', 70),
    node('waited', 'setTimeout(10)', 8),
    node('waited', 'other sites', 2)
  ], 20)
], 30)

test('the hot path comes first; a straight line of calls is one row; kinds have marks', (t) => {
  t.deepEqual(treeLines(tree), [
    '  100 %     1.00 s  all requests × 30',
    ' 90.0 %     900 ms    GET /report × 20',
    ' 70.0 %     700 ms      report (app.js:24) → pool.query (pool.js:34)',
    '                          ░ waited: TCP 127.0.0.1:5432 × 40',
    ' 12.0 %     120 ms      █ ran',
    ' 10.0 %     100 ms        hash (hash.js:3)',
    '  0.1 %    1.00 ms        … 1 smaller',
    '  7.0 %    70.0 ms      ◇ ran beside',
    '  1.0 %    10.0 ms      … 2 smaller',
    ' 10.0 %     100 ms    GET /cheap × 10',
    '  6.0 %    60.0 ms      █ ran',
    '  4.0 %    40.0 ms      ▒ delayed by others'
  ].map((line) => line.replace(/^(.{7}) {4}/, '$1  ')))
})

test('depth and share are limited', (t) => {
  t.deepEqual(treeLines(tree, { maxDepth: 1, minShare: 0.2 }), [
    '  100 %  1.00 s  all requests × 30',
    ' 90.0 %  900 ms    GET /report × 20 …',
    ' 10.0 %  100 ms    … 1 smaller'
  ])
})

test('lines fit the width unless a frame is longer', (t) => {
  for (const width of [40, 60, 80, 120]) {
    for (const line of treeLines(tree, { width })) {
      const text = line.slice(15).trim()
      t.true(columnsOf(line) <= width || !text.includes(' → '), `${width}: ${line}`)
    }
  }
  const words = (/** @type {string[]} */ lines) => lines.join(' ').split(/\s+/).join(' ')
  t.is(words(treeLines(tree, { width: 40 })), words(treeLines(tree, { width: 120 })))
})

test('hostile names, an empty tree and a chain of thousands of calls are printed', (t) => {
  t.deepEqual(treeLines(node('root', '\u001b[2J\u202ex\n', 0)), ['  0.0 %  0 µs  ?[2J?x?'])
  let deep = node('ran', 'ran', 5)
  for (let i = 0; i < 5000; i++) deep = node('frame', `f${i} (/a.js:${i}:1)`, 5, [deep, node('ran', 'x', 0)])
  const lines = treeLines(deep)
  t.is(lines.length, 101)
  t.true(lines[100].endsWith('f4899 (a.js:4899) …'))
})
