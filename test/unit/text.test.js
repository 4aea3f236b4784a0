'use strict'

const test = require('ava')
const { clean, cutCredentials, cutUrlCredentials, formatDuration, shortFrame } = require('../../lib/text')

test('formatDuration uses the largest unit that is at least 1', (t) => {
  t.deepEqual([0, 0.4, 999.4, 1000, 59_940].map(formatDuration), ['0 ms', '0 ms', '999 ms', '1.0 s', '59.9 s'])
  t.deepEqual([60_000, 150_001, 3_600_000, 5_400_000].map(formatDuration), ['1 min', '3 min', '1.0 h', '1.5 h'])
})

test('shortFrame omits directories and columns', (t) => {
  t.is(shortFrame('load (/app/lib/pool.js:34:9) via pg'), 'load (pool.js:34) via pg')
  t.is(shortFrame('load (C:\\app\\pool.js:34:9)'), 'load (pool.js:34)')
  t.is(shortFrame('/app/lib/pool.js:34:9'), 'pool.js:34')
  t.is(shortFrame('node:net:12:3 via pg'), 'node:net:12 via pg')
  t.is(shortFrame('without a place'), 'without a place')
  t.is(shortFrame('async load (/app/pool.js:34:9)'), 'load (pool.js:34)')
  t.is(shortFrame('new Pool (/app/pool.js:34:9)'), 'new Pool (pool.js:34)')
  for (const name of ['<anonymous>', 'Object.<anonymous>', 'async <anonymous>']) {
    t.is(shortFrame(`${name} (/app (1)/pool.js:34:9)`), 'pool.js:34')
    t.is(shortFrame(`${name} (/app/pool.js:34:9) via pg`), 'pool.js:34 via pg')
  }
  t.is(shortFrame('async /app/pool.js:34:9'), 'pool.js:34')
  t.is(shortFrame('file:///app/pool.mjs:34:9'), 'pool.mjs:34')
})

test('clean replaces each control and bidi character by a question mark', (t) => {
  t.is(clean('a\nb\u001bc\u007f\u009b'), 'a?b?c??')
  t.is(clean('\u061c\u200e\u200f\u2028\u202e\u2066\u2069'), '???????')
})

test('clean keeps all other characters', (t) => {
  const harmless = 'tab-free ~ \u00a0é \u0436 中 \u{1f600} \u200d \u2027\u202f \u2065\u206a'
  t.is(clean(harmless), harmless)
})

test('cutCredentials removes user and password from a URL anywhere in a target', (t) => {
  const secret = 'alice:s3cret@'
  const kept = ['/', '*', '/x?a', 'db:443', '//host/x', '/fetch/https://host/x', '/@scope/package', '/users/a@b.c', '/@51.5,-0.1,14z',
    '/.pnpm/@babel+core@7.0.0/a', 'http://host:80/@user', '/a%40b', '/name%2F@scope%2Fpackage']
  for (const target of kept) t.is(cutCredentials(target), target)
  const cut = {
    [`${secret}db:443`]: 'db:443',
    [`//${secret}host/x`]: '//host/x',
    [`/fetch/https://${secret}host/x@y`]: '/fetch/https://host/x@y',
    [`/fetch/https:/${secret}host/x`]: '/fetch/https:/host/x',
    '/fetch/https:/token@host/x': '/fetch/https:/host/x',
    [`/connect/${secret}db`]: '/connect/db',
    [`/fetch/${encodeURIComponent(`https://${secret}host/x`)}`]: '/fetch/https%3A%2F%2Fhost%2Fx',
    [`/${encodeURIComponent(encodeURIComponent(`https://${secret}host/x`))}`]: '/https%253A%252F%252Fhost%252Fx',
    'http://p@ss@w:rd@host/x': 'http://host/x',
    'http:\\\\alice:s3cret@host\\x': 'http:\\\\host\\x'
  }
  for (const [target, expected] of Object.entries(cut)) t.is(cutCredentials(target), expected)
})

test('no target keeps the user or password of a URL', (t) => {
  let seed = 1
  const random = (/** @type {number} */ below) => {
    seed = Math.imul(seed, 1103515245) + 12345 & 0x7fffffff
    return (seed >> 8) % below
  }
  const pick = (/** @type {any} */ list) => list[random(list.length)]
  const word = (/** @type {string} */ letters) => Array.from({ length: 1 + random(8) }, () => pick(letters)).join('')
  const twice = (/** @type {string} */ text) => encodeURIComponent(encodeURIComponent(text))
  const escapes = [(/** @type {string} */ text) => text, encodeURIComponent, twice]
  const secrets = 'QXZ'
  for (let i = 0; i < 20_000; i++) {
    const userinfo = `${word(`${secrets}:@;=&!$.-`)}${word(secrets)}${pick(['', `:${word(`${secrets}@:%`)}${word(secrets)}`])}@`
    const scheme = pick(['http:', 'https:', 'HTTPS:', 'postgres:', 'redis+tls:'])
    const slashes = pick(['//', '/', '\\\\', '///'])
    const host = pick(['db', 'db:443', '[::1]:80', 'a.b.c'])
    const url = `${scheme}${slashes}${userinfo}${host}${pick(['', '/', '/a/b@c', '/a%40b'])}`
    const before = Array.from({ length: random(3) }, () => `/${word('abc@-_.')}`).join('')
    const targets = [`${before}/${pick(escapes)(url)}`, url, `${userinfo}${host}`, `${before}//${userinfo}${host}`]
    for (const target of targets) {
      const cut = cutCredentials(target)
      t.false(/[QXZ]/.test(cut), `${target} → ${cut}`)
      t.is(cutCredentials(cut), cut, target)
    }
    t.false(/[QXZ]/.test(cutUrlCredentials(`Failed to parse URL from ${url} (code 1)`)), url)
  }
})

test('cutUrlCredentials preserves frames and the rest of a message', (t) => {
  const text = 'Error: no a:b@c, mail a@b.c\n    at f (file:///C:/x@y/a.js:1:2)\n    at g (/app/node_modules/@a/b.js:1:2)'
  t.is(cutUrlCredentials(text), text)
  t.is(cutUrlCredentials('Invalid URL "http://a:b@c/x", see https://d.e/@f'), 'Invalid URL "http://c/x", see https://d.e/@f')
})
