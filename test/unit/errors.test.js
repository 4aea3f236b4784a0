'use strict'

const test = require('ava')
const { mistake, nearest } = require('../../lib/errors')

test('nearest finds one edit: a letter missing, added, changed, or two swapped', (t) => {
  const words = ['frames', 'depth', 'budget']
  for (const word of ['frmes', 'fraames', 'fromes', 'farmes', 'FRAMES']) t.is(nearest(word, words), 'frames')
})

test('nearest allows a third of the letters to be wrong', (t) => {
  t.is(nearest('abcxyf', ['abcdef']), 'abcdef')
  t.is(nearest('abxyzf', ['abcdef']), undefined)
  t.is(nearest('ab', ['xb']), 'xb')
  t.is(nearest('ab', ['xy']), undefined)
})

test('nearest prefers the fewest edits, then the first word', (t) => {
  t.is(nearest('spans', ['spins', 'spans', 'spats']), 'spans')
  t.is(nearest('spxns', ['spins', 'spans']), 'spins')
})

test('nearest finds nothing for non-text or very long text', (t) => {
  t.is(nearest(Symbol('frames'), ['frames']), undefined)
  t.is(nearest('x'.repeat(1000), ['x'.repeat(999)]), undefined)
})

test('mistake is a TypeError with the code of its key', (t) => {
  const error = mistake('UNKNOWN_OPTION', 'frmes', 'frames')
  t.true(error instanceof TypeError)
  t.is(error.code, 'LONGSTACK_ERR_UNKNOWN_OPTION')
  t.regex(error.message, /"frmes".*"frames"/)
})

test('mistake gives no hint if there is none', (t) => {
  t.notRegex(mistake('UNKNOWN_OPTION', 'xyz', undefined).message, /mean/)
})

test('mistake cuts long texts and quotes values that are not plain text', (t) => {
  t.true(mistake('UNKNOWN_OPTION', 'x'.repeat(1e6), undefined).message.length < 400)
  t.regex(mistake('UNKNOWN_OPTION', 'a"\n', undefined).message, /"a\\"\\n"/)
})

test('mistake runs no code of the value that it describes', (t) => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  const value = { toString () { throw new Error('was called') }, get name () { throw new Error('was called') } }
  for (const given of [proxy, value, [value], Symbol('a'), 1n, null, undefined, () => {}]) {
    t.is(mistake('INVALID_TARGET', given).code, 'LONGSTACK_ERR_INVALID_TARGET')
  }
})

test('quoted text in a message has no control characters', (t) => {
  t.is(mistake('UNKNOWN_EVENT', '\x1b\u009b\u202e', undefined).message.match(/[\x00-\x1f\x7f-\x9f\u202e]/), null) // eslint-disable-line no-control-regex
})

test('an unreadable filter is rejected with a code', (t) => {
  const { proxy, revoke } = Proxy.revocable([], {})
  revoke()
  const { compile } = require('../../lib/subsystems')
  t.throws(() => compile(proxy), { code: 'LONGSTACK_ERR_INVALID_FILTER' })
})
