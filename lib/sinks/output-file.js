'use strict'

// The open file behind the name of an output. Follows the name: log rotation puts another file in its place.

const { close, isDeleted, isNamed, isUnchanged, open, sizeOf } = require('./open-file')

/** @typedef {import('./open-file').Opened} Opened */

const CHECK_MS = 1000 // between two checks whether the name still leads to the open file

class OutputFile {
  #target
  #checkAt = 0
  /** bytes that a regular file must have: those when it was checked last, and what was written since */
  #minSize = 0

  /** @param {{ fd?: number, path?: string }} target */
  constructor (target) {
    this.#target = target
    /** another object for each file that is opened @type {Opened | undefined} */
    this.opened = undefined
    /** the name may lead to another file, which is to be opened */
    this.isMoved = false
  }

  /** Whether it has a name, which can lead to another file. */
  get isNamed () { return this.#target.path !== undefined }

  /** The name is to be opened again. */
  reopen () {
    this.isMoved = this.opened !== undefined
  }

  /**
   * Opens the file, or the one that its name leads to now.
   * @param {number} time ms
   * @throws what open() throws; the old file stays open then, unless it is deleted
   */
  prepare (time) {
    if (this.opened === undefined) this.#use(open(this.#target), time)
    else if (this.isMoved) this.#follow(this.opened, time)
  }

  /** @param {Opened} opened @param {number} time ms */
  #use (opened, time) {
    this.opened = opened
    this.isMoved = false
    this.#minSize = 0
    this.#checkAt = time + CHECK_MS
  }

  /** @param {Opened} old @param {number} time ms */
  #follow (old, time) {
    const next = this.#openInsteadOf(old)
    this.isMoved = false
    if (next.identity === old.identity) return close(next)
    this.release()
    this.#use(next, time)
  }

  /** @param {Opened} old */
  #openInsteadOf (old) {
    try {
      return open(this.#target)
    } catch (error) {
      if (!isUnchanged(old) || isDeleted(old)) this.release()
      throw error
    }
  }

  /**
   * Checks now and then whether the file is still open, and what its name leads to.
   * @param {number} time ms
   * @returns {boolean} false: it is a standard stream that the program closed
   */
  check (time) {
    if (time < this.#checkAt) return true
    this.#checkAt = time + CHECK_MS
    const { opened } = this
    if (opened === undefined) return true
    const { path } = this.#target
    if (isUnchanged(opened)) {
      this.isMoved ||= path !== undefined && opened.regular && !isNamed(opened, path)
      if (opened.regular) this.#noteSize(opened)
      return true
    }
    this.release()
    return path !== undefined
  }

  /** A file that was cut off, as logrotate's copytruncate does, is another one. @param {Opened} opened */
  #noteSize (opened) {
    const size = sizeOf(opened)
    if (size < this.#minSize) this.opened = { ...opened }
    this.#minSize = size
  }

  /** @param {number} length of what was written to the open file, in bytes */
  noteWritten (length) {
    this.#minSize += length
  }

  release () {
    if (this.opened !== undefined) close(this.opened)
    this.opened = undefined
  }
}

module.exports = { OutputFile }
