'use strict'

// Lines that could not be written yet, as texts of bytes: in order, and of bounded size.

class Backlog {
  #maxBytes
  /** @type {string[]} */
  #lines = []
  #first = 0
  #bytes = 0

  /** @param {number} maxBytes a longer line is accepted only into an empty backlog */
  constructor (maxBytes) {
    this.#maxBytes = maxBytes
  }

  /** The number of lines that wait. */
  get size () { return this.#lines.length - this.#first }

  /** The oldest line. @returns {string} */
  get first () { return this.#lines[this.#first] }

  /** @param {string} line @returns {boolean} false: there is no space for it */
  add (line) {
    const size = line.length
    if (this.#bytes > 0 && this.#bytes + size > this.#maxBytes) return false
    this.#bytes += size
    this.#lines[this.#lines.length] = line
    return true
  }

  /** Removes the oldest line. */
  shift () {
    this.#bytes -= this.#lines[this.#first].length
    this.#lines[this.#first++] = ''
    if (this.#first < this.#lines.length) return
    this.#lines = []
    this.#first = 0
  }

  /** Removes all lines. @returns {number} how many there were */
  clear () {
    const { size } = this
    this.#lines = []
    this.#first = this.#bytes = 0
    return size
  }
}

module.exports = { Backlog }
