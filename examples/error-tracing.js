'use strict'

// node -r longstack/register examples/error-tracing.js
//
// trace.onError receives every error that escapes an asynchronous event, with its context, before the
// process's own handlers. `true` means handled; anything else leaves Node's behaviour unchanged.

const net = require('node:net')
const trace = require('longstack')

process.on('uncaughtException', (error) => {
  console.log(`uncaughtException still gets the rest: ${error.message}`)
})

trace.onError(['TCP'], (error, context) => {
  const { label, type, asyncId } = context
  console.log(`Handled: ${error.message}\n  in ${label} (${type} ${asyncId}), made by`)
  console.log(`${trace.stack(context)}\n`)
  setTimeout(function later () { throw new Error('not of TCP') }, 10)
  return true
})

function connectToDatabase () {
  net.connect(1, '127.0.0.1') // refused, and nothing listens for 'error'
}

setTimeout(connectToDatabase, 10)
