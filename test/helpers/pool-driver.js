'use strict'

// A package `driver`: a pool whose two connections are opened by hand.

const fs = require('node:fs')
const path = require('node:path')

const text = `
const net = require('node:net')
module.exports = class {
  free = []
  waiting = []
  async open (port) { for (let i = 0; i < 2; i++) this.free.push(await connect(port)) }
  async acquire () { return this.free.pop() ?? await new Promise((resolve) => this.waiting.push(resolve)) }
  release (socket) { this.free.push(socket) }
  ask (socket) { return new Promise((resolve) => { socket.once('data', resolve); socket.write('?') }) }
}
const connect = (port) => new Promise((resolve) => {
  const socket = net.connect(port, '127.0.0.1', () => resolve(socket))
})
`

/** Writes the package. @param {string} directory of the program */
function writeDriver (directory) {
  const driver = path.join(directory, 'node_modules', 'driver')
  fs.mkdirSync(driver, { recursive: true })
  fs.writeFileSync(path.join(driver, 'index.js'), text)
}

module.exports = { writeDriver }
