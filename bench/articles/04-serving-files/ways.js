'use strict'

// Ways to send a file of 500 KiB, and a server that uses the way named by the path.

const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const stream = require('node:stream')
const { deliver } = require('./deliver')
const { fresh, reused, piped, SHORTER } = require('./send')

const KIB = 1024
const SIZE = 500 * KIB
const FILE = 'file.txt'

/**
 * Sends strings, which deliver() does not need: read, decoded, and encoded again.
 * @param {BufferEncoding} encoding
 * @param {number} chunk bytes
 * @param {boolean} [isBoxed] convert to a Buffer first
 */
function asStrings (encoding, chunk, isBoxed = false) {
  return async ({ handle, start, length, response, client }) => {
    const buffer = Buffer.allocUnsafeSlow(Math.min(chunk, length))
    for (let sent = 0; sent < length && !client.isGone;) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(chunk, length - sent), start + sent)
      if (bytesRead === 0) throw new Error(SHORTER)
      sent += bytesRead
      const text = buffer.toString(encoding, 0, bytesRead)
      const hasRoom = isBoxed ? response.write(Buffer.from(text, encoding)) : response.write(text, encoding)
      if (!hasRoom) await client.room()
    }
  }
}

/** Sends with `stream.pipeline`, which ends the response, and destroys it if the file fails. */
function pipelined (/** @type {number} */ chunk) {
  return ({ handle, start, length, response }) => new Promise((resolve, reject) => {
    const file = handle.createReadStream({ highWaterMark: chunk, start, end: start + length - 1 })
    stream.pipeline(file, response, (error) => {
      if (!error || error.code === 'ERR_STREAM_PREMATURE_CLOSE') resolve()
      else reject(error)
    })
  })
}

/** Ways to send the file: by deliver(), or directly. */
const ways = {
  four: { name: 'chunks of 4 KiB', send: fresh(4 * KIB) },
  sixteen: { name: 'chunks of 16 KiB', send: fresh(16 * KIB) },
  medium: { name: 'chunks of 64 KiB', send: fresh(64 * KIB) },
  large: { name: 'chunks of 256 KiB', send: fresh(256 * KIB) },
  whole: { name: 'the whole file', send: fresh(SIZE) },
  reused: { name: '64 KiB into one 64 KiB Buffer', send: reused(64 * KIB) },
  pipe: { name: 'stream.pipe, 64 KiB', send: piped(64 * KIB) },
  pipeline: { name: 'stream.pipeline, 64 KiB', send: pipelined(64 * KIB) },
  latin1: { name: 'latin1 strings of 64 KiB', send: asStrings('latin1', 64 * KIB) },
  oneLatin1: { name: 'one latin1 string', send: asStrings('latin1', SIZE) },
  boxed: { name: 'such strings put into Buffers', send: asStrings('latin1', 64 * KIB, true) },
  utf8: { name: 'utf8 strings of 64 KiB', send: asStrings('utf8', 64 * KIB) },
  oneUtf8: { name: 'one utf8 string', send: asStrings('utf8', SIZE) },
  sync: { name: 'readFileSync for each', answer: (root, response) => response.end(readWhole(root)) },
  kept: { name: 'a Buffer that is kept', answer: (root, response) => response.end(kept ??= readWhole(root)) }
}

/** @type {Buffer | undefined} */
let kept

/** @param {string} root */
const readWhole = (root) => fs.readFileSync(path.join(root, FILE))

/**
 * Sends the file in the way named by the path; the rest of the path only gives spans different names.
 * @param {string} root
 */
function createServer (root) {
  return http.createServer(function answerWithFile (request, response) {
    const [, name] = request.url.split('/')
    const { send, answer } = ways[name]
    if (answer !== undefined) return answer(root, response.setHeader('Content-Length', SIZE))
    request.url = `/${FILE}`
    deliver(root, request, response, { send })
  })
}

/** Writes the measured file. @param {string} root */
function writeFile (root) {
  fs.writeFileSync(path.join(root, FILE), Buffer.alloc(SIZE, 'A line of the file that is sent.\n'))
}

module.exports = { createServer, ways, writeFile, KIB }
