'use strict'

// npm start
//
// A connection is refused, and its error has the whole asynchronous stack that led to it. Another connection
// stays open, and reports who opened it and which request uses it now.

const http = require('node:http')
const net = require('node:net')
const { styleText } = require('node:util')
const trace = require('longstack')

/**
 * Prints a title, and a stack or report.
 * @param {string} title
 * @param {unknown} value
 */
function print (title, value) {
  console.log(`\n${title}\n`)
  console.log(value)
}

/** Colours hops if stdout shows colours; for reports, console.log does it. @param {string} stack */
function coloured (stack) {
  return stack.replace(/^ {2}── .*$/gm, (hop) => styleText('cyan', hop))
}

function openPool () {
  net.connect(1, '127.0.0.1').on('error', (error) => {
    const title = '1. A refused connection. Without longstack you get only the first two lines.'
    print(title, coloured(error.stack))
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
  print("2. Why does this connection exist? trace.handles(['TCP']) in the client:", client)
  print('3. Its other end, trace.why(request.socket) in the server:', trace.why(request.socket))
  response.end()
  server.close()
})

server.listen(0, '127.0.0.1')
setTimeout(function refresh () { loadOrders(server.address().port) }, 300)
