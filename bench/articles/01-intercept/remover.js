'use strict'

// Removes the header `customHeader` from the requests of a connection. Everything outside of heads passes
// unchanged.

/** @typedef {import('node:net').Socket} Socket */

const NAME = 'customheader'
const MAX_LINE = 16 * 1024 // bytes; Node's parser refuses a longer head
const LF = 10

/** The next part of a connection's input. */
const State = Object.freeze({
  START: 'start',
  HEADER: 'header',
  BODY: 'body',
  CHUNK_SIZE: 'chunk size',
  CHUNK: 'chunk',
  CHUNK_END: 'chunk end',
  TRAILER: 'trailer',
  TUNNEL: 'tunnel'
})

/** Follows the messages of one connection and removes the header. */
class Remover {
  pending = Buffer.alloc(0) // incomplete line
  /** @type {string} */
  state = State.START
  remaining = 0 // bytes of the body or chunk
  isRemoving = false // the header was removed, so its continuation lines are too
  message = { size: 0, isChunked: false, isTunnel: false, isUpgrade: false }

  /** @param {Socket} socket */
  constructor (socket) {
    this.socket = socket
  }

  /** @param {Buffer} chunk @returns {Buffer} the bytes to pass on */
  push (chunk) {
    const bytes = this.pending.length === 0 ? chunk : Buffer.concat([this.pending, chunk])
    const kept = []
    let position = 0
    while (position < bytes.length) {
      const end = this.endOfPart(bytes, position)
      if (end === 0) break // incomplete line
      const part = bytes.subarray(position, end)
      if (this.accept(part)) kept.push(part)
      position = end
    }
    this.pending = bytes.subarray(position)
    if (this.pending.length > MAX_LINE) this.state = State.TUNNEL // Node will reject it
    return Buffer.concat(kept)
  }

  /** @returns {Buffer} the bytes of the incomplete line */
  flush () {
    const { pending } = this
    this.pending = Buffer.alloc(0)
    return pending
  }

  /**
   * Returns the end of the next line or body part, or 0 if unknown.
   * @param {Buffer} bytes
   * @param {number} position
   */
  endOfPart (bytes, position) {
    if (this.state === State.TUNNEL) return bytes.length
    const isBody = this.state === State.BODY || this.state === State.CHUNK
    return isBody ? Math.min(bytes.length, position + this.remaining) : bytes.indexOf(LF, position) + 1
  }

  /** @param {Buffer} part @returns {boolean} whether to pass it on */
  accept (part) {
    if (this.state === State.HEADER) return this.readHeader(part.toString('latin1'))
    if (this.state === State.START) this.readStart(part.toString('latin1').trim())
    else if (this.state === State.CHUNK_SIZE) this.readChunkSize(Number.parseInt(part.toString('latin1'), 16))
    else if (this.state === State.CHUNK_END) this.state = State.CHUNK_SIZE
    else if (this.state === State.TRAILER && part.toString('latin1').trim() === '') this.state = State.START
    else if (this.state === State.BODY || this.state === State.CHUNK) this.readBody(part.length)
    return true
  }

  /** @param {number} size */
  readBody (size) {
    this.remaining -= size
    if (this.remaining === 0) this.state = this.state === State.BODY ? State.START : State.CHUNK_END
  }

  /** @param {string} line */
  readStart (line) {
    if (line === '') return // between two messages
    this.message = { size: 0, isChunked: false, isTunnel: line.startsWith('CONNECT '), isUpgrade: false }
    this.isRemoving = false
    this.state = State.HEADER
  }

  /** @param {string} line @returns {boolean} whether to pass it on */
  readHeader (line) {
    if (line.trim() === '') {
      this.endHead()
      return true
    }
    if (/^[ \t]/.test(line)) return !this.isRemoving
    const [, name, value] = /^([^:]*):?(.*)/s.exec(line.toLowerCase().trim()) ?? []
    this.isRemoving = name.trim() === NAME
    if (name === 'content-length') this.message.size = Number.parseInt(value, 10) || 0
    if (name === 'transfer-encoding') this.message.isChunked = value.trim().endsWith('chunked')
    if (name === 'upgrade') this.message.isUpgrade = true
    return !this.isRemoving
  }

  endHead () {
    const { size, isChunked, isTunnel, isUpgrade } = this.message
    const { server } = /** @type {any} */ (this.socket)
    this.remaining = size
    if (isTunnel || (isUpgrade && server.listenerCount('upgrade') > 0)) this.state = State.TUNNEL
    else if (isChunked) this.state = State.CHUNK_SIZE
    else this.state = size > 0 ? State.BODY : State.START
  }

  /** @param {number} size of a chunk */
  readChunkSize (size) {
    this.remaining = size || 0
    this.state = this.remaining > 0 ? State.CHUNK : State.TRAILER
  }
}

/** @type {WeakMap<Socket, Remover>} */
const removers = new WeakMap()

/** The transform. @param {Buffer} chunk an empty one at the end of the input @param {Socket} socket */
function removeCustomHeader (chunk, socket) {
  let remover = removers.get(socket)
  if (remover === undefined) removers.set(socket, remover = new Remover(socket))
  return chunk.length === 0 ? remover.flush() : remover.push(chunk)
}

module.exports = { removeCustomHeader }
