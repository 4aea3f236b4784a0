'use strict'

// Reads what test runners print, test by test: [name, state] for every test and subtest.

/** @typedef {Array<[name: string, state: string]>} Tests */

/**
 * Reads TAP with indented subtests: node --test-reporter=tap, and tap itself.
 * @param {string} text
 * @returns {Tests}
 */
function parseTap (text) {
  /** @type {string[]} */
  const titles = []
  /** @type {Tests} */
  const tests = []
  for (const line of text.split('\n')) {
    const opening = /^( *)# Subtest: (.*)$/.exec(line)
    if (opening !== null) {
      titles.length = opening[1].length / 4
      titles.push(opening[2])
      continue
    }
    const result = /^( *)(ok|not ok) \d+ - (.*?)( # (?:SKIP|TODO).*| # time=.*)?$/.exec(line)
    if (result === null) continue
    const [, indent, state, name, directive = ''] = result
    const kind = directive.startsWith(' # time') ? '' : directive
    tests.push([[...titles.slice(0, indent.length / 4), name].join(' › '), state + kind])
  }
  return tests
}

/**
 * Reads the flat TAP of tape: a comment opens a test, its assertions follow.
 * @param {string} text
 * @returns {Tests}
 */
function parseTape (text) {
  let title = ''
  /** @type {Tests} */
  const tests = []
  for (const line of text.split('\n')) {
    const result = /^(ok|not ok) \d+ ?(.*)$/.exec(line)
    if (result !== null) tests.push([`${title} › ${result[2]}`, result[1]])
    else if (line.startsWith('# ')) title = line.slice(2)
  }
  return tests
}

/**
 * Reads mocha's `json` reporter, which may follow other output.
 * @param {string} text
 * @returns {Tests}
 */
function parseMocha (text) {
  const start = text.search(/^\{\s*"stats":/m)
  if (start === -1) return []
  const { passes, failures, pending } = JSON.parse(text.slice(start))
  return [...named(passes, 'ok'), ...named(failures, 'not ok'), ...named(pending, 'skipped')]
}

/**
 * @param {Array<{ fullTitle: string }>} tests
 * @param {string} state
 * @returns {Tests}
 */
function named (tests, state) {
  return tests.map((test) => [test.fullTitle, state])
}

/**
 * For programs without a runner: their lines, in order, and how they end.
 * @param {string} text
 * @returns {Tests}
 */
function parseLines (text) {
  return text.split('\n').filter(Boolean).map((line) => [line, 'ok'])
}

module.exports = { parseTap, parseTape, parseMocha, parseLines }
