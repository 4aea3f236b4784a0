'use strict'

// node -r longstack/register examples/error-tracing.js
//
// trace.onError sees every error that escapes an asynchronous event, with its context, before the process's own
// handlers do. `true` means handled; anything else leaves Node's behaviour as it is.

const net = require('node:net')
const trace = require('longstack')

process.on('uncaughtException', (error) => console.log(`uncaughtException still gets the rest: ${error.message}`))

trace.onError(['TCP'], (error, context) => {
  console.log(`Handled: ${error.message}\n  in ${context.label} (${context.type} ${context.asyncId}), which came\n${trace.stack(context)}\n`)
  setTimeout(function later () { throw new Error('not of TCP') }, 10)
  return true
})

function connectToDatabase () {
  net.connect(1, '127.0.0.1') // nobody listens, and nobody listens for 'error' either
}

setTimeout(connectToDatabase, 10)
