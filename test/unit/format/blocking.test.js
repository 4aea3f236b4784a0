'use strict'

const test = require('ava')
const { BlockingTexts } = require('../../../lib/format/blocking')

/** @param {string} caller @param {object} [others] */
function event (caller, others) {
  const frame = (/** @type {string} */ functionName) => ({ functionName, fileName: '/app/hash.js', lineNumber: 3, columnNumber: 1, kind: 'user' })
  return /** @type {any} */ ({ ms: 98, stillRunning: false, samples: 1, frames: [frame('hash'), frame(caller)], stack: '    at hash (/app/hash.js:3:1)', chain: [], ...others })
}

test('the first, 10th, 100th and 1,000th report is full', (t) => {
  const texts = new BlockingTexts()
  const all = Array.from({ length: 1000 }, () => texts.format(event('a'), { name: 'GET /a' }))
  t.deepEqual(all.flatMap((text, i) => text.includes('\n') ? i + 1 : []), [1, 10, 100, 1000])
  t.is(all[12], 'the event loop was blocked again for 98 ms by GET /a, the 13th time, at hash (hash.js:3)')
  t.regex(all[99], /^the event loop was blocked again for 98 ms by GET \/a, the 100th time\n {4}at hash/)
})

test('another caller is another place', (t) => {
  const texts = new BlockingTexts()
  t.regex(texts.format(event('a'), undefined), /\n {4}at hash/)
  t.regex(texts.format(event('b'), undefined), /\n {4}at hash/)
  t.notRegex(texts.format(event('b'), undefined), /\n/)
})

test('a report made during the callback is a line at its end, and counts once', (t) => {
  const texts = new BlockingTexts()
  t.regex(texts.format(event('a', { stillRunning: true, startUnixMs: 5 }), undefined), /\n {4}at hash/)
  t.is(texts.format(event('a', { startUnixMs: 5 }), undefined), 'the event loop was blocked for 98 ms, at hash (hash.js:3)')
  t.regex(texts.format(event('a', { startUnixMs: 9 }), undefined), /again for 98 ms, the 2nd time/)
})

test('unknown places are reported in full', (t) => {
  const texts = new BlockingTexts()
  const unknown = event('a', { frames: [], stack: '  ── setTimeout(1) ──' })
  t.deepEqual([1, 2].map(() => texts.format(unknown, undefined).split('\n').length), [2, 2])
})
