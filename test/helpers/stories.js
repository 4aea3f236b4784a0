'use strict'

// Runs a theme of test/fixtures/chains in a child process and reads its results.

const path = require('node:path')
const { node, register, split } = require('./run')

const major = Number(process.versions.node.split('.')[0])

/**
 * @typedef {object} Hop in the form of stage.js
 * @property {string} label
 * @property {string} type
 * @property {string} origin
 * @property {number} ageMs
 * @property {number} repeats
 * @property {number} asyncId
 * @property {number} triggerAsyncId
 * @property {string[]} functions
 *
 * @typedef {object} Story
 * @property {string} name
 * @property {Hop[]} chain
 * @property {Hop[]} ofError
 * @property {string} text of the error
 * @property {number} elapsedMs
 */

/**
 * @param {string} theme
 * @param {Record<string, string>} [env]
 * @param {string} [only] the only case to run
 * @param {string[]} [args] of node
 * @returns {Promise<Record<string, Story>>} by name of the case
 */
async function stories (theme, env, only, args = []) {
  const file = path.join(__dirname, '..', 'fixtures', 'chains', `${theme}.js`)
  const { stdout, stderr, code } = await node(['-r', register, ...args, file, ...(only === undefined ? [] : [only])], { env })
  if (code !== 0 || stderr !== '') throw new Error(`${theme} ended with ${code}: ${stderr}`)
  /** @type {Story[]} */
  const told = stdout.trim().split('\n').map((line) => JSON.parse(line))
  return Object.fromEntries(told.map((story) => [story.name, story]))
}

/**
 * Formats a chain as lines: "setTimeout(20) × 3 | fired < start". Varying parts are replaced by names.
 * @param {Hop[]} chain
 */
function lines (chain) {
  return chain.map(({ label, repeats, functions }) =>
    `${title({ label, repeats })} | ${functions.join(' < ')}`.replace(/:\d{4,5}\)/, ':PORT)').replace('[::1]', '127.0.0.1')
      .replace(/\/\S*longstack-\w+-\w+/, 'DIR'))
}

/** Returns whether a hop is a request received by a server; texts end there. @param {Hop} hop */
const isRequest = ({ label }) => /^[A-Z]+ \//.test(label)

/** @param {{ label: string, repeats: number }} hop */
function title ({ label, repeats }) {
  return repeats > 1 ? `${label} × ${repeats}` : label
}

/**
 * Asserts that the chain is the expected one, the error's is the same, text and data agree, and times fit.
 * @param {import('ava').ExecutionContext} t
 * @param {Story | undefined} story
 * @param {string[]} expected
 */
function tells (t, story, expected) {
  if (story === undefined) return t.fail('the case told nothing')
  t.deepEqual(lines(story.chain), expected)
  t.deepEqual(lines(story.ofError), expected, 'of the error')
  const { hops } = split(story.text)
  const shown = story.chain.slice(0, story.chain.findIndex(isRequest) + 1 || story.chain.length)
  const titles = hops.map((hop) => {
    return hop.title.split(/\s· /)[0].replace(/\s──$/, '').replace(/^on a connection opened by /, '')
  })
  t.deepEqual(titles, shown.map(title), 'titles in err.stack')
  for (const [i, { frames }] of hops.entries()) {
    for (const line of frames.split('\n').filter(Boolean)) t.regex(line, /^ {4}(at \S.*:\d+:\d+\)?|\.{3} as above: .*\w)$/)
    for (const name of story.chain[i].functions) t.true(frames.includes(name), `${name} in err.stack`)
  }
  t.false(/ at async .*\n(?:.*\n)* {2}── await [^\n]*\n {4}at async/.test(story.text), 'no "at async" twice')
  let younger = 0
  for (const { ageMs, origin, asyncId } of story.chain) {
    if (origin === 'worker') break // data of a message from another thread has no ages
    t.true(ageMs >= younger - 1 && ageMs <= story.elapsedMs + 1, `${ageMs} ms is no age`)
    t.is(origin, 'registered')
    t.true(Number.isInteger(asyncId) && asyncId > 0)
    younger = ageMs
  }
}

module.exports = { stories, tells, lines, major }
