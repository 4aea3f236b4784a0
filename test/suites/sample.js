'use strict'

// A suite with a difference, one that any preload makes, and one that occurs once, for the test of the
// comparison. argv[2]: a file that is made when the last has occurred.

const assert = require('node:assert')
const fs = require('node:fs')
const test = require('node:test')

const memory = process.argv[2]

test('always the same', async (t) => {
  await t.test('inside', () => {})
  await t.test('left out', { skip: true }, () => {})
})

test('twice', () => {})
test('twice', () => assert.fail('on purpose'))

test('sees longstack', () => {
  assert.ok(!Object.keys(require.cache).some((file) => file.endsWith('register.js')))
})

test('sees hops', async () => {
  const { stack } = await new Promise((resolve) => setTimeout(() => resolve(new Error('late')), 1))
  assert.doesNotMatch(stack, /^ {2}── /m)
})

test('sees any preload', () => assert.strictEqual(process.env.NODE_OPTIONS, undefined))

test('differs once', () => {
  if (process.env.NODE_OPTIONS === undefined || fs.existsSync(memory)) return
  fs.writeFileSync(memory, '')
  assert.fail('the first time')
})
