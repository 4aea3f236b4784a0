'use strict'

// node examples/subsystem-filter.js
//
// trace.enable(['TCP']): only connections get a stack and reach hooks. All other resources still pass the
// context on: the chain below spans a lookup, a promise and a timer, although none of them was recorded.

const dns = require('node:dns')
const net = require('node:net')
const trace = require('longstack')

try {
  trace.enable(['TPC'])
} catch (error) {
  console.log(`A wrong name is refused at once:\n\n  ${error.code}: ${error.message.split(' A filter')[0]}\n`)
}

trace.enable(['TCP'])

const counts = {}
trace.hook({ init: ({ type }) => { counts[type] = (counts[type] ?? 0) + 1 } })

const backend = net.createServer((socket) => socket.end()).listen(0, '127.0.0.1')

const proxy = net.createServer(async function forward (socket) {
  const { address } = await dns.promises.lookup('127.0.0.1')
  setTimeout(function dial () {
    const upstream = net.connect(backend.address().port, address)
    upstream.resume().on('close', () => report(upstream, socket))
  }, 5)
})

function report (upstream, socket) {
  console.log(`The chain of the connection to the backend:\n\n${trace.stack(upstream)}`)
  console.log(`\nResources that hooks saw: ${JSON.stringify(counts)}.`)
  console.log(`Stacks captured: ${trace.stats().captured}.`)
  socket.end()
  proxy.close()
  backend.close()
}

proxy.listen(0, '127.0.0.1', () => net.connect(proxy.address().port, '127.0.0.1').resume())
