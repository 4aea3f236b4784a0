'use strict'

// Paths as parts of names: they contain no secret, and their number is limited.

const fc = require('fast-check')
const test = require('ava')
const { MAX_NAMES, nameOfMethod, nameOfPath } = require('../../lib/path-names')

/** @param {string} alphabet @param {number} min @param {number} [max] */
const from = (alphabet, min, max = min) => {
  return fc.array(fc.constantFrom(...alphabet), { minLength: min, maxLength: max }).map((chars) => chars.join(''))
}
const letters = 'abcdefghijklmnopqrstuvwxyz'
const digits = '0123456789'
const base64 = `${letters}${letters.toUpperCase()}${digits}-_`

/** What stands for one of many, or opens a door. */
const secrets = fc.oneof(
  fc.tuple(from(base64, 16, 60), from(base64, 22, 90), from(base64, 43)).map((jwt) => `eyJ${jwt.join('.')}`),
  from(base64, 24, 64),
  from(`${base64}+`, 22, 40).map((text) => encodeURIComponent(`${text}==`)),
  from(`${digits}abcdef`, 32, 64),
  fc.uuid(),
  from(digits, 3, 30),
  fc.tuple(from(letters, 1, 12), from(letters, 1, 12)).map(([name, host]) => `${name}@${host}.example`),
  fc.tuple(from(letters, 1, 12), from(letters, 1, 12)).map(([name, host]) => `${name}%40${host}.example`),
  from(base64, 1, 40).map((text) => `cart;jsessionid=${text}x`),
  from(base64, 1, 40).map((text) => `token=${text}x`)
)
const words = fc.constantFrom('api', 'v1', 'order-items', 'getAccountSettings') // few: names are bounded
const paths = fc.tuple(fc.array(words, { maxLength: 2 }), secrets, fc.array(words, { maxLength: 1 }))

test.serial('ordinary paths stay unchanged', (t) => {
  for (const path of ['/', '/api/v1/users/me/orders', '/jquery-3.7.1.min.js', '/oauth2/authorize', '/socket.io/',
    '/.well-known/acme-challenge', '/internationalization', '/getUserAccountSettings', '/how-to-write-good-code',
    '/chunks-of-64-KiB']) {
    t.is(nameOfPath(path), path)
  }
  t.is(nameOfPath('/users/42/orders/550e8400-e29b-41d4-a716-446655440000'), '/users/*/orders/*')
  t.is(nameOfPath('/order-98765/items'), '/order-*/items')
  t.is(nameOfPath('/cart;jsessionid=AB'), '/cart;*')
})

test.serial('names contain no token, session id, number or e-mail address', (t) => {
  fc.assert(fc.property(paths, ([before, secret, after]) => {
    const path = `/${[...before, secret, ...after].join('/')}`
    const value = secret.slice(secret.search(/[=;]/) + 1)
    const kept = nameOfPath(path).split('/').slice(1)
    const isGone = kept.length > before.length && !kept[before.length].includes(value.slice(0, 8))
    const isWhole = kept.length === before.length + 1 + after.length
    return isGone && isWhole && before.every((word, i) => kept[i] === word)
  }), { numRuns: 3000 })
  t.pass()
})

test.serial('the number of names is bounded, and existing ones remain', (t) => {
  const names = new Set()
  for (let i = 0; i < 20_000; i++) {
    const word = [...String(i)].map((digit) => letters[Number(digit)]).join('')
    names.add(nameOfPath(`/${word}/${word}`))
    t.true(nameOfPath(`/${'word'.repeat(i % 300)}`).length <= 200)
  }
  t.true(names.size <= MAX_NAMES + 1, `${names.size}`)
  t.true(names.has('*'))
  t.is(nameOfPath('/api/v1/users/me/orders'), '/api/v1/users/me/orders')
  t.is(nameOfPath('/never-seen'), '*')
  t.deepEqual(['GET', 'PROPFIND', 'xn--made-up'].map(nameOfMethod), ['GET', 'PROPFIND', 'HTTP'])
})
