'use strict'

// npm start: the main job in a second. A connection is refused, and the error tells the whole way to it; another
// one lives, and tells who opened it and who uses it now.

const http = require('node:http')
const net = require('node:net')
const trace = require('longstack')
const { paint } = require('../lib/format/paint')

const print = (title, text) => console.log(`\n${title}\n\n${paint(text, 'stdout')}`)

function openPool () {
  net.connect(1, '127.0.0.1').on('error', (error) => {
    print('1. A refused connection. Node alone says the first two lines.', error.stack)
  })
}

setTimeout(function warmUp () { openPool() }, 100)

const agent = new http.Agent({ keepAlive: true })

async function loadOrders (port) {
  return http.get({ port, host: '127.0.0.1', agent, path: '/orders' }, (response) => {
    response.resume().on('end', () => agent.destroy())
  })
}

const server = http.createServer(function answer (request, response) {
  const [client] = trace.handles(['TCP']).filter((handle) => handle.side === 'client')
  print("2. Why does this connection exist? trace.handles(['TCP']) in the client:", String(client))
  print('3. And its other end, trace.why(request.socket) in the server:', String(trace.why(request.socket)))
  response.end()
  server.close()
})

server.listen(0, '127.0.0.1')
setTimeout(function refresh () { loadOrders(server.address().port) }, 300)
