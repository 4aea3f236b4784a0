'use strict'

const test = require('ava')
const { arrivedBy, isAccepted, labelOf } = require('../../../lib/stacks/labels')
const { contextOf, framesOf } = require('../../helpers/contexts')

const program = 'load (/app/a.js:1:2)'

/** @type {Array<[label: string, type: string, lines: string[], fields?: object]>} */
const labels = [
  ['setTimeout(20)', 'Timeout', ['setTimeout (node:timers:1:2)', program], { detail: '20' }],
  ['setInterval(20)', 'Timeout', ['setInterval (node:timers:1:2)', program], { detail: '20' }],
  ['socket.setTimeout(20)', 'Timeout', ['Socket.setTimeout (node:net:1:2)', program], { detail: '20' }],
  ['server.listen', 'Timeout', ['Server.listen (node:net:1:2)', program], { detail: '20' }],
  ['setTimeout(20)', 'Timeout', [], { detail: '20' }],
  ['setImmediate', 'Immediate', ['setImmediate (node:timers:1:2)', program]],
  ['process.nextTick', 'TickObject', ['process.nextTick (node:internal/process/task_queues:1:2)', program]],
  ['socket.end', 'TickObject', ['Socket.end (node:net:1:2)', program]],
  ['queueMicrotask', 'Microtask', ['queueMicrotask (node:internal/process/task_queues:1:2)', program]],
  ['net.connect(127.0.0.1:80)', 'TCPCONNECTWRAP', ['Object.connect (node:net:1:2)', program], { detail: '127.0.0.1:80' }],
  ['net.connect(127.0.0.1:80)', 'TCPCONNECTWRAP', [], { detail: '127.0.0.1:80' }],
  ['server.listen(:80)', 'TCPSERVERWRAP', ['Server.listen (node:net:1:2)', program], { detail: ':80' }],
  ['new TCP(:80)', 'TCPSERVERWRAP', [program], { detail: ':80' }],
  ['fs.readFile', 'FSREQCALLBACK', ['Object.readFile (node:fs:1:2)', program]],
  ['FSREQCALLBACK', 'FSREQCALLBACK', []],
  ['new AsyncResource(POOL)', 'POOL', ['new AsyncResource (node:async_hooks:1:2)', program]],
  ['POOL', 'POOL', [program]],
  ['AsyncResource.bind(job)', 'job', ['AsyncResource.bind (node:async_hooks:1:2)', program]],
  ['AsyncResource.bind', 'bound-anonymous-fn', ['AsyncResource.bind (node:async_hooks:1:2)', program]],
  ['trace.span(order)', 'Span', [program], { detail: 'order' }],
  ['trace.span(a b)', 'Span', [program], { detail: 'a\u0000\u202eb' }],
  [`trace.span(${'x'.repeat(60)})`, 'Span', [program], { detail: 'x'.repeat(61) }],
  ['made before longstack was enabled', 'TCPWRAP', [program], { origin: 'early' }],
  ['GET /', 'HTTPINCOMINGMESSAGE', [], { request: 'GET /' }],
  ['http connection accepted', 'HTTPINCOMINGMESSAGE', []],
  ['GET /, through gzip', 'HTTPINCOMINGMESSAGE', [], { request: 'GET /', detail: 'gzip' }],
  ['promise.then', 'PROMISE', ['Promise.then (<anonymous>)', program]],
  ['Promise.all', 'PROMISE', ['Promise.all (<anonymous>)', program]],
  ['Promise.reject', 'PROMISE', ['Function.reject (<anonymous>)', program]],
  ['await', 'PROMISE', [program], { awaited: true }],
  ['load()', 'PROMISE', [program]],
  ['async function', 'PROMISE', ['/app/a.js:1:2']],
  ['promise', 'PROMISE', ['Object.<anonymous> (/app/a.js:1:2)']],
  ['promise', 'PROMISE', ['open (node:fs:1:2)']],
  ['fs.promises.open', 'PROMISE', ['open (node:internal/fs/promises:1:2)', program]],
  ['import()', 'PROMISE', ['importModuleDynamicallyCallback (node:internal/modules/esm/utils:1:2)', program]]
]
for (const [label, type, lines, fields = {}] of labels) {
  test(`${type} ${JSON.stringify(fields)} of ${lines[0] ?? 'no frames'}: ${label}`, (t) => {
    t.is(labelOf(contextOf(type, fields), framesOf(...lines)), label)
  })
}

test('a connection below a server was accepted, if no code of the program ran', (t) => {
  const parent = contextOf('TCPSERVERWRAP')
  const core = framesOf('onconnection (node:net:1:2)')
  t.is(labelOf(contextOf('TCPWRAP', { parent }), core), 'connection accepted')
  t.is(labelOf(contextOf('TLSWRAP', { parent }), []), 'TLS connection accepted')
  t.false(isAccepted(contextOf('TCPWRAP', { parent }), framesOf(program)))
  t.false(isAccepted(contextOf('TCPWRAP', { parent: contextOf('Timeout') }), core))
  t.false(isAccepted(contextOf('Timeout', { parent }), core))
  t.false(isAccepted(contextOf('TCPWRAP'), core))
})

test('an HTTP/2 session belongs to a server, a stream to a session', (t) => {
  const server = contextOf('TCPSERVERWRAP')
  const connection = contextOf('TCPWRAP', { parent: server })
  const session = contextOf('HTTP2SESSION', { parent: connection })
  t.is(arrivedBy(session, []), 'HTTP/2 session accepted')
  t.is(arrivedBy(contextOf('HTTP2STREAM', { parent: session, request: 'GET /' }), []), 'GET /')
  t.is(arrivedBy(contextOf('HTTP2STREAM', { parent: session }), []), 'HTTP/2 stream')
  t.is(arrivedBy(contextOf('HTTP2STREAM', { parent: session }), framesOf(program)), undefined)
  t.is(arrivedBy(contextOf('HTTP2SESSION', { parent: contextOf('TCPWRAP') }), []), undefined)
})
