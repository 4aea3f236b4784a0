'use strict'

// The program of the README: a connection that is refused.

const net = require('node:net')

function openPool () {
  net.connect(5432, '127.0.0.1')
}

setTimeout(function warmUp () { openPool() }, 100)
