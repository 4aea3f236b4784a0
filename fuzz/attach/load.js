'use strict'

// Makes the load: requests over raw sockets, whose answers are compared byte for byte with those that the
// same requests had at first.

const net = require('node:net')

const SILENT_MS = 15_000 // after which a request is lost

const routes = [
  'plain', 'timer', 'order', 'storage', 'echo', 'client', 'fetch', 'http2', 'file', 'hash', 'zip', 'vm',
  'worker', 'error', 'reject', 'inspect', 'stream', 'block'
]
const VARIANTS = 5
const paths = routes.flatMap((route) => Array.from({ length: VARIANTS }, (_, n) => `/${route}/${n + 100}`))

/** One connection, on which requests follow each other. */
class Connection {
  #socket
  #text = ''
  /** @type {{ isWhole: (text: string) => boolean, resolve: (text: string) => void } | undefined} */
  #expected
  /** @type {Error | undefined} */
  #error

  /** @param {number} port */
  constructor (port) {
    this.#socket = net.connect(port, '127.0.0.1')
    this.#socket.setEncoding('latin1').on('data', (text) => {
      this.#text += text
      this.#check()
    })
    this.#socket.on('error', (error) => this.#end(error))
    this.#socket.on('close', () => this.#end(new Error('the connection was closed')))
  }

  #check () {
    if (this.#expected === undefined || !this.#expected.isWhole(this.#text)) return
    const { resolve } = this.#expected
    const text = this.#text
    this.#text = ''
    this.#expected = undefined
    resolve(text)
  }

  /** @param {Error} error */
  #end (error) {
    this.#error ??= error
    this.#expected?.resolve(`${this.#text} (${error.message})`)
    this.#expected = undefined
  }

  /**
   * @param {string} path
   * @param {(text: string) => boolean} isWhole
   * @returns {Promise<string>} all bytes of the answer
   */
  request (path, isWhole) {
    if (this.#error !== undefined) return Promise.resolve(`(${this.#error.message})`)
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#end(new Error('no answer')), SILENT_MS)
      this.#expected = {
        isWhole,
        resolve: (text) => {
          clearTimeout(timer)
          resolve(text)
        }
      }
      this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: service\r\n\r\n`)
    })
  }

  close () {
    this.#socket.destroy()
  }
}

/** Returns whether an answer has its head, and all of its body. @param {string} text */
function isWhole (text) {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return false
  const length = /\r\nContent-Length: (\d+)/i.exec(text)?.[1]
  return length === undefined ? text.endsWith('\r\n0\r\n\r\n') : text.length >= end + 4 + Number(length)
}

class Load {
  #connections
  /** by path @type {Map<string, string>} */
  #expected = new Map()
  #isPaused = true
  /** @type {Promise<unknown>} */
  #rounds = Promise.resolve()
  #random
  requests = 0
  /** @type {string[]} */
  findings = []

  /** @param {number} port @param {number} connections @param {() => number} random */
  constructor (port, connections, random) {
    this.#connections = Array.from({ length: connections }, () => new Connection(port))
    this.#random = random
  }

  /** Asks for all paths, twice, while nothing is attached. */
  async learn () {
    const [connection] = this.#connections
    for (const path of [...paths, ...paths]) {
      const text = await connection.request(path, isWhole)
      const first = this.#expected.get(path)
      if (first !== undefined && first !== text) throw new Error(`${path}: ${first} and ${text}`)
      this.#expected.set(path, text)
    }
  }

  start () {
    this.#isPaused = false
    this.#rounds = Promise.all(this.#connections.map((connection) => this.#loop(connection)))
  }

  /** Ends when all answers have come. */
  async pause () {
    this.#isPaused = true
    await this.#rounds
  }

  /** @param {Connection} connection */
  async #loop (connection) {
    while (!this.#isPaused) {
      const path = paths[Math.floor(this.#random() * paths.length)]
      const expected = /** @type {string} */ (this.#expected.get(path))
      const text = await connection.request(path, (received) => received.length >= expected.length)
      this.requests++
      if (text === expected) continue
      this.findings.push(`${path}: ${JSON.stringify(text)} in place of ${JSON.stringify(expected)}`)
      return
    }
  }

  close () {
    for (const connection of this.#connections) connection.close()
  }
}

module.exports = { Load }
