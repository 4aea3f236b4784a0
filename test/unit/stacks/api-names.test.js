'use strict'

const test = require('ava')
const { apiName } = require('../../../lib/stacks/api-names')
const { framesOf } = require('../../helpers/contexts')

const program = 'load (/app/a.js:1:2)'

/** @type {Array<[line: string, name: string | undefined]>} */
const calls = [
  ['setTimeout (node:timers:1:2)', 'timers.setTimeout'],
  ['Object.readFile (node:fs:1:2)', 'fs.readFile'],
  ['Object.open (node:internal/fs/promises:1:2)', 'fs.promises.open'],
  ['async open (node:internal/fs/promises:1:2)', 'fs.promises.open'],
  ['Object.query [as resolve4] (node:internal/dns/callback_resolver:1:2)', 'dns.resolve4'],
  ['Socket.connect (node:net:1:2)', 'socket.connect'],
  ['Server.listen (node:net:1:2)', 'server.listen'],
  ['ClientRequest.end (node:_http_outgoing:1:2)', 'request.end'],
  ['Object.request (node:_http_client:1:2)', 'http.request'],
  ['Proxy.connect (node:net:1:2)', 'net.connect'],
  ['Zlib.init (node:zlib:1:2)', 'stream.init'],
  ['process.nextTick (node:internal/process/task_queues:1:2)', 'nextTick'],
  ['new Worker (node:internal/worker:1:2)', 'new Worker'],
  ['Socket.<anonymous> (node:net:1:2)', undefined],
  ['node:net:1:2', undefined],
  ['Promise.then (<anonymous>)', undefined]
]
for (const [line, name] of calls) {
  test(`${line} is ${name}`, (t) => {
    t.is(apiName(framesOf(line, program)), name)
  })
}

test('the call is the one next to the program\'s frames', (t) => {
  t.is(apiName(framesOf('Socket.connect (node:net:1:2)', 'Object.connect (node:net:1:2)', program)), 'net.connect')
  t.is(apiName(framesOf('Object.a (node:fs:1:2)', program, 'Object.b (node:fs:1:2)')), 'fs.a')
})

test('code below node_modules may be the program', (t) => {
  t.is(apiName(framesOf('Object.stat (node:fs:1:2)', 'q (/app/node_modules/pg/a.js:1:2)', program)), 'fs.stat')
})

test('without a frame of the program there is no call', (t) => {
  t.is(apiName(framesOf('Object.readFile (node:fs:1:2)')), undefined)
  t.is(apiName(framesOf(program)), undefined)
  t.is(apiName([]), undefined)
})
