'use strict'

const test = require('ava')
const { report } = require('../../../../report/render/text')

const tree = { name: 'all requests', kind: /** @type {const} */ ('root'), ms: 0, count: 0, children: [] }

/** @param {any[]} verdict @returns {any} a model of nothing but its verdict */
function modelOf (verdict) {
  return {
    convoys: [],
    ...{ files: [], notes: [], routes: [], failures: [], slowest: [], blockers: [], open: [], openCount: 0 },
    ...{ traces: {}, span: undefined, series: undefined, tree, slowTree: tree, verdict }
  }
}

const POOL = {
  rule: 'pool',
  route: 'GET /report',
  at: 'Pool.query (/app/lib/pool.js:34:9)',
  lostMs: 900,
  share: 0.62,
  sentence: 'GET /report waits for a free connection 62 % of its time: 3 connections, 5 queries a request.',
  advice: 'Let the pool have more connections, or ask for less of them at a time.',
  figures: {}
}
const BLOCKER = { ...POOL, rule: 'blocker', at: '/app/lib/hash.js:3:1', sentence: 'hash.js:3 blocked the event loop.', advice: '' }

test('the verdict comes first: numbered sentences, each with its place and advice', (t) => {
  const text = report(modelOf([POOL, BLOCKER]), { width: 60 })
  t.true(text.includes(`
Verdict
  1. GET /report waits for a free connection 62 % of its
     time: 3 connections, 5 queries a request.
     at Pool.query (pool.js:34)
     Let the pool have more connections, or ask for less of
     them at a time.
  2. hash.js:3 blocked the event loop.
`), text)
})

test('a place named in the sentence is not repeated, even if its line has several and the name a column', (t) => {
  const site = { at: 'send (/app/lib/mail.js:3:9)' }
  const other = { ...BLOCKER, at: 'send (/app/lib/mail.js:3:40)', sentence: 'send (mail.js:3) blocked the event loop.' }
  const tree = { ...modelOf([]).tree, children: [{ name: site.at, kind: 'wait', ms: 1, count: 1, at: site.at, children: [] }] }
  const text = report({ ...modelOf([other, { ...other, at: site.at }]), tree }, { width: 80 })
  t.is(text.match(/mail\.js:3/g)?.length, 2, text)
})

test('the advice is dim, and a hostile sentence is only text', (t) => {
  const plain = (/** @type {string} */ text) => text
  const colours = { bold: plain, red: plain, green: plain, yellow: plain, cyan: plain, dim: (/** @type {string} */ text) => `<${text}>` }
  const text = report(modelOf([{ ...POOL, sentence: 'a\u001b[2Jb\n\u202ec', at: undefined }]), { colours, width: 120 })
  t.true(text.includes(`
  1. a?[2Jb??c
<     Let the pool have more connections, or ask for less of them at a time.>
`), text)
})

test('findings beyond the limit are counted', (t) => {
  const text = report(modelOf(Array.from({ length: 9 }, () => POOL)))
  t.regex(text, /^ {2}5\. [^]*\n {2}… 4 more$/m)
  t.notRegex(text, /^ {2}6\. /m)
})
