'use strict'

// Answers a request with a file, in the manner of node-paperboy (Felix Geisendörfer, 2010): the call returns
// a delegate, and listeners are attached to it afterwards.
//
//     deliver(root, request, response)
//       .before((file) => { response.setHeader('Cache-Control', 'no-cache') })
//       .after((status, problem) => { console.log(status, request.url, problem?.message ?? '') })
//       .error((status, message) => { response.statusCode = status; response.end(message) })
//       .otherwise(() => { response.statusCode = 404; response.end('no such file') })
//
// One of three things happens: `otherwise` where there is no such file, or `before` returned false; `error`
// where the request is refused or the file cannot be opened; or an answer, between `before` and `after`,
// which comes when the last byte has gone, or with a problem when it never will: the client left, the file
// shrank, a read failed. Then the connection is closed, so that no part is taken for the whole. What is not
// attached is done in plain text.
//
// What is not delivered: anything outside of the root, by `..` in whatever escape or by a link; hidden files;
// what is no plain file. Who can write below the root while it is served can put a link between the check and
// the opening: such a root needs more than this. A directory is its index.html. Several ranges at once get
// the whole file, as the standard allows: their sum may be many times the file. If-Match and
// If-Unmodified-Since are not looked at.

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
 * The answer with a file that is there.
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
    await handle.close().catch(() => {}) // of two problems the first is reported
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
    if (!(error instanceof Refusal)) throw error // the program's own, out of one of its callbacks
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
 * @param {{ send?: import('./send').Send }} [options] another way of sending
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
  // A request can be refused at a glance: not before all callbacks are there.
  process.nextTick(work, root, request, response, listeners, send)
  return delegate
}

module.exports = { deliver }
