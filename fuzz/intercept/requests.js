'use strict'

// What clients send: requests of HTTP/1, one after another, whole or damaged, perhaps another protocol after
// them.

const { fc } = require('../helpers/property')

const body = fc.string({ unit: fc.constantFrom('a', 'b', '\n', '\r', '0', 'x'), maxLength: 60 })
const target = fc.constantFrom('/', '/a', '/ab?c=1', '/slow', '/large')

/** @param {string} text */
const chunked = (text) => `${text.length.toString(16)}\r\n${text}\r\n0\r\nX-Trailer: ab\r\n\r\n`

const HEAD = 'HTTP/1.1\r\nHost: a\r\n'

const request = fc.oneof(
  target.map((path) => `GET ${path} ${HEAD}X-Name: ababa\r\n\r\n`),
  fc.tuple(target, body).map(([path, text]) =>
    `POST ${path} ${HEAD}Content-Length: ${text.length}\r\n\r\n${text}`),
  fc.tuple(target, body.filter((text) => text !== '')).map(([path, text]) =>
    `PUT ${path} ${HEAD}Transfer-Encoding: chunked\r\nTrailer: X-Trailer\r\n\r\n${chunked(text)}`))

const damaged = fc.constantFrom('\0\0', 'GET', 'GET / HTTP/9.9\r\n\r\n',
  `GET / ${HEAD}Content-Length: x\r\n\r\n`,
  `POST / ${HEAD}Content-Length: 50\r\n\r\nshort`, 'HTTP/1.1 200 OK\r\n\r\n')
const handedOver = fc.tuple(fc.boolean(), body).map(([isUpgrade, text]) => (isUpgrade
  ? `GET /up ${HEAD}Connection: Upgrade\r\nUpgrade: x\r\n\r\n${text}`
  : `CONNECT a:1 ${HEAD}\r\n${text}`))
const end = fc.oneof({ arbitrary: fc.constant(''), weight: 3 }, damaged, handedOver)

/** Bytes of a client, in the chunks in which they come. @returns {fc.Arbitrary<Buffer[]>} */
function chunks () {
  const requests = fc.array(request, { maxLength: 4 })
  const text = fc.tuple(requests, end).map(([list, last]) => [...list, last].join(''))
  return fc.tuple(text, fc.array(fc.nat(400), { maxLength: 8 })).map(([whole, places]) => {
    const bytes = Buffer.from(whole, 'latin1')
    const cuts = [...new Set([0, ...places.filter((place) => place < bytes.length), bytes.length])]
    cuts.sort((a, b) => a - b)
    return cuts.slice(1).map((to, index) => bytes.subarray(cuts[index], to))
  })
}

module.exports = { chunks }
