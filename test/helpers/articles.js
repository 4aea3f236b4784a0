'use strict'

// Common checks of the harnesses in bench/articles: tracing must not change their results in any mode, and
// their figures must have the shape that the page of claims reads.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { node, register, root } = require('./run')
const { recordsOf } = require('./records')

const OUTCOMES = ['as said', 'no difference', 'other way round']

/** @typedef {import('ava').ExecutionContext} T */

/** @param {string} name of a directory in bench/articles */
const harness = (name) => path.join(root, 'bench', 'articles', name, 'index.js')

/**
 * Runs a harness for its results, bare and traced in all modes, and asserts that they are equal byte for
 * byte.
 * @param {T} t
 * @param {string} name
 * @returns {Promise<{ answers: string, spans: any[] }>} spans: of the run that wrote spans
 */
async function equalAnswers (t, name) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  const spans = path.join(directory, 'spans.jsonl')
  const bare = await node([harness(name), '--answers'])
  t.is(bare.stderr, '')
  t.is(bare.code, 0)
  const modes = [
    { LONGSTACK_SPANS: spans, LONGSTACK_BLOCKED: '20' },
    { LONGSTACK_CAPTURE: 'js' }
  ]
  for (const env of modes) {
    const traced = await node(['-r', register, harness(name), '--answers'], { env })
    t.is(traced.stdout, bare.stdout, JSON.stringify(env))
    t.is(traced.code, 0, JSON.stringify(env))
    // A slow machine reports blocking callbacks.
    const lines = traced.stderr.split('\n').filter((line) => line !== '' && !/^(longstack: | )/.test(line))
    t.deepEqual(lines, [], JSON.stringify(env))
  }
  const text = fs.existsSync(spans) ? fs.readFileSync(spans, 'utf8').trim() : ''
  return { answers: bare.stdout, spans: recordsOf(text) }
}

/**
 * Runs a harness for its figures, and asserts that they have the shape of claims.
 * @param {T} t
 * @param {string} name
 */
async function goodFigures (t, name) {
  const { stdout, stderr, code } = await node([harness(name), '--json', '--quick'])
  t.is(stderr, '')
  t.is(code, 0)
  const { claims, tables = [] } = JSON.parse(stdout)
  t.is(new Set(claims.map(({ id }) => id)).size, claims.length)
  for (const { id, article, saidRatio, off, on, why, ...claim } of claims) {
    t.regex(id, /^[a-z0-9]+(-[a-z0-9]+)*$/)
    t.regex(article, /\(.+, \d{4}.*\)/)
    for (const key of ['said', 'a', 'b', 'unit', 'means']) t.true(claim[key]?.length > 0, `${id}: ${key}`)
    t.true(saidRatio === null || saidRatio > 1, id)
    for (const value of [off.a, off.b, on.a, on.b]) t.true(Number.isFinite(value) && value > 0, id)
    const outcomes = Object.keys(why)
    t.true(outcomes.length > 0, id)
    t.deepEqual(outcomes.filter((outcome) => !OUTCOMES.includes(outcome)), [])
  }
  for (const { title, heading, rows } of tables) {
    t.true(title.length > 0 && rows.length > 0)
    t.true(rows.every((row) => row.length === heading.length))
    t.true(rows.flat().every((cell) => typeof cell === 'string'))
  }
  return { claims, tables }
}

/**
 * Asserts that a text matches all patterns in this order.
 * @param {T} t
 * @param {string} text
 * @param {...(RegExp | string)} patterns
 */
function inOrder (t, text, ...patterns) {
  let position = 0
  for (const pattern of patterns) {
    const match = new RegExp(pattern, 'm').exec(text.slice(position))
    if (match === null) return t.fail(`${pattern} is not in\n${text.slice(position)}`)
    position += match.index + match[0].length
  }
  t.pass()
}

module.exports = { equalAnswers, goodFigures, harness, inOrder }
