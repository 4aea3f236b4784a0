'use strict'

const test = require('ava')
const { formatHops, placeOf, separator } = require('../../../lib/format/hops')

const hop = (fields) => ({ label: 'setTimeout(5)', type: 'Timeout', ageMs: 7, repeats: 1, origin: 'registered', lines: [], ...fields })

test('separator: label, type and age', (t) => {
  t.is(separator(hop({})), '  ── setTimeout(5) · Timeout · 7 ms earlier ──')
  t.is(separator(hop({ repeats: 3 })), '  ── setTimeout(5) × 3 · Timeout · 7 ms earlier ──')
  t.is(separator(hop({ label: 'Timeout' })), '  ── Timeout · 7 ms earlier ──')
})

test('separator omits an unknown or unwanted age', (t) => {
  t.is(separator(hop({ ageMs: NaN })), '  ── setTimeout(5) · Timeout ──')
  t.is(separator(hop({}), undefined, { timeless: true }), '  ── setTimeout(5) · Timeout ──')
})

test('separator shows how a hop is known', (t) => {
  t.regex(separator(hop({ origin: 'settled' })), / earlier · settled here ──$/)
  t.regex(separator(hop({ origin: 'reader' })), / earlier · reader: only where \.stack was read is known ──$/)
  t.regex(separator(hop({ origin: 'awaited' })), /^ {2}── awaited by setTimeout\(5\) /)
})

test('separator after a hop of the same origin has a short remark or none', (t) => {
  t.regex(separator(hop({ origin: 'reader' }), hop({ origin: 'reader' })), / earlier · reader ──$/)
  for (const origin of ['registered', 'rejected', 'thrown', 'awaited']) {
    t.is(separator(hop({ origin }), hop({ origin })), '  ── setTimeout(5) · Timeout · 7 ms earlier ──')
  }
})

test('separator replaces control characters of labels and types', (t) => {
  t.is(separator(hop({ label: 'GET /\u001b[2J', type: 'A\nB' })), '  ── GET /?[2J · A?B · 7 ms earlier ──')
})

test('formatHops: each separator with its frames', (t) => {
  const hops = [hop({ lines: ['    at a', '    at b'] }), hop({ label: 'Timeout', lines: [] })]
  t.is(formatHops(hops, { timeless: true }), '  ── setTimeout(5) · Timeout ──\n    at a\n    at b\n  ── Timeout ──')
  t.is(formatHops([]), '')
})

test('separator shows the type beside a label only with internals', (t) => {
  t.is(separator(hop({ short: [] })), '  ── setTimeout(5) · 7 ms earlier ──')
  t.is(separator(hop({ short: [] }), undefined, { whole: true }), '  ── setTimeout(5) · Timeout · 7 ms earlier ──')
  t.is(separator(hop({ label: 'Timeout', short: [], ageMs: NaN })), '  ── Timeout ──')
})

test('formatHops has the short lines, and nothing that led to a request\'s server', (t) => {
  const request = hop({ label: 'GET /', type: 'HTTPINCOMINGMESSAGE', short: [] })
  const listening = hop({ label: 'server.listen', type: 'TCPSERVERWRAP', lines: ['    at b'], short: ['    at b'], isBehindRequest: true })
  const hops = [hop({ lines: ['    at a', '    at p'], short: ['    at a', '    ... 1 frame in p'] }), request, listening]
  t.is(formatHops(hops, { timeless: true }), '  ── setTimeout(5) ──\n    at a\n    ... 1 frame in p\n  ── GET / ──')
  t.regex(formatHops(hops, { whole: true }), /Timeout · 7 ms earlier ──\n {4}at a\n {4}at p\n.*HTTPINCOMINGMESSAGE.*\n.*TCPSERVERWRAP.*\n {4}at b$/)
})

test('placeOf is the program\'s innermost frame before any package, up to the request', (t) => {
  const driver = hop({ lines: ['    at connect (/app/node_modules/pg/connection.js:45:1)'] })
  const own = hop({ lines: ['    at warmCache (/app/db.js:3:9)'], place: 'warmCache (/app/db.js:3:9)' })
  const unnamed = hop({ lines: ['    at /app/db.js:4:9', '    at run (/app/db.js:9:1)'], place: '/app/db.js:4:9' })
  const request = hop({ isRequest: true, lines: [] })
  t.is(placeOf([driver, own]), 'warmCache (db.js:3)')
  t.is(placeOf([driver, unnamed, own]), 'db.js:4')
  t.is(placeOf([driver, request, own]), 'connect (connection.js:45)')
  t.is(placeOf([request, own]), undefined)
})
