'use strict'

// The output of npm run docs matches the sources.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { generators } = require('../../docs/build')
const { root } = require('../helpers/run')

for (const [name, generate] of Object.entries(generators)) {
  test(`${name} is up to date with npm run docs`, (t) => {
    t.is(fs.readFileSync(path.join(root, name), 'utf8'), generate())
  })
}

test('docs/errors.md lists every warning code', (t) => {
  const { warnings } = require('../../docs/build/remedies')
  const lib = path.join(root, 'lib')
  const names = fs.readdirSync(lib, { recursive: true, encoding: 'utf8' })
  const files = names.filter((name) => name.endsWith('.js'))
  const codes = new Set(files.flatMap((name) => {
    const text = fs.readFileSync(path.join(lib, name), 'utf8')
    return [...text.matchAll(/\b(?:#?warn(?:Once)?|say)\('([A-Z_]+)'/g)].map((match) => match[1])
  }))
  t.deepEqual([...codes].sort(), Object.keys(warnings).sort())
})

test('both entry points export the same types', (t) => {
  const namesIn = (/** @type {string} */ name) => {
    const text = fs.readFileSync(path.join(root, name), 'utf8')
    return [...text.matchAll(/@typedef \{import\('[^']+'\)\.\w+\} (\w+)/g)].map((match) => match[1])
  }
  t.true(namesIn('index.js').length > 10)
  t.deepEqual(namesIn('lib/esm.mjs'), namesIn('index.js'))
})
