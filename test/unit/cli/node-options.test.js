'use strict'

const fc = require('fast-check')
const test = require('ava')
const { quoteWord, withRegister, wordsOf } = require('../../../lib/cli/env')

const values = (/** @type {string} */ text) => wordsOf(text).map(({ value }) => value)
const word = fc.string({ unit: fc.constantFrom('a', '-', ' ', '"', '\\', '$', "'", '\t', '\n', '漢', '='), minLength: 1 })

test('words are separated by spaces; quotes keep spaces; a backslash escapes only in quotes', (t) => {
  t.deepEqual(values('  -r  a.js --title="b c"d'), ['-r', 'a.js', '--title=b cd'])
  t.deepEqual(values('C:\\x\\y "C:\\\\x y\\"z"'), ['C:\\x\\y', 'C:\\x y"z'])
  t.deepEqual(values('a\tb\nc'), ['a\tb\nc'])
  t.deepEqual(values('""'), [''])
  t.throws(() => wordsOf('a "b'), { message: 'Unterminated quote in NODE_OPTIONS.' })
})

test('quoting and reading gives the same words', (t) => {
  fc.assert(fc.property(fc.array(word), (words) => {
    t.deepEqual(values(words.map(quoteWord).join(' ')), words)
  }))
})

test('NODE_OPTIONS is preserved; longstack is appended once', (t) => {
  const others = fc.array(word.filter((text) => !text.startsWith('-')))
  fc.assert(fc.property(others, fc.nat(9), fc.boolean(), word, (words, place, isInline, name) => {
    const file = `/${name}/register.js`
    const preload = isInline ? [`--require=${file}`] : ['-r', file]
    const present = words.toSpliced ? words.toSpliced(place, 0, ...preload) : [...preload, ...words]
    const text = withRegister(present.map(quoteWord).join(' '), file)
    t.deepEqual(values(text), [...words, `--require=${file}`])
    t.is(withRegister(text, file), text)
  }))
})

test('another copy of longstack, or its bare name, is replaced', (t) => {
  const file = '/opt/longstack/lib/register.js'
  for (const present of [
    '-r longstack/register', '--require=longstack/register', '--import longstack/register',
    '-r /old/node_modules/longstack/lib/register.js', '--require="C:\\\\a b\\\\longstack\\\\lib\\\\register.js"'
  ]) t.is(withRegister(present, file), `--require=${file}`)
  for (const present of ['-r ./register.js', '--import=tsx', '-r', '--title longstack/register']) {
    t.is(withRegister(present, file), `${present} --require=${file}`)
  }
})
