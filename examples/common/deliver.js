'use strict'

// Answers a request with a file, in the manner of node-paperboy (Felix Geisendörfer, 2010): the call returns a delegate, and
// what shall happen is attached to it afterwards.
//
//     deliver(root, request, response)
//       .before((file) => { response.setHeader('Cache-Control', 'no-cache') })
//       .after((status, problem) => { console.log(status, request.url, problem?.message ?? '') })
//       .error((status, message) => { response.statusCode = status; response.end(message) })
//       .otherwise(() => { response.statusCode = 404; response.end('no such file') })
//
// One of three things happens: `otherwise` where there is no such file, or `before` returned false; `error` where the request is
// refused or the file cannot be opened; or an answer, between `before` and `after`, which comes when the last byte has
// gone, or with a problem when it never will: the client left, the file shrank, a read failed. Then the connection is
// closed, so that no half is taken for a whole. What is not attached is done in plain text.
//
// What is not delivered: anything outside of the root, by `..` in whatever escape or by a link; hidden files; what is no plain
// file. Who can write below the root while it is served can put a link between the check and the opening: such a root
// needs more than this. A directory is its index.html. Several ranges at once get the whole file, as the standard
// allows: their sum may be many times the file. If-Match and If-Unmodified-Since are not looked at.

const fs = require('node:fs')
const path = require('node:path')
const { STATUS_CODES } = require('node:http')

const CHUNK = 64 * 1024

// A FIFO that nobody writes to must not keep a thread of the pool waiting. Windows has neither.
const OPENING = fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK

const NOT_THERE = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'ENXIO', 'EISDIR']

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

/** What is not delivered, and the status that says why. */
class Refusal extends Error {
  /** @param {number} status @param {Record<string, string>} [headers] */
  constructor (status, headers = {}) {
    super(STATUS_CODES[status])
    this.status = status
    this.headers = headers
  }
}

/**
 * The path of a request below the root, decoded once: what is still an escape then is a name.
 * @param {string} url
 */
function below (url) {
  const raw = url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '')
  let decoded
  try {
    decoded = decodeURIComponent(raw)
  } catch {
    throw new Refusal(400)
  }
  if (!decoded.startsWith('/') || decoded.includes('\0')) throw new Refusal(400)
  if (decoded.includes('\\') || decoded.split('/').includes('..')) throw new Refusal(403)
  return decoded
}

/** Is it inside of the root? Both are real paths. @param {string} root @param {string} file */
const inside = (root, file) => file === root || file.startsWith(root.endsWith(path.sep) ? root : root + path.sep)

/**
 * Opens what a path leads to.
 * @param {string} root a real path
 * @param {string} wanted
 * @returns {Promise<{ file: string, handle: fs.promises.FileHandle, stat: fs.BigIntStats } | undefined>} nothing: no such file
 */
async function open (root, wanted) {
  const file = await fs.promises.realpath(wanted)
  if (!inside(root, file)) throw new Refusal(403)
  const handle = await fs.promises.open(file, OPENING)
  let kept = false
  try {
    const stat = await handle.stat({ bigint: true })
    kept = stat.isFile()
    if (kept) return { file, handle, stat }
    if (!stat.isDirectory()) return undefined
  } finally {
    if (!kept) await handle.close()
  }
  // Not again: a directory called index.html is no file.
  return path.basename(wanted) === 'index.html' ? undefined : open(root, path.join(wanted, 'index.html'))
}

/** @param {string} root @param {import('node:http').IncomingMessage} request */
async function find (root, request) {
  if (request.method !== 'GET' && request.method !== 'HEAD') throw new Refusal(405, { Allow: 'GET, HEAD' })
  const wanted = below(/** @type {string} */ (request.url))
  if (wanted.includes('/.')) return undefined
  try {
    const real = await fs.promises.realpath(root)
    return await open(real, path.join(real, wanted))
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error)
    if (error instanceof Refusal) throw error
    if (NOT_THERE.includes(String(code))) return undefined
    throw new Refusal(code === 'EACCES' || code === 'EPERM' ? 403 : code === 'EMFILE' || code === 'ENFILE' ? 503 : 500)
  }
}

/** @param {import('node:http').IncomingHttpHeaders} headers @param {string} tag @param {Date} changed */
function unchanged (headers, tag, changed) {
  const tags = headers['if-none-match']
  if (tags !== undefined) return tags.trim() === '*' || (tags.match(/"[^"]*"/g) ?? []).includes(tag)
  return Date.parse(headers['if-modified-since'] ?? '') >= changed.getTime()
}

/**
 * The part that is asked for.
 * @param {import('node:http').IncomingMessage} request
 * @param {number} size of the file
 * @param {string} tag
 * @param {Date} changed
 * @returns {{ from: number, length: number } | undefined} nothing: the whole file
 */
function part ({ method, headers }, size, tag, changed) {
  const condition = headers['if-range']
  if (method !== 'GET' || size === 0) return undefined
  if (condition !== undefined && condition !== tag && Date.parse(String(condition)) !== changed.getTime()) return undefined
  const [, first = '', last = ''] = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(headers.range ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined
  const from = first === '' ? Math.max(0, size - Number(last)) : Number(first)
  if (from >= size) throw new Refusal(416, { 'Content-Range': `bytes */${size}` })
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1)
  return { from, length: end - from }
}

/** Who waits for the end of a connection: one listener for all requests that were sent at once. @type {WeakMap<object, Set<() => void>>} */
const leaving = new WeakMap()

/** @param {import('node:net').Socket} socket @param {() => void} tell */
function whenGone (socket, tell) {
  let all = leaving.get(socket)
  if (all === undefined) {
    const mine = all = /** @type {Set<() => void>} */ (new Set())
    leaving.set(socket, mine)
    socket.once('close', () => mine.forEach((one) => one()))
  }
  const mine = all
  mine.add(tell)
  return () => mine.delete(tell)
}

/**
 * The way to the client. A response that waits behind another on its connection never hears that this was closed, so it is
 * the connection that is watched.
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 */
function wayTo ({ socket }, response) {
  let wake = () => {}
  const way = {
    gone: socket.destroyed,
    /** Runs something until it says that it is done, or the client is gone. @param {(done: () => void) => void} start @returns {Promise<void>} */
    until: (start) => new Promise((resolve) => {
      if (way.gone) return resolve()
      wake = resolve
      start(resolve)
    }),
    /** There is room for more. */
    room: () => way.until((done) => response.once('drain', done)),
    leave: whenGone(socket, () => {
      way.gone = true
      wake()
    })
  }
  return way
}

/**
 * @typedef {object} Body what a way of sending gets; it writes all of it to the response, or throws, or returns when the client is gone
 * @property {fs.promises.FileHandle} handle
 * @property {number} from
 * @property {number} length
 * @property {import('node:http').ServerResponse} response
 * @property {ReturnType<typeof wayTo>} way
 *
 * @typedef {(body: Body) => Promise<void>} Send
 */

/** Reads one chunk. @param {fs.promises.FileHandle} handle @param {Buffer} into @param {number} length @param {number} position */
async function readInto (handle, into, length, position) {
  const { bytesRead } = await handle.read(into, 0, length, position)
  if (bytesRead === 0) throw new Error('the file became shorter while it was sent')
  return bytesRead === into.length ? into : into.subarray(0, bytesRead)
}

/** Each chunk into a Buffer of its own; the next is read as soon as there is room. @param {number} [chunk] bytes @returns {Send} */
function fresh (chunk = CHUNK) {
  return async ({ handle, from, length, response, way }) => {
    for (let sent = 0; sent < length && !way.gone;) {
      const size = Math.min(chunk, length - sent)
      const data = await readInto(handle, Buffer.allocUnsafeSlow(size), size, from + sent)
      sent += data.length
      if (!response.write(data)) await way.room()
    }
  }
}

/** All chunks into one Buffer, which belongs to the system until it says that it has written it. @param {number} [chunk] bytes @returns {Send} */
function reused (chunk = CHUNK) {
  return async ({ handle, from, length, response, way }) => {
    const buffer = Buffer.allocUnsafeSlow(Math.min(chunk, length))
    for (let sent = 0; sent < length && !way.gone;) {
      const data = await readInto(handle, buffer, Math.min(chunk, length - sent), from + sent)
      sent += data.length
      await way.until((done) => response.write(data, () => done()))
    }
  }
}

/**
 * A stream, piped. `pipe` alone would wait for the rest of a file that shrank, and for a client that is gone.
 * @param {number} [chunk] bytes
 * @returns {Send}
 */
function piped (chunk = CHUNK) {
  return async ({ handle, from, length, response, way }) => {
    if (length === 0) return
    const stream = handle.createReadStream({ highWaterMark: chunk, start: from, end: from + length - 1 })
    const closed = new Promise((resolve) => stream.on('close', resolve)) // it closes the file itself, and only it knows when
    let problem
    stream.on('error', (error) => { problem = error })
    await way.until((done) => stream.on('close', done).pipe(response, { end: false }))
    stream.destroy()
    await closed
    if (problem !== undefined) throw problem
    if (!way.gone && stream.bytesRead < length) throw new Error('the file became shorter while it was sent')
  }
}

/**
 * @typedef {object} Told
 * @property {(file: string) => unknown} before
 * @property {(status: number, problem?: Error) => void} after
 * @property {(status: number, message: string) => void} error
 * @property {() => void} otherwise
 */

/**
 * The answer with a file that is there.
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {{ file: string, handle: fs.promises.FileHandle, stat: fs.BigIntStats }} found
 * @param {Told} told
 * @param {Send} send
 */
async function answer (request, response, { file, handle, stat }, told, send) {
  const size = Number(stat.size)
  const tag = `"${size.toString(16)}-${stat.mtimeNs.toString(16)}"`
  const changed = new Date(Math.floor(Number(stat.mtimeMs) / 1000) * 1000)
  const cached = unchanged(request.headers, tag, changed)
  const range = cached ? undefined : part(request, size, tag, changed)
  const { from, length } = range ?? { from: 0, length: size }
  const status = cached ? 304 : range === undefined ? 200 : 206
  if (told.before(file) === false) return told.otherwise()
  const headers = {
    'Content-Type': TYPES[path.extname(file).toLowerCase()] ?? 'application/octet-stream',
    'X-Content-Type-Options': 'nosniff',
    'Accept-Ranges': 'bytes',
    'Last-Modified': changed.toUTCString(),
    ETag: tag
  }
  for (const [name, value] of Object.entries(headers)) if (!response.hasHeader(name)) response.setHeader(name, value)
  if (!cached) response.setHeader('Content-Length', length)
  if (range !== undefined) response.setHeader('Content-Range', `bytes ${from}-${from + length - 1}/${size}`)
  response.statusCode = status

  const way = wayTo(request, response)
  let problem
  try {
    if (!cached && request.method === 'GET') await send({ handle, from, length, response, way })
    await handle.close()
    await way.until((done) => response.end(() => done()))
    if (!response.writableFinished) problem = new Error('the client left')
  } catch (error) {
    problem = /** @type {Error} */ (error)
    await handle.close().catch(() => {}) // of the two, the first is told
  }
  way.leave()
  if (problem !== undefined) response.destroy()
  told.after(status, problem)
}

/**
 * @param {string} root
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {Told} told
 * @param {Send} send
 */
async function work (root, request, response, told, send) {
  let found
  try {
    found = await find(root, request)
    if (found === undefined) return told.otherwise()
    await answer(request, response, found, told, send)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error // the program's own, out of one of its callbacks
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value)
    told.error(error.status, error.message)
  } finally {
    await found?.handle.close()
  }
}

/**
 * @param {string} root
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {{ send?: Send }} [options] another way of sending
 */
function deliver (root, request, response, { send = fresh() } = {}) {
  /** @type {Told} */
  const told = {
    before: () => true,
    after: () => {},
    error: (status, message) => {
      response.statusCode = status
      response.setHeader('Content-Type', 'text/plain').end(`${message}\n`)
    },
    otherwise: () => told.error(404, String(STATUS_CODES[404]))
  }
  const delegate = {
    /** @param {Told['before']} fn */
    before (fn) { told.before = fn; return delegate },
    /** @param {Told['after']} fn */
    after (fn) { told.after = fn; return delegate },
    /** @param {Told['error']} fn */
    error (fn) { told.error = fn; return delegate },
    /** @param {Told['otherwise']} fn */
    otherwise (fn) { told.otherwise = fn; return delegate }
  }
  // A request can be refused at a glance: not before all callbacks are there.
  process.nextTick(work, root, request, response, told, send)
  return delegate
}

module.exports = { deliver, fresh, reused, piped }
