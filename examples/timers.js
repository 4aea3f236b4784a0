'use strict'

// node -r longstack/register examples/timers.js
//
// A stack that starts at the event loop explains nothing; the hops after it do. A loop is one hop with a
// count.

function poll (remaining) {
  if (remaining === 0) throw new Error('gave up')
  setTimeout(poll, 1, remaining - 1)
}

function startPolling () {
  setImmediate(() => poll(100))
}

process.on('uncaughtException', (error) => {
  console.log(error.stack)
})

startPolling()
