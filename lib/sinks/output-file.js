'use strict'

// Open file of an output's name, and the error if it cannot be written to. The file follows the name: log
// rotation puts another file in its place. It is opened so that no write can block the program: regular files
// write at once; pipes, terminals and devices are put into a mode in which a full one returns EAGAIN. That
// mode belongs to the open file and is shared with everyone who has it open, so a standard stream is reopened
// if the kernel allows it.

const fs = require('node:fs')
const { attempt, keptOpen, stateOf, stateOfOpen } = require('../files')

const { openSync, closeSync, readFileSync, readSync, writeSync } = fs
const { O_RDONLY, O_WRONLY, O_APPEND, O_CREAT, O_EXCL, O_NONBLOCK = 0, O_NOCTTY = 0 } = fs.constants
const FLAGS = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY // without O_NONBLOCK a FIFO waits for a reader
const MODE = 0o600
const CHECK_MS = 1000 // between two checks that the name still refers to the open file
const LINE_FEED = 10

/** @type {Record<string, string>} */
const reasons = {
  ENOENT: 'its directory does not exist',
  ENOTDIR: 'its directory is a file',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'its file system is read-only',
  ERR_ACCESS_DENIED: "Node's permission model forbids it",
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file has reached its maximum size',
  EMFILE: 'the process has too many open files',
  ENFILE: 'the kernel has too many open files',
  EPIPE: 'it has no reader',
  ENXIO: 'it has no reader',
  ECONNRESET: 'it has no reader',
  EBADF: 'it is closed',
  EIO: 'the device reports an error',
  ESTALE: 'the file server no longer knows it',
  ELOOP: 'its symbolic links form a circle',
  ENAMETOOLONG: 'its name is too long'
}

/** Errors without a name in libuv (its uv_err_name), identified by their number. */
const unnamedCodes = /** @type {const} */ (['EDQUOT', 'ESTALE'])

/** Codes with the same meaning, which is reported once. @type {Record<string, string>} */
const sameAs = { ENXIO: 'EPIPE', ECONNRESET: 'EPIPE', EPERM: 'EACCES' }

/**
 * @typedef {object} Opened
 * @property {number} fd
 * @property {boolean} regular a file on a disk, or anything that behaves like one
 * @property {boolean} own whether longstack must close it
 * @property {Identity} identity of the open file: a program that closes foreign descriptors may put its own
 *   in their place
 *
 * @typedef {Pick<import('node:fs').BigIntStats, 'dev' | 'ino' | 'rdev'>} Identity
 */

class OutputFile {
  #target
  #isText
  #checkAt = 0
  /** minimum bytes of a regular file: the size at the last check plus bytes written since */
  #minSize = 0

  /**
   * @param {{ fd?: number, path?: string }} target
   * @param {boolean} isText whether it consists of lines
   */
  constructor (target, isText) {
    this.#target = target
    this.#isText = isText
    /** a new object for each opened file @type {Opened | undefined} */
    this.opened = undefined
    /** the name may refer to another file, which must be opened */
    this.isMoved = false
  }

  /**
   * Opens the file, or the file that its name refers to now.
   * @param {number} time ms
   * @throws errors of open(); the old file then stays open, unless it is deleted
   */
  prepare (time) {
    const old = this.opened
    if (old !== undefined && !this.isMoved) return
    const next = old === undefined ? open(this.#target) : this.#openInsteadOf(old)
    this.isMoved = false
    if (old !== undefined && isSame(old, next.identity)) return close(next)
    this.release()
    this.opened = next
    if (next.regular && next.own && this.#isText) {
      attempt(() => endTornLine(next, /** @type {string} */ (this.#target.path)))
    }
    this.#minSize = 0
    this.#checkAt = time + CHECK_MS
  }

  /** @param {Opened} old */
  #openInsteadOf (old) {
    try {
      return open(this.#target)
    } catch (error) {
      if (!isUnchanged(old) || stateOfOpen(old.fd).nlink === 0n) this.release()
      throw error
    }
  }

  /**
   * Checks that the descriptor still is the opened file and, once a second, which file its name refers to.
   * Called before each synchronous series of writes: the program may have closed the descriptor in the
   * meantime, and opened its own file with the same number.
   * @param {number} time ms
   * @returns {boolean} false if it is a standard stream that the program closed
   */
  check (time) {
    const { opened } = this
    if (opened === undefined) return true
    const { path } = this.#target
    if (!isUnchanged(opened)) {
      this.release()
      return path !== undefined
    }
    if (time < this.#checkAt) return true
    this.#checkAt = time + CHECK_MS
    if (!opened.regular) return true
    this.isMoved ||= path !== undefined && !isSame(opened, attempt(() => stateOf(path)))
    // A truncated file counts as a new one, as with logrotate's copytruncate
    const size = Number(stateOfOpen(opened.fd).size)
    if (size < this.#minSize) this.opened = { ...opened }
    this.#minSize = size
    return true
  }

  /** @param {number} length bytes written to the open file */
  noteWritten (length) {
    this.#minSize += length
  }

  release () {
    if (this.opened !== undefined) close(this.opened)
    this.opened = undefined
  }
}

/** @param {{ fd?: number, path?: string }} target @returns {Opened} */
function open ({ fd, path }) {
  if (fd !== undefined) return openStream(fd)
  return openedFile(openSync(/** @type {string} */ (path), FLAGS | O_CREAT, MODE), true)
}

/** Creates a file that is opened later. @param {string} path @returns {unknown} error on failure */
function createIfMissing (path) {
  try {
    closeSync(openSync(path, FLAGS | O_CREAT | O_EXCL, MODE))
  } catch (error) {
    if (/** @type {any} */ (error).code !== 'EEXIST') return error
  }
}

/** @param {number} fd stdout or stderr @returns {Opened} */
function openStream (fd) {
  const opened = openedFile(fd, false)
  if (opened.regular) return opened
  // A socket cannot be reopened
  const reopened = attempt(() => openedFile(openSync(`/proc/self/fd/${fd}`, FLAGS), true))
  if (reopened !== undefined) return reopened
  const state = stateOfOpen(fd)
  if (!state.isSocket() && !state.isFIFO()) return opened // a terminal blocks only while its output is paused
  // Node makes a pipe or socket non-blocking as soon as process.stdout is read, so only that is done here.
  if (isBlocking(fd) !== false) Reflect.get(process, fd === 1 ? 'stdout' : 'stderr')
  if (isBlocking(fd) === true) {
    throw Object.assign(new Error('every write could block the program'), { code: 'EWOULDBLOCK' })
  }
  return opened
}

/** Returns whether O_NONBLOCK is not set, as Linux reports it; undefined elsewhere. @param {number} fd */
function isBlocking (fd) {
  const text = attempt(() => readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1')) ?? ''
  const flags = /^flags:\s*([0-7]+)/m.exec(text)?.[1]
  return flags === undefined ? undefined : (parseInt(flags, 8) & O_NONBLOCK) === 0
}

/** @param {number} fd @param {boolean} own @returns {Opened} */
function openedFile (fd, own) {
  const state = stateOfOpen(fd)
  const { dev, ino, rdev } = state
  if (own) keptOpen.set(fd, { dev, ino })
  return { fd, own, regular: state.isFile(), identity: { dev, ino, rdev } }
}

/** @param {Opened} opened @param {Identity | undefined} other undefined if there is no file */
function isSame ({ identity: { dev, ino, rdev } }, other) {
  return other !== undefined && ino === other.ino && dev === other.dev && rdev === other.rdev
}

/**
 * Returns whether the descriptor still is the opened file: the program may have closed it, and its number may
 * have been reused.
 * @param {Opened} opened
 */
function isUnchanged (opened) {
  return isSame(opened, attempt(() => stateOfOpen(opened.fd)))
}

/**
 * Ends the last line of a file if it has no line feed. The kernel can stop in the middle of a write when it
 * kills a process, and the first new line would become part of the torn one.
 * @param {Opened} opened
 * @param {string} path
 * @throws {NodeJS.ErrnoException} if the file may not be read, or is full
 */
function endTornLine (opened, path) {
  const fd = openSync(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
  try {
    const state = stateOfOpen(fd)
    const last = Buffer.of(LINE_FEED)
    if (state.size > 0n && isSame(opened, state)) readSync(fd, last, 0, 1, state.size - 1n)
    if (last[0] !== LINE_FEED) writeSync(opened.fd, Buffer.of(LINE_FEED))
  } finally {
    closeSync(fd)
  }
}

/** @param {Opened} opened */
function close (opened) {
  if (opened.own) keptOpen.delete(opened.fd)
  if (opened.own && isUnchanged(opened)) attempt(() => closeSync(opened.fd))
}

/** Returns the error code of a failed write. @param {any} error @returns {string | undefined} */
function codeOf (error) {
  const code = error?.code
  if (code !== 'UNKNOWN') return typeof code === 'string' ? code : undefined
  const { constants } = require('node:os') // only here: the program may be the first that loads it
  return unnamedCodes.find((name) => constants.errno[name] === -error.errno) ?? code
}

/** Returns the code and a description. @param {any} error @returns {{ code: string, reason: string }} */
function faultOf (error) {
  const code = codeOf(error) ?? 'FAILED'
  const reason = reasons[code] === undefined
    ? String(error?.message ?? error).split('\n', 1)[0].slice(0, 200)
    : `${reasons[code]} (${code})`
  return { code: sameAs[code] ?? code, reason }
}

module.exports = { OutputFile, createIfMissing, codeOf, faultOf }
