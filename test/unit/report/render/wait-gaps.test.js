'use strict'

const test = require('ava')
const { waitGapsOf } = require('../../../../report/render/wait-gaps')

/** @type {Array<[number, number, string]>} */
const runs = [[0, 2, 'a'], [12, 1, 'b'], [20, 1, 'c'], [28, 1, 'd'], [31, 1, 'e']]

/** @param {any[]} waits */
function gapsOf (...waits) {
  const gaps = waitGapsOf({ runs, waits: waits.map((wait) => ({ count: 1, ...wait })) })
  return gaps.map(({ start, end, wait }) => [start, end, wait.at])
}

test('a wait is placed in the gap of its length', (t) => {
  t.deepEqual(gapsOf({ ms: 10.002, at: 'f' }), [[2, 12, 'f']])
  t.deepEqual(gapsOf({ ms: 0.5, delayed: 1.5, at: 'f' }), [[29, 31, 'f']], 'with the time in which others ran')
})

test('remaining waits are placed roughly, if that is certain', (t) => {
  t.deepEqual(gapsOf({ ms: 10, at: 'f' }, { ms: 2.05, at: 'g' }, { ms: 7.04, at: 'h' }), [[2, 12, 'f'], [29, 31, 'g']])
  t.deepEqual(gapsOf({ ms: 10.001, at: 'f' }, { ms: 9.95, at: 'g' }), [[2, 12, 'f']])
})

test('several waits of one site share the remaining gaps', (t) => {
  t.deepEqual(gapsOf({ ms: 21, delayed: 5, count: 4, at: 'f' }), [[2, 12, 'f'], [13, 20, 'f'], [21, 28, 'f'], [29, 31, 'f']])
  t.deepEqual(gapsOf({ ms: 12, count: 2, at: 'f' }, { ms: 0, delayed: 14, count: 2, at: 'g' }), [], 'of two sites')
  t.deepEqual(gapsOf({ ms: 17, count: 2, at: 'f' }, { ms: 9, count: 2, at: 'g' }), [], 'either gap of 7 may be of either')
  t.deepEqual(gapsOf({ ms: 26, count: 5, at: 'f' }), [])
})

test('nothing is placed if two gaps fit, two waits share one, or none fits', (t) => {
  t.deepEqual(gapsOf({ ms: 7, at: 'f' }), [])
  t.deepEqual(gapsOf({ ms: 10, at: 'f' }, { ms: 10.001, at: 'g' }), [])
  t.deepEqual(gapsOf({ ms: 10, count: 2, at: 'f' }, { ms: 9.5, at: 'g' }, { ms: 0.01, at: 'h' }), [])
})
