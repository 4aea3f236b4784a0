'use strict'

// Opens what spans are written to, so that no write can ever block the program: regular files write at once, all else
// (pipes, terminals, devices) is put into a mode in which a full one says EAGAIN. That mode belongs to the open file
// and would be shared with whoever has it open, so a standard stream is opened anew where the system allows it.

const fs = require('node:fs')

const { openSync, fstatSync, statSync, closeSync, readFileSync } = fs
const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK = 0, O_NOCTTY = 0 } = fs.constants
const MODE = 0o600

/**
 * @typedef {object} Opened
 * @property {number} fd
 * @property {boolean} regular a file on a disk, or what behaves like one
 * @property {boolean} own to be closed by who opened it
 * @property {string} identity of the open file: a program that closes foreign descriptors may put its own in their place
 */

/** @param {{ fd?: number, path?: string }} target @returns {Opened} */
function open ({ fd, path }) {
  return fd === undefined ? openPath(/** @type {string} */ (path)) : openStream(fd)
}

/** @param {string} path @returns {Opened} */
function openPath (path) {
  // Without O_NONBLOCK the opening of a FIFO waits until somebody reads.
  return described(openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, MODE), true)
}

/** @param {number} fd stdout or stderr @returns {Opened} */
function openStream (fd) {
  if (fstatSync(fd).isFile()) return described(fd, false)
  try {
    return described(openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY), true)
  } catch {
    return openShared(fd)
  }
}

/** What cannot be opened anew, such as a socket. @param {number} fd @returns {Opened} */
function openShared (fd) {
  const opened = described(fd, false)
  if (!canBlock(fd)) return opened
  // Node makes a pipe or socket non-blocking as soon as the program touches the stream, which is no more than is done here.
  if (blocks(fd) !== false) touch(fd === 1 ? 'stdout' : 'stderr')
  if (blocks(fd) === true) throw Object.assign(new Error('every write could block the program'), { code: 'EWOULDBLOCK' })
  return opened
}

/** @param {'stdout' | 'stderr'} name */
function touch (name) {
  return process[name]
}

/** A terminal blocks only while somebody holds it. @param {number} fd */
function canBlock (fd) {
  const stat = fstatSync(fd)
  return stat.isSocket() || stat.isFIFO()
}

/** As Linux tells it; undefined elsewhere. @param {number} fd */
function blocks (fd) {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]
    return flags === undefined ? undefined : (parseInt(flags, 8) & O_NONBLOCK) === 0
  } catch {
    return undefined
  }
}

/** @param {number} fd @param {boolean} own @returns {Opened} */
function described (fd, own) {
  const stat = fstatSync(fd)
  return { fd, own, regular: stat.isFile(), identity: identityOf(stat) }
}

/** @param {import('node:fs').Stats} stat */
function identityOf ({ dev, ino, rdev }) {
  return `${dev}:${ino}:${rdev}`
}

/** Is the descriptor still the one that was opened? The program may have closed it, and got its number for something else. @param {Opened} opened */
function isOurs ({ fd, identity }) {
  try {
    return identityOf(fstatSync(fd)) === identity
  } catch {
    return false
  }
}

/** Does the name still lead to it? @param {Opened} opened @param {string} path */
function isNamed ({ identity }, path) {
  try {
    return identityOf(statSync(path)) === identity
  } catch {
    return false
  }
}

/** Was the file deleted, so that nobody will ever read what is written? @param {Opened} opened */
function isDeleted ({ fd }) {
  return fstatSync(fd).nlink === 0
}

/** @param {Opened} opened */
function close (opened) {
  if (!opened.own || !isOurs(opened)) return
  try {
    closeSync(opened.fd)
  } catch {}
}

module.exports = { open, close, isOurs, isNamed, isDeleted }
