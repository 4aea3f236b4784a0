'use strict'

// node -r longstack/register examples/why-connection.js
//
// An accepted and an outgoing connection describe themselves: what they are, who opened them, who uses them.

const net = require('node:net')
const trace = require('longstack')

const server = net.createServer(function greet (socket) {
  socket.on('data', () => {
    console.log(`The accepted connection:\n\n${trace.why(socket)}\n`)
    socket.end('welcome')
    server.close()
  })
})

function startService () {
  server.listen(0, '127.0.0.1', () => setTimeout(callService, 20))
}

function callService () {
  const socket = net.connect(server.address().port, '127.0.0.1')
  socket.write('hello')
  socket.on('data', () => console.log(`The outgoing connection:\n\n${trace.why(socket)}\n`))
  socket.on('close', () => console.log(`The same, closed:\n\n${trace.why(socket)}`))
}

startService()
