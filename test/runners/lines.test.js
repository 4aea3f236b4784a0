'use strict'

// Hops have the lines of the sources under test runners that compile files, and where coverage instruments
// them.

const test = require('ava')
const { testRunners } = require('../helpers/runners')

/** Lines count: what is called is on line 4 of either file. */
const LIBRARY = `
exports.later = function later (done) {
  // fails in a while
  setTimeout(() => done(new RangeError('made by a timer')), 2)
}
`
const body = `
test('asks', async () => {
  const trace = require('longstack')
  const error = await new Promise((resolve) => { function inTest () { later(resolve) } setTimeout(inTest, 1) })
  console.log('RESULT' + JSON.stringify([error.stack, trace.stack(error)]) + 'END')
})
`

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} output
 * @param {string} library a pattern
 * @param {string} file a pattern
 */
function assertLines (t, output, library, file) {
  const [own, asked] = JSON.parse(/RESULT(.*?)END/s.exec(output)?.[1] ?? '[]')
  if (own === undefined) return t.fail(output)
  t.regex(own, new RegExp(`^RangeError: made by a timer\\n.*${library}:4:\\d+`))
  for (const text of [own, asked]) {
    const first = `── setTimeout\\(2\\) .*\\n +at .*later \\(.*${library}:4:\\d+\\)\\n`
    t.regex(text, new RegExp(`${first} +at .*inTest .*${file}:4:\\d+\\)`))
    t.regex(text, new RegExp(`── setTimeout\\(1\\) .*\\n +at .*${file}:4:\\d+`))
  }
}

const jestFiles = { 'library.js': LIBRARY, 'a.test.js': `const { later } = require('./library')${body}`, 'jest.config.js': 'module.exports = {}' }

for (const [how, runners, args] of /** @type {Array<[string, string[], string[]]>} */ ([
  ['compiled', ['jest30'], []],
  ['with coverage', ['jest30', 'jest29'], ['--coverage']],
  ['with coverage of V8', ['jest30'], ['--coverage', '--coverageProvider=v8']]
])) {
  testRunners(test, runners, `lines are those of the sources, ${how}`, async (t, run) => {
    const { stdout, stderr, code } = await run({ files: jestFiles, args })
    t.is(code, 0, stderr)
    assertLines(t, stdout + stderr, 'library\\.js', 'a\\.test\\.js')
  })
}

// What is only for types is cut out of the code that runs.
const typed = `
type Done = (error: Error) => void; interface Empty {
}
export function later (done: Done) { setTimeout(() => done(new RangeError('made by a timer') as Empty as Error), 2) }
`
const imports = "import { createRequire } from 'node:module'; import { test } from 'vitest'; import { later } from './library.ts'"
const vitestFiles = { 'library.ts': typed, 'a.test.ts': `${imports}; const require = createRequire(import.meta.url)${body}` }

for (const [how, runners, args] of /** @type {Array<[string, string[], string[]]>} */ ([
  ['with types', ['vitest5'], []],
  ['with types and coverage', ['vitest5', 'vitest4'], ['--coverage.enabled', '--coverage.provider', 'istanbul']],
  ['with types and coverage of V8', ['vitest5'], ['--coverage.enabled', '--coverage.provider', 'v8']]
])) {
  testRunners(test, runners, `lines are those of the sources, ${how}`, async (t, run) => {
    const { stdout, stderr, code } = await run({ files: vitestFiles, args: ['run', ...args] })
    t.is(code, 0, stderr)
    assertLines(t, stdout + stderr, 'library\\.ts', 'a\\.test\\.ts')
  })
}
