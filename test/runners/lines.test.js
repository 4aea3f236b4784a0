'use strict'

// Errors and hops inside a runner name positions in the source, even if the runner, a compiler or coverage
// rewrites it; and a test failure looks as it does without longstack.

const test = require('ava')
const { runsAll } = require('../helpers/run')
const { preload, testRunners } = require('../helpers/runners')

const TIMEOUT = 240_000 // a compiler on a busy machine
const JEST = ['jest30', 'jest29']
const VITEST = ['vitest5', 'vitest4']

/** What is compiled away or counted stands before what is named. */
const types = `
interface Removed {
  one: string
  two: number
}
type Gone = 'a' | 'b'
`
const library = `
function unused (a) { if (a) { return 1 } else { return 2 } }

export function later (done) {
  const branch = done ? (unused(1), unused(0)) : null
  setTimeout(function tick () { done(new RangeError('late' + branch)) }, 1) // LATER
}

export async function waits () {
  await new Promise((resolve) => { setTimeout(resolve, 1) })
  throw new TypeError('thrown') // THROWN
}
`
const tests = `
test('a timer', async () => {
  const error = await new Promise((resolve) => { later(resolve) }) // CALL
  console.log('RESULT' + JSON.stringify(error.stack) + 'END')
})

test('fails', async () => {
  await waits() // AWAIT
})

test('compares', () => {
  expect({ a: 1, b: [2] }).toEqual({ a: 1, b: [3] }) // COMPARE
})
`

/** @param {string} text @returns {string} as CommonJS */
function asCommonJs (text) {
  return `${text.replaceAll('export ', '')}\nmodule.exports = { later, waits }\n`
}

/** @param {string} source @param {string} text */
function lineOf (source, text) {
  return source.slice(0, source.indexOf(text)).split('\n').length
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {import('../helpers/run').Result} result
 * @param {{ file: string, text: string }} lib
 * @param {{ file: string, text: string }} own
 */
function assertLines (t, { stdout, stderr, code }, lib, own) {
  const output = stdout + stderr
  t.is(code, 1, output)
  const found = /RESULT(".*?")END/s.exec(output)
  if (found === null) return t.fail(output)
  const [head, hop] = JSON.parse(found[1]).split(/^ {2}── /m)
  const later = `${lib.file}:${lineOf(lib.text, '// LATER')}:`
  t.regex(head, new RegExp(`^RangeError: late3?\\w*\n.*tick.*${later}`))
  t.regex(hop, new RegExp(`^setTimeout\\(1\\) .*\n.*later .*${later}.*\n[^]*${own.file}:${lineOf(own.text, '// CALL')}:`))
  t.regex(output, new RegExp(`waits.*${lib.file}:${lineOf(lib.text, '// THROWN')}:`))
  for (const [source, mark] of [[lib.text, 'THROWN'], [own.text, 'COMPARE']]) {
    t.regex(output, new RegExp(`^ *(> )?${lineOf(source, `// ${mark}`)}( ?\\||.*│).*${mark}`, 'm'))
  }
}

for (const provider of ['babel', 'v8']) {
  for (const isTyped of [false, true]) {
    if (isTyped && !runsAll) continue
    const title = `lines of the source, ${isTyped ? 'ts-jest' : 'babel-jest'}, coverage by ${provider}`
    testRunners(test, JEST, title, async (t, run) => {
      const end = isTyped ? 'ts' : 'js'
      const lib = { file: `lib.${end}`, text: isTyped ? types + library : asCommonJs(library) }
      const own = {
        file: `a.test.${end}`,
        text: isTyped
          ? `import { later, waits } from './lib'\n${types}${tests.replace('const error', 'const error: any')}`
          : `const { later, waits } = require('./lib')\n${tests}`
      }
      const transform = isTyped ? ", transform: { '^.+\\.ts$': ['ts-jest', { diagnostics: false }] }" : ''
      const files = {
        [lib.file]: lib.text,
        [own.file]: own.text,
        'jest.config.js': `module.exports = { collectCoverage: true, coverageProvider: '${provider}'${transform} }`,
        'tsconfig.json': '{ "compilerOptions": { "target": "es2022", "module": "commonjs", "types": [] } }'
      }
      const result = await run({ files, nodeOptions: preload, timeout: TIMEOUT })
      assertLines(t, result, lib, own)
    })
  }
}

for (const provider of ['istanbul', 'v8']) {
  for (const pool of runsAll ? ['forks', 'vmThreads'] : ['vmThreads']) {
    testRunners(test, VITEST, `lines of the source, coverage by ${provider}, pool ${pool}`, async (t, run) => {
      const lib = { file: 'lib.ts', text: types + library }
      const own = {
        file: 'a.test.ts',
        text: `import { expect, test } from 'vitest'\nimport { later, waits } from './lib'\n${types}${tests}`
      }
      const files = { [lib.file]: lib.text, [own.file]: own.text }
      const args = ['run', '--pool', pool, '--coverage.enabled', `--coverage.provider=${provider}`]
      const result = await run({ files, args, nodeOptions: preload, timeout: TIMEOUT })
      assertLines(t, result, lib, own)
    })
  }
}
