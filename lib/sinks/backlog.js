'use strict'

// Lines that could not be written yet, as texts of bytes: in order, and of bounded size.

const { isDefinition } = require('../encoding/definitions')

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

  /** The number of spans among them. */
  get spans () {
    let count = 0
    for (let i = this.#first; i < this.#lines.length; i++) if (!isDefinition(this.#lines[i])) count++
    return count
  }

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

  /** Puts lines before all others, however many. @param {string} text of bytes, whole lines */
  prepend (text) {
    const lines = text.split('\n').slice(0, -1).map((line) => `${line}\n`)
    this.#lines = [...lines, ...this.#lines.slice(this.#first)]
    this.#first = 0
    this.#bytes += text.length
  }

  /** Removes the oldest line. @returns {string} it */
  shift () {
    const line = this.#lines[this.#first]
    this.#bytes -= line.length
    this.#lines[this.#first++] = ''
    if (this.#first === this.#lines.length) {
      this.#lines = []
      this.#first = 0
    }
    return line
  }

  /** Removes all lines. @returns {number} how many spans there were */
  clear () {
    const size = this.spans
    this.#lines = []
    this.#first = this.#bytes = 0
    return size
  }
}

module.exports = { Backlog }
