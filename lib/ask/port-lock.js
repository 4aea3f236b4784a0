'use strict'

// Commands queue for the port on which inspectors open. On Linux the lock is a listening socket with an
// abstract name. Binding it is atomic and makes no file. Like the port, it is scoped to the network namespace
// and shared between users. The kernel releases it when the command ends, even if it is killed.

const net = require('node:net')
const { setTimeout: sleep } = require('node:timers/promises')
const { RefusedError } = require('./system')
const { abstractAddress } = require('./threads')

const POLL_MS = 50
const NOTICE_MS = 1_000 // wait before the user gets a line
const WAIT_MS = 60_000 // for the commands before this one

/**
 * Waits until no other command uses a port.
 * @param {string} name of the port
 * @returns {Promise<() => void>} releases the port
 * @throws {RefusedError} if the other commands take too long
 */
async function lockPort (name) {
  if (process.platform !== 'linux') return () => {}
  const start = Date.now()
  for (let isTold = false; ;) {
    const server = await listen(abstractAddress(`inspector-${name}`))
    if (server !== undefined) return () => { server.close() }
    const ms = Date.now() - start
    if (ms > WAIT_MS) {
      throw new RefusedError(`Another longstack command uses the inspector port (${name}) and has not ` +
        `ended within ${WAIT_MS / 1000} s. Try again later.`)
    }
    if (!isTold && ms > NOTICE_MS) {
      isTold = true
      process.stderr.write('longstack: another longstack command uses the inspector port; waiting\n')
    }
    await sleep(POLL_MS)
  }
}

/**
 * @param {string} address
 * @returns {Promise<net.Server | undefined>} undefined if another command listens there
 */
function listen (address) {
  return new Promise((resolve, reject) => {
    const server = net.createServer((socket) => { socket.destroy() }).unref()
    server.on('error', (/** @type {NodeJS.ErrnoException} */ error) => {
      if (error.code === 'EADDRINUSE') resolve(undefined)
      else reject(error)
    })
    server.listen(address, () => { resolve(server) })
  })
}

module.exports = { lockPort }
