'use strict'

// Counts the resources of a small program and the time of their callbacks, in C: no JavaScript object is
// created per event.
//
//     node examples/native-counter/build.js && node examples/native-counter

const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const trace = require('longstack')

const counter = require(process.env.COUNTER ?? path.join(__dirname, 'counter.node'))

trace.enable()
counter.start(trace.nativeHooks().api)

/** @param {number} ms */
function work (ms) {
  const end = performance.now() + ms
  while (performance.now() < end);
}

const server = http.createServer(async (request, response) => {
  await fs.promises.readFile(__filename)
  work(5)
  response.end('done\n')
})

server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  http.get({ host: '127.0.0.1', port }, (response) => {
    response.resume().on('end', () => {
      server.close()
      setTimeout(work, 10, 20)
    })
  })
})

process.on('exit', () => {
  const rows = Object.entries(counter.report()).sort(([, a], [, b]) => b.ms - a.ms)
  counter.stop()
  for (const [type, { made: count, runs, ms }] of rows) {
    console.log(`${type.padEnd(20)} ${count} made, ${runs} runs, ${ms.toFixed(1)} ms`)
  }
})
