'use strict'

// What the numbered examples have in common: answers that tracing must not change, in whatever mode, and
// figures that the page of claims reads.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { node, register } = require('./run')

/** @typedef {import('ava').ExecutionContext} T */

/** The ways to trace that the answers are compared under. @param {string} folder for the spans */
const tracings = (folder) => ({
  traced: {},
  spans: { LONGSTACK_SPANS: path.join(folder, 'spans.jsonl') },
  blocked: { LONGSTACK_BLOCKED: '20' },
  light: { LONGSTACK_MODE: 'light' },
  js: { LONGSTACK_CAPTURE: 'js' }
})

/**
 * Runs an example for its answers, bare and traced, and asserts that they are the same byte for byte.
 * @param {T} t
 * @param {string} file
 * @returns {Promise<string>} the answers
 */
async function sameAnswers (t, file) {
  const bare = await node([file, '--answers'])
  t.is(bare.stderr, '')
  t.is(bare.code, 0)
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  try {
    for (const [name, env] of Object.entries(tracings(folder))) {
      const traced = await node(['-r', register, file, '--answers'], { env })
      t.is(traced.stdout, bare.stdout, name)
      t.is(traced.code, 0, name)
      // Long runs are reported on stderr, by the option's own will.
      if (name === 'blocked') t.deepEqual(traced.stderr.split('\n').filter((line) => /^[a-z]/.test(line) && !/^longstack: the event loop (is|was) blocked/.test(line)), [])
      else t.is(traced.stderr, '', name)
    }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
  return bare.stdout
}

/**
 * Runs an example for its figures, and asserts that they have the shape of claims.
 * @param {T} t
 * @param {string} file
 */
async function goodClaims (t, file) {
  const { stdout, stderr, code } = await node([file, '--json', '--quick'])
  t.is(stderr, '')
  t.is(code, 0)
  const { claims, tables = [] } = JSON.parse(stdout)
  for (const claim of claims) {
    t.regex(claim.id, /^[a-z0-9]+(-[a-z0-9]+)*$/)
    t.regex(claim.article, /\(.+, \d{4}\)/)
    for (const name of ['said', 'a', 'b', 'unit', 'means']) t.true(typeof claim[name] === 'string' && claim[name].length > 0, `${claim.id}: ${name}`)
    t.true(claim.saidRatio === null || claim.saidRatio > 1, claim.id)
    for (const state of ['off', 'on']) for (const which of ['a', 'b']) t.true(claim[state][which] > 0 && Number.isFinite(claim[state][which]), `${claim.id}: ${state} ${which}`)
    t.true(Object.keys(claim.why).length > 0 && Object.keys(claim.why).every((key) => ['as said', 'no difference', 'other way round'].includes(key)), claim.id)
  }
  for (const { title, heading, rows } of tables) {
    t.true(title.length > 0 && rows.length > 0)
    for (const row of rows) t.true(row.length === heading.length && row.every((cell) => typeof cell === 'string'), title)
  }
  return { claims, tables }
}

module.exports = { sameAnswers, goodClaims }
