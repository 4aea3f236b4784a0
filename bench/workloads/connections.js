'use strict'

const net = require('node:net')
const { serve } = require('../child')

serve(net.createServer((socket) => {
  socket.on('error', () => {})
  socket.end('x')
}))
