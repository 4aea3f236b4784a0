'use strict'

const test = require('ava')
const { MAX, fold } = require('../../../lib/stacks/loop-folding')
const { ancestry, chained, contextOf } = require('../../helpers/contexts')

/** Makes a chain of steps that are equal where their letters are. @param {string} letters oldest first */
const chainOf = (letters) => chained(...[...letters].map((site) => contextOf('Timeout', { stack: site })))

/** Folds a chain and writes it, oldest first. @param {any} newest */
function folded (newest, keep = 100) {
  const cut = fold(newest, keep)
  return { cut, text: ancestry(newest).reverse().map(({ stack, repeats }) => `${stack}${repeats}`).join(' ') }
}

/** @type {Array<[letters: string, text: string]>} */
const chains = [
  ['abc', 'a1 b1 c1'],
  ['rxxxx', 'r1 x4'],
  ['rxyxyxy', 'r1 x3 y3'],
  ['rxyzxyzend', 'r1 x2 y2 z2 e1 n1 d1'],
  ['aabbb', 'a2 b3'],
  ['abcdefghabcdefgh', 'a2 b2 c2 d2 e2 f2 g2 h2'],
  ['abcdefghiabcdefghi', 'a1 b1 c1 d1 e1 f1 g1 h1 i1 a1 b1 c1 d1 e1 f1 g1 h1 i1']
]
for (const [letters, text] of chains) {
  test(`${letters} becomes ${text}`, (t) => {
    t.deepEqual(folded(chainOf(letters)), { cut: 0, text })
  })
}

test('an incomplete iteration ends the loop with its step', (t) => {
  t.is(folded(chainOf('rxyxyx')).text, 'r1 y2 x3')
})

test('steps of another type, origin or detail are not equal', (t) => {
  for (const fields of [{ type: 'Immediate' }, { origin: 'settled' }, { detail: '5' }]) {
    const newest = chained(contextOf('Timeout', { stack: 'x' }), contextOf('Timeout', { stack: 'x', ...fields }))
    t.is(folded(newest).text, 'x1 x1')
  }
})

test('the oldest links are cut off after the retained ones', (t) => {
  t.deepEqual(folded(chainOf('abcde'), 2), { cut: 3, text: 'd1 e1' })
  t.deepEqual(folded(chainOf('abxxxx'), 2), { cut: 1, text: 'b1 x4' })
})

test('no more than MAX steps are read', (t) => {
  const newest = chained(...Array.from({ length: MAX + 10 }, (_, i) => contextOf('Timeout', { stack: i })))
  t.is(fold(newest, MAX + 10), 0)
  t.is(ancestry(newest).length, MAX)
})

test('branches share folded links, and do not count them again', (t) => {
  const shared = chainOf('rxx')
  const [left, right] = ['l', 'm'].map((site) => contextOf('Timeout', { stack: site, parent: shared }))
  t.is(folded(left).text, 'r1 x2 l1')
  t.is(folded(right).text, 'r1 x2 m1')
  t.is(folded(left).text, 'r1 x2 l1')
})
