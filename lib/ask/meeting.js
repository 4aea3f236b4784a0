'use strict'

// The Unix socket of a command, to which the threads that it asks connect. Each says a word that only it was
// told: others who connect learn nothing. On Linux the socket has a name in no directory (unix(7), abstract),
// so that nothing has to be removed, and a process that sees other files finds it. Elsewhere only the user of
// the process may open it.

const { randomBytes } = require('node:crypto')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { createLineReader } = require('./lines')
const { AskedThread } = require('./thread')

// The whole of sun_path (unix(7)): libuv of Node 20 fills a shorter name with zeros, that of Node 22 does not
// (uv_pipe_connect2 in deps/uv/src/unix/pipe.c), so neither finds what the other calls by the same name.
const ABSTRACT_BYTES = 108

/** The socket of this command, to which threads connect. */
class Meeting {
  /** by token @type {Map<string, { pid: number, resolve: (thread: AskedThread) => void }>} */
  #expected = new Map()
  /** @type {net.Server} */
  #server
  /** @type {string | undefined} */
  #directory

  /** @param {number | undefined} uid of the process */
  constructor (uid) {
    this.#server = net.createServer((socket) => this.#receive(socket))
    if (process.platform !== 'linux') this.#directory = makeDirectory(uid)
    const file = this.#directory && path.join(this.#directory, 's')
    this.address = file ?? `\0longstack-${randomBytes(16).toString('hex')}`.padEnd(ABSTRACT_BYTES, '-')
    this.isListening = new Promise((resolve, reject) => {
      this.#server.on('error', reject).listen(this.address, () => {
        try {
          if (file !== undefined) restrict(file, uid)
          resolve(undefined)
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  /** @param {number} pid @returns {{ token: string, thread: Promise<AskedThread> }} that will connect */
  expect (pid) {
    const token = randomBytes(16).toString('hex')
    /** @type {Promise<AskedThread>} */
    const thread = new Promise((resolve) => { this.#expected.set(token, { pid, resolve }) })
    return { token, thread }
  }

  /** @param {net.Socket} socket */
  #receive (socket) {
    /** @type {AskedThread | undefined} */
    let thread
    socket.setEncoding('utf8').on('data', createLineReader((message) => {
      if (thread !== undefined) return thread.receive(message)
      const expected = this.#expected.get(message.token)
      if (expected === undefined) return socket.destroy()
      this.#expected.delete(message.token)
      thread = new AskedThread(expected.pid, socket)
      expected.resolve(thread)
    }))
    socket.on('error', () => {}) // `close` follows
  }

  /** Nobody connects any more. */
  close () {
    this.#server.close() // libuv removes its file
    if (this.#directory !== undefined) fs.rmdirSync(this.#directory)
  }
}

/**
 * Makes a directory that is this user's, and stays so: another one, for whose process the socket is, may only
 * pass through it.
 * @param {number | undefined} uid
 */
function makeDirectory (uid) {
  const directory = fs.mkdtempSync(path.join(isOther(uid) ? '/tmp' : os.tmpdir(), 'longstack-'))
  if (isOther(uid)) fs.chmodSync(directory, 0o711)
  return directory
}

/** @param {string} file of a socket @param {number | undefined} uid who alone may open it */
function restrict (file, uid) {
  fs.chmodSync(file, 0o600)
  if (uid !== undefined && isOther(uid)) fs.lchownSync(file, uid, -1)
}

/** @param {number | undefined} uid */
const isOther = (uid) => uid !== undefined && uid !== process.getuid?.()

module.exports = { Meeting }
