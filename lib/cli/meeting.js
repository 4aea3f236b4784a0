'use strict'

// The Unix socket of a command, to which the threads that it asks connect. Only the user of the process may
// connect, and each thread says a word that only it was told.

const { randomBytes } = require('node:crypto')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { AskedThread } = require('./asked-thread')

const MAX_PATH = 100 // bytes of a Unix socket's path: the system allows 103 on macOS, 107 on Linux

/** The socket of this command, to which threads connect. */
class Meeting {
  /** by token @type {Map<string, { pid: number, resolve: (thread: AskedThread) => void }>} */
  #expected = new Map()
  /** @type {net.Server} */
  #server
  #directory

  /** @param {string} root of the files of the process, as seen from here @param {number | undefined} uid */
  constructor (root, uid) {
    const temporary = root === '' ? os.tmpdir() : '/tmp'
    const isShort = Buffer.byteLength(`${root}${temporary}/longstack-123456/s`) < MAX_PATH
    this.#directory = fs.mkdtempSync(path.join(root, isShort ? temporary : '/tmp', 'longstack-'))
    this.path = path.join(this.#directory, 's')
    /** as the process sees it */
    this.address = this.path.slice(root.length)
    this.#server = net.createServer((socket) => this.#receive(socket))
    this.isListening = new Promise((resolve, reject) => {
      this.#server.on('error', reject).listen(this.path, () => {
        try {
          fs.chmodSync(this.path, 0o600)
          if (uid !== undefined && uid !== process.getuid?.()) {
            fs.chownSync(this.path, uid, -1)
            fs.chownSync(this.#directory, uid, -1)
          }
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
    receiveLines(socket, (message) => {
      if (thread !== undefined) return thread.receive(message)
      const expected = this.#expected.get(message.token)
      if (expected === undefined) return socket.destroy()
      this.#expected.delete(message.token)
      thread = threadOn(socket, expected.pid)
      expected.resolve(thread)
    })
    socket.on('error', () => {}).on('close', () => thread?.end())
  }

  /** Nobody connects any more. */
  close () {
    this.#server.close()
    fs.rmSync(this.#directory, { recursive: true, force: true })
  }
}

/** @param {net.Socket} socket @param {number} pid */
function threadOn (socket, pid) {
  return new AskedThread(pid, (line) => { socket.write(line) }, () => { socket.destroy() })
}

/** @param {net.Socket} socket @param {(message: any) => void} onMessage */
function receiveLines (socket, onMessage) {
  let rest = ''
  socket.setEncoding('utf8').on('data', (text) => {
    const lines = (rest + text).split('\n')
    rest = /** @type {string} */ (lines.pop())
    for (const line of lines) {
      const message = parse(line)
      if (message !== undefined) onMessage(message)
    }
  })
}

/** @param {string} line @returns {any} undefined: none of longstack's */
function parse (line) {
  try {
    const message = JSON.parse(line)
    return typeof message === 'object' && message !== null ? message : undefined
  } catch {
    return undefined
  }
}

module.exports = { Meeting, receiveLines, threadOn }
