'use strict'

// Serves a file in the style of node-paperboy (Felix Geisendörfer, 2010): the call returns a delegate, and
// listeners are attached to it afterwards.
//
//     deliver(root, request, response)
//       .before((file) => { response.setHeader('Cache-Control', 'no-cache') })
//       .after((status, problem) => { console.log(status, request.url, problem?.message ?? '') })
//       .error((status, message) => { response.statusCode = status; response.end(message) })
//       .otherwise(() => { response.statusCode = 404; response.end('no such file') })
//
// There are three outcomes. `otherwise`: the file does not exist, or `before` returned false. `error`: the
// request is rejected, or the file cannot be opened. Or an answer between `before` and `after`, which is
// called once the last byte was sent, or with a problem if that will never happen: the client left, the file
// shrank, or a read failed. In that case the connection is closed, so that a part is not mistaken for the
// whole file. Missing listeners are replaced by plain text.
//
// Not served: anything outside of the root (through `..` in any encoding, or a link), hidden files, and
// anything but regular files. A user with write access below the root could insert a link between the check
// and the opening; such a root needs more protection. A directory is served as its index.html. A request for
// several ranges gets the whole file, as the standard allows, because their sum may be many times the file.
// If-Match and If-Unmodified-Since are ignored.

const path = require('node:path')
const { STATUS_CODES } = require('node:http')
const { isUnchanged, rangeOf } = require('./conditions')
const { openFor, Refusal } = require('./files')
const { watchClient, fresh } = require('./send')

/** @type {Record<string, string>} */
const TYPES = {
  '.css': 'text/css; charset=utf-8',
  '.gif': 'image/gif',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.md': 'text/markdown; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
  '.xml': 'application/xml'
}

/**
 * @typedef {object} Listeners
 * @property {(file: string) => unknown} before
 * @property {(status: number, problem?: Error) => void} after
 * @property {(status: number, message: string) => void} error
 * @property {() => void} otherwise
 */

/**
 * Sends an existing file.
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {{ file: string, handle: import('node:fs').promises.FileHandle, stat: import('node:fs').BigIntStats
 *   }} opened
 * @param {Listeners} listeners
 * @param {import('./send').Send} send
 */
async function answer (request, response, { file, handle, stat }, listeners, send) {
  const size = Number(stat.size)
  const tag = `"${size.toString(16)}-${stat.mtimeNs.toString(16)}"`
  const changed = new Date(Math.floor(Number(stat.mtimeMs) / 1000) * 1000)
  const isCached = isUnchanged(request.headers, tag, changed)
  const range = isCached ? undefined : rangeOf(request, size, tag, changed)
  const { start, length } = range ?? { start: 0, length: size }
  const status = isCached ? 304 : range === undefined ? 200 : 206
  if (listeners.before(file) === false) return listeners.otherwise()
  const headers = {
    'Content-Type': TYPES[path.extname(file).toLowerCase()] ?? 'application/octet-stream',
    'X-Content-Type-Options': 'nosniff',
    'Accept-Ranges': 'bytes',
    'Last-Modified': changed.toUTCString(),
    ETag: tag
  }
  for (const [name, value] of Object.entries(headers)) {
    if (!response.hasHeader(name)) response.setHeader(name, value)
  }
  if (!isCached) response.setHeader('Content-Length', length)
  if (range !== undefined) response.setHeader('Content-Range', `bytes ${start}-${start + length - 1}/${size}`)
  response.statusCode = status

  const client = watchClient(request, response)
  let problem
  try {
    if (!isCached && request.method === 'GET') await send({ handle, start, length, response, client })
    await handle.close()
    await client.until((done) => response.end(() => done()))
    if (!response.writableFinished) problem = new Error('the client left')
  } catch (error) {
    problem = /** @type {Error} */ (error)
    await handle.close().catch(() => {}) // only the first of two problems is reported
  }
  client.leave()
  if (problem !== undefined) response.destroy()
  listeners.after(status, problem)
}

/**
 * @param {string} root
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {Listeners} listeners
 * @param {import('./send').Send} send
 */
async function work (root, request, response, listeners, send) {
  let opened
  try {
    opened = await openFor(root, request)
    if (opened === undefined) return listeners.otherwise()
    await answer(request, response, opened, listeners, send)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error // thrown by one of the program's own callbacks
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value)
    listeners.error(error.status, error.message)
  } finally {
    await opened?.handle.close()
  }
}

/**
 * @param {string} root
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {{ send?: import('./send').Send }} [options] another way to send the file
 */
function deliver (root, request, response, { send = fresh() } = {}) {
  /** @type {Listeners} */
  const listeners = {
    before: () => true,
    after: () => {},
    error: (status, message) => {
      response.statusCode = status
      response.setHeader('Content-Type', 'text/plain').end(`${message}\n`)
    },
    otherwise: () => listeners.error(404, String(STATUS_CODES[404]))
  }
  const delegate = {
    /** @param {Listeners['before']} fn */
    before (fn) { listeners.before = fn; return delegate },
    /** @param {Listeners['after']} fn */
    after (fn) { listeners.after = fn; return delegate },
    /** @param {Listeners['error']} fn */
    error (fn) { listeners.error = fn; return delegate },
    /** @param {Listeners['otherwise']} fn */
    otherwise (fn) { listeners.otherwise = fn; return delegate }
  }
  // A request may be rejected immediately, but the callbacks must be attached first
  process.nextTick(work, root, request, response, listeners, send)
  return delegate
}

module.exports = { deliver }
