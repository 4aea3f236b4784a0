'use strict'

// Finds the file of a request, or the reason to reject it.

const fs = require('node:fs')
const path = require('node:path')
const { STATUS_CODES } = require('node:http')

// A FIFO without a writer must not block a thread of the pool. Windows has neither flag.
const OPENING = fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK

const STATUSES = { EACCES: 403, EPERM: 403, EMFILE: 503, ENFILE: 503 }
const NOT_THERE = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'ENXIO', 'EISDIR']

/** A rejected request, with its status. */
class Refusal extends Error {
  /** @param {number} status @param {Record<string, string>} [headers] */
  constructor (status, headers = {}) {
    super(STATUS_CODES[status])
    this.status = status
    this.headers = headers
  }
}

/**
 * Returns the path of a request below the root, decoded only once: a remaining escape is part of a name.
 * @param {string} url
 */
function pathOf (url) {
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

/** Returns whether the real path of a file is inside the root. @param {string} root @param {string} file */
const isInside = (root, file) => {
  return file === root || file.startsWith(root.endsWith(path.sep) ? root : root + path.sep)
}

/**
 * Opens the file at a path; for a directory, its index.html.
 * @param {string} root a real path
 * @param {string} name
 * @returns {Promise<{ file: string, handle: fs.promises.FileHandle, stat: fs.BigIntStats } | undefined>}
 *   undefined if there is no such file
 */
async function open (root, name) {
  const file = await fs.promises.realpath(name)
  if (!isInside(root, file)) throw new Refusal(403)
  const handle = await fs.promises.open(file, OPENING)
  let isKept = false
  try {
    const stat = await handle.stat({ bigint: true })
    isKept = stat.isFile()
    if (isKept) return { file, handle, stat }
    if (!stat.isDirectory()) return undefined
  } finally {
    if (!isKept) await handle.close()
  }
  // Only once: a directory called index.html is not a file
  return path.basename(name) === 'index.html' ? undefined : open(root, path.join(name, 'index.html'))
}

/** @param {string} root @param {import('node:http').IncomingMessage} request */
async function openFor (root, request) {
  if (request.method !== 'GET' && request.method !== 'HEAD') throw new Refusal(405, { Allow: 'GET, HEAD' })
  const name = pathOf(/** @type {string} */ (request.url))
  if (name.includes('/.')) return undefined
  try {
    const real = await fs.promises.realpath(root)
    return await open(real, path.join(real, name))
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error)
    if (error instanceof Refusal) throw error
    if (NOT_THERE.includes(String(code))) return undefined
    throw new Refusal(STATUSES[String(code)] ?? 500)
  }
}

module.exports = { openFor, Refusal }
