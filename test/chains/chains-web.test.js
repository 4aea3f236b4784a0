'use strict'

const test = require('ava')
const { stories, tells } = require('../helpers/stories')

// Chain of each case in test/fixtures/chains/web.js: newest hop first, each as label | functions.
/** @type {Record<string, string[]>} */
const expected = {
  'http.served': [
    'GET / | ',
    'server.listen(127.0.0.1:PORT) | listen < http'
  ],
  'http.body': [
    'stream.resume | serve',
    'GET / | ',
    'server.listen(127.0.0.1:PORT) | listen < http'
  ],
  'http.answering': [
    'setTimeout(5) | query < read',
    'stream.resume | serve',
    'GET / | ',
    'server.listen(127.0.0.1:PORT) | listen < http'
  ],
  'http.answered': [
    'http.get | request',
    'server.listen | listen < http'
  ],
  'http.ended': [
    'stream.resume | answered',
    'http.get | request',
    'server.listen | listen < http'
  ],
  post: [
    'stream.on | answered',
    'http.request | request',
    'server.listen | listen < post'
  ],
  httpRefused: [
    'http.get(127.0.0.1:1) | ask < closed',
    'server.close | listening',
    'server.listen | httpRefused'
  ],
  keepAlive: [
    'http.get | get < second',
    'setTimeout(5) | pause',
    'stream.resume | firstAnswer',
    'http.get | get < first',
    'server.listen | listen < keepAlive'
  ],
  'keepAlive.end': [
    'stream.resume | secondAnswer',
    'http.get | get < second',
    'setTimeout(5) | pause',
    'stream.resume | firstAnswer',
    'http.get | get < first',
    'server.listen | listen < keepAlive'
  ],
  queued: [
    'http.get | get < second < both',
    'server.listen | listen < queued'
  ],
  'https.served': [
    'GET / | ',
    'TLS connection accepted | ',
    'server.listen(127.0.0.1:PORT) | listen < https'
  ],
  'https.answered': [
    'https.get | request',
    'server.listen | listen < https'
  ],
  'fetch.response': [
    'await | ask',
    'server.listen | listen < fetch'
  ],
  'fetch.body': [
    'await | ask',
    'server.listen | listen < fetch'
  ],
  fetchThen: [
    'promise.then | ask',
    'server.listen | listen < fetchThen'
  ],
  fetchRefused: [
    'promise.then | ask < closed',
    'server.close | listening',
    'server.listen | fetchRefused'
  ],
  'http2.connected': [
    'http2.connect(127.0.0.1:PORT) | connect',
    'server.listen | listen < http2'
  ],
  'http2.served': [
    'GET / | ',
    'HTTP/2 session accepted | ',
    'server.listen(127.0.0.1:PORT) | listen < http2'
  ],
  'http2.answering': [
    'setTimeout(1) | serve',
    'GET / | ',
    'HTTP/2 session accepted | ',
    'server.listen(127.0.0.1:PORT) | listen < http2'
  ],
  'http2.closed': [
    'GET / | ',
    'HTTP/2 session accepted | ',
    'server.listen(127.0.0.1:PORT) | listen < http2'
  ],
  http2Secure: [
    'GET / | ',
    'HTTP/2 session accepted | ',
    'TLS connection accepted | ',
    'server.listen(127.0.0.1:PORT) | listen < http2Secure'
  ],
  'http2.answered': [
    'session.request | request < connect',
    'server.listen | listen < http2'
  ],
  'http2.ended': [
    'session.request | request < connect',
    'server.listen | listen < http2'
  ]
}

const told = stories('web')

for (const [name, story] of Object.entries(expected)) {
  test(`http, fetch, http2: ${name}`, async (t) => {
    tells(t, (await told)[name], story)
  })
}

test('the table has every case', async (t) => {
  t.deepEqual(Object.keys(await told).sort(), Object.keys(expected).sort())
})
