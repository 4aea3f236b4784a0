'use strict'

// Ways to send a part of an open file.

const CHUNK = 64 * 1024
const SHORTER = 'the file became shorter while it was sent'

/**
 * Callbacks for the end of a connection: one listener for all of its concurrent requests.
 * @type {WeakMap<object, Set<() => void>>}
 */
const leaving = new WeakMap()

/** @param {import('node:net').Socket} socket @param {() => void} callback */
function onceGone (socket, callback) {
  const callbacks = leaving.get(socket) ?? new Set()
  if (!leaving.has(socket)) {
    leaving.set(socket, callbacks)
    socket.once('close', () => callbacks.forEach((notify) => notify()))
  }
  callbacks.add(callback)
  return () => callbacks.delete(callback)
}

/**
 * Watches the connection to the client. A response queued behind another one gets no event when the
 * connection closes.
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 */
function watchClient ({ socket }, response) {
  let wake = () => {}
  const client = {
    isGone: socket.destroyed,
    /**
     * Starts an operation, and waits until it is done or the client is gone.
     * @param {(done: () => void) => void} start
     * @returns {Promise<void>}
     */
    until: (start) => new Promise((resolve) => {
      if (client.isGone) return resolve()
      wake = resolve
      start(resolve)
    }),
    /** Waits until there is room to write more. */
    room: () => client.until((done) => response.once('drain', done)),
    leave: onceGone(socket, () => {
      client.isGone = true
      wake()
    })
  }
  return client
}

/**
 * @typedef {object} Body written to the response by a way of sending: completely, unless it throws, or the
 *   client is gone and it returns
 * @property {import('node:fs').promises.FileHandle} handle
 * @property {number} start
 * @property {number} length
 * @property {import('node:http').ServerResponse} response
 * @property {ReturnType<typeof watchClient>} client
 *
 * @typedef {(body: Body) => Promise<void>} Send
 */

/**
 * Reads one chunk.
 * @param {import('node:fs').promises.FileHandle} handle
 * @param {Buffer} into
 * @param {number} length
 * @param {number} position
 */
async function readInto (handle, into, length, position) {
  const { bytesRead } = await handle.read(into, 0, length, position)
  if (bytesRead === 0) throw new Error(SHORTER)
  return bytesRead === into.length ? into : into.subarray(0, bytesRead)
}

/**
 * Reads each chunk into its own Buffer; the next one is read once there is room.
 * @param {number} [chunk] bytes
 * @returns {Send}
 */
function fresh (chunk = CHUNK) {
  return async ({ handle, start, length, response, client }) => {
    for (let sent = 0; sent < length && !client.isGone;) {
      const size = Math.min(chunk, length - sent)
      const data = await readInto(handle, Buffer.allocUnsafeSlow(size), size, start + sent)
      sent += data.length
      if (!response.write(data)) await client.room()
    }
  }
}

/**
 * Reads all chunks into one Buffer, which must not be reused until the kernel has written it.
 * @param {number} [chunk] bytes
 * @returns {Send}
 */
function reused (chunk = CHUNK) {
  return async ({ handle, start, length, response, client }) => {
    const buffer = Buffer.allocUnsafeSlow(Math.min(chunk, length))
    for (let sent = 0; sent < length && !client.isGone;) {
      const data = await readInto(handle, buffer, Math.min(chunk, length - sent), start + sent)
      sent += data.length
      await client.until((done) => response.write(data, () => done()))
    }
  }
}

/**
 * Pipes a stream. `pipe` alone would wait for the rest of a file that shrank, and for a client that left.
 * @param {number} [chunk] bytes
 * @returns {Send}
 */
function piped (chunk = CHUNK) {
  return async ({ handle, start, length, response, client }) => {
    if (length === 0) return
    const stream = handle.createReadStream({ highWaterMark: chunk, start, end: start + length - 1 })
    const closed = new Promise((resolve) => stream.on('close', resolve)) // it closes the file itself
    let problem
    stream.on('error', (error) => { problem = error })
    await client.until((done) => stream.on('close', done).pipe(response, { end: false }))
    stream.destroy()
    await closed
    if (problem !== undefined) throw problem
    if (!client.isGone && stream.bytesRead < length) throw new Error(SHORTER)
  }
}

module.exports = { watchClient, fresh, reused, piped, SHORTER }
