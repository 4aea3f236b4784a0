'use strict'

// Prints the output of each server for one request, three sequential ones, three at once, and one sent byte
// by byte.

const { once } = require('node:events')
const net = require('node:net')
const { ANSWER, LAYERS, STYLES, openServer, pending } = require('./servers')

const REQUEST = 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
const conversations = [[REQUEST], [REQUEST, REQUEST, REQUEST], [REQUEST.repeat(3)], [...REQUEST]]

/**
 * Sends packets, and returns everything received until all requests are answered and both sides have ended.
 * @param {number} port
 * @param {string[]} packets
 */
async function talk (port, packets) {
  const length = ANSWER.length * packets.join('').split('\r\n\r\n').length - ANSWER.length
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
  socket.setTimeout(20_000, () => socket.destroy(new Error('no answer')))
  await once(socket, 'connect')
  let answer = ''
  socket.setEncoding('latin1').on('data', (text) => {
    answer += text
    if (answer.length >= length) socket.end()
  })
  const ended = once(socket, 'end')
  for (const packet of packets) {
    socket.write(packet)
    await new Promise(setImmediate)
  }
  await ended
  return answer
}

async function answers () {
  for (const layer of LAYERS) {
    for (const style of STYLES) {
      const { port, close } = await openServer(layer, style)
      for (const packets of conversations) process.stdout.write(await talk(port, packets), 'latin1')
      await close()
      if (pending.count !== 0) throw new Error(`${pending.count} answers were never written`)
    }
  }
}

module.exports = { answers }
