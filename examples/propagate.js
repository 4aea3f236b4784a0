'use strict'

// node examples/propagate.js
//
// Events of async_hooks for one server connection: init when a resource is created, before and after around
// each run of its callback. The callbacks log with console.log, which itself creates resources; longstack's
// guard excludes these, so nothing recurses.

const net = require('node:net')
const trace = require('longstack').enable(['TCP'])

let indent = 0

function log (stage, { asyncId, triggerAsyncId, type, label }) {
  if (stage === 'after') indent -= 2
  const cause = stage === 'init' ? `, caused by ${triggerAsyncId}` : ''
  const name = label === type ? '' : ` (${label})`
  console.log(`${' '.repeat(indent)}${stage.padEnd(6)} ${type} ${asyncId}${cause}${name}`)
  if (stage === 'before') indent += 2
}

trace.hook({
  init: (context) => log('init', context),
  before: (context) => log('before', context),
  after: (context) => log('after', context)
})

const server = net.createServer((socket) => {
  console.log(`${' '.repeat(indent)}- the server's callback runs in context ${trace.current().asyncId}`)
  socket.end('hello')
  server.close()
})

server.listen(0, '127.0.0.1', () => {
  const { port } = server.address()
  net.connect(port, '127.0.0.1').on('data', (data) => {
    const { asyncId } = trace.current()
    console.log(`${' '.repeat(indent)}- the client got ${JSON.stringify(String(data))} in context ${asyncId}`)
  })
})
