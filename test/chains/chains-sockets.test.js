'use strict'

const test = require('ava')
const { stories, tells } = require('../helpers/stories')

// Chain of each case in test/fixtures/chains/sockets.js: newest hop first, each as label | functions.
/** @type {Record<string, string[]>} */
const expected = {
  'net.listening': ['server.listen | listen < net'],
  'net.accepted': ['server.listen(127.0.0.1:PORT) | listen < net'],
  'net.connected': [
    'net.connect(127.0.0.1:PORT) | connect < listening',
    'server.listen | listen < net'
  ],
  'net.serverData': [
    'connection accepted | ',
    'server.listen(127.0.0.1:PORT) | listen < net'
  ],
  'net.answered': [
    'socket.write | connected',
    'net.connect(127.0.0.1:PORT) | connect < listening',
    'server.listen | listen < net'
  ],
  'net.closed': [
    'socket.write | connected',
    'net.connect(127.0.0.1:PORT) | connect < listening',
    'server.listen | listen < net'
  ],
  byName: [
    'net.connect(127.0.0.1:PORT) | connect < listening',
    'server.listen | listen < byName'
  ],
  refused: [
    'net.connect(127.0.0.1:1) | openPool',
    'setTimeout(3) | warmUp < closed',
    'server.close | listening',
    'server.listen | refused'
  ],
  unknownHost: ['net.connect(no-such-host.invalid) | connect < unknownHost'],
  timedOut: [
    'socket.setTimeout(15) | connect',
    'server.listen | listen < timedOut'
  ],
  'pipe.accepted': ['server.listen | listen < pipe'],
  'pipe.connected': [
    'net.connect(DIR/s) | connect',
    'server.listen | listen < pipe'
  ],
  'pipe.data': [
    'net.connect(DIR/s) | connect',
    'server.listen | listen < pipe'
  ],
  'tls.secured': [
    'tls.connect | connect',
    'server.listen | listen < tls'
  ],
  'tls.accepted': [
    'TLS connection accepted | ',
    'server.listen(127.0.0.1:PORT) | listen < tls'
  ],
  'tls.serverData': [
    'TLS connection accepted | ',
    'server.listen(127.0.0.1:PORT) | listen < tls'
  ],
  'tls.answered': [
    'socket.write | secured',
    'tls.connect | connect',
    'server.listen | listen < tls'
  ],
  'udp.bound': ['socket.bind | open < udp'],
  'udp.sent': [
    'socket.send | send < bound',
    'socket.bind | open < udp'
  ],
  'udp.got': ['dgram.createSocket | open < udp'],
  'udp.closed': [
    'socket.close | got',
    'dgram.createSocket | open < udp'
  ],
  lookup: ['dns.lookup(localhost) | start < lookup'],
  lookupMissing: ['dns.lookup(no-such-host.invalid) | start < lookupMissing'],
  lookupPromise: ['await | start < lookupPromise'],
  resolve: ['resolver.resolve4(no-such-host.invalid) | start < resolve'],
  resolvePromise: ['promise.then | start < resolvePromise'],
  lookupService: ['dns.lookupService(127.0.0.1:22) | start < lookupService']
}

const told = stories('sockets')

for (const [name, story] of Object.entries(expected)) {
  test(`sockets: ${name}`, async (t) => {
    tells(t, (await told)[name], story)
  })
}

test('the table has every case', async (t) => {
  t.deepEqual(Object.keys(await told).sort(), Object.keys(expected).sort())
})
