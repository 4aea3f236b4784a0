'use strict'

// Opens what spans are written to so that no write can block the program: regular files write at once, all
// else (pipes, terminals, devices) is put into a mode in which a full one returns EAGAIN. That mode belongs
// to the open file and is shared with all that have it open, so a standard stream is opened again where the
// kernel allows it.

const fs = require('node:fs')
const { stateOf, stateOfOpen } = require('../files')

const { openSync, closeSync, readFileSync } = fs
const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK = 0, O_NOCTTY = 0 } = fs.constants
const MODE = 0o600

/**
 * @typedef {object} Opened
 * @property {number} fd
 * @property {boolean} regular a file on a disk, or what behaves like one
 * @property {boolean} own to be closed by longstack
 * @property {string} identity of the open file: a program that closes foreign descriptors may put its own in
 *   their place
 */

/** @param {{ fd?: number, path?: string }} target @returns {Opened} */
function open ({ fd, path }) {
  return fd === undefined ? openPath(/** @type {string} */ (path)) : openStream(fd)
}

/** @param {string} path @returns {Opened} */
function openPath (path) {
  // Without O_NONBLOCK, opening a FIFO waits for a reader.
  return openedFile(openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, MODE), true)
}

/** @param {number} fd stdout or stderr @returns {Opened} */
function openStream (fd) {
  if (stateOfOpen(fd).isFile()) return openedFile(fd, false)
  try {
    return openedFile(openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY), true)
  } catch {
    return useShared(fd)
  }
}

/** Uses a stream that cannot be opened again, such as a socket. @param {number} fd @returns {Opened} */
function useShared (fd) {
  const opened = openedFile(fd, false)
  if (!canBlock(fd)) return opened
  // Node makes a pipe or socket non-blocking as soon as the program reads process.stdout, which is all that
  // is done here.
  if (isBlocking(fd) !== false) touch(fd === 1 ? 'stdout' : 'stderr')
  if (isBlocking(fd) === true) {
    throw Object.assign(new Error('every write could block the program'), { code: 'EWOULDBLOCK' })
  }
  return opened
}

/** @param {'stdout' | 'stderr'} name */
function touch (name) {
  return process[name]
}

/**
 * Returns whether a write may block; a terminal does so only while its output is paused.
 * @param {number} fd
 */
function canBlock (fd) {
  const stat = stateOfOpen(fd)
  return stat.isSocket() || stat.isFIFO()
}

/** Returns whether O_NONBLOCK is not set, as Linux reports it; undefined elsewhere. @param {number} fd */
function isBlocking (fd) {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]
    return flags === undefined ? undefined : (parseInt(flags, 8) & O_NONBLOCK) === 0
  } catch {
    return undefined
  }
}

/** @param {number} fd @param {boolean} own @returns {Opened} */
function openedFile (fd, own) {
  const stat = stateOfOpen(fd)
  return { fd, own, regular: stat.isFile(), identity: identityOf(stat) }
}

/** @param {import('node:fs').BigIntStats} stat */
function identityOf ({ dev, ino, rdev }) {
  return `${dev}:${ino}:${rdev}`
}

/**
 * Returns whether the descriptor still is the file that was opened: the program may have closed it, and the
 * number may have been used again.
 * @param {Opened} opened
 */
function isUnchanged ({ fd, identity }) {
  try {
    return identityOf(stateOfOpen(fd)) === identity
  } catch {
    return false
  }
}

/** Returns whether the path still leads to the open file. @param {Opened} opened @param {string} path */
function isNamed ({ identity }, path) {
  try {
    return identityOf(stateOf(path)) === identity
  } catch {
    return false
  }
}

/** Returns whether the open file is deleted, so that what is written to it is lost. @param {Opened} opened */
function isDeleted ({ fd }) {
  return stateOfOpen(fd).nlink === 0n
}

/** @param {Opened} opened @returns {number} bytes */
function sizeOf ({ fd }) {
  return Number(stateOfOpen(fd).size)
}

/** @param {Opened} opened */
function close (opened) {
  if (!opened.own || !isUnchanged(opened)) return
  try {
    closeSync(opened.fd)
  } catch {}
}

module.exports = { close, isDeleted, isNamed, isUnchanged, open, sizeOf }
