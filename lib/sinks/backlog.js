'use strict'

// Lines that could not be written yet, as texts of bytes: in order, and never more than fit.

/** @param {number} most bytes; a longer line is taken where there is no other */
function createBacklog (most) {
  /** @type {string[]} */
  let lines = []
  let first = 0
  let bytes = 0

  return {
    /** How many lines wait. */
    size: () => lines.length - first,

    /** @returns {string} the oldest */
    first: () => lines[first],

    /** @param {string} line @returns {boolean} taken? */
    add (line) {
      const size = line.length
      if (bytes > 0 && bytes + size > most) return false
      bytes += size
      lines[lines.length] = line
      return true
    },

    /** The oldest is written. */
    shift () {
      bytes -= lines[first].length
      lines[first++] = ''
      if (first < lines.length) return
      lines = []
      first = 0
    },

    /** @returns {number} how many lines were given up */
    clear () {
      const lost = lines.length - first
      lines = []
      first = bytes = 0
      return lost
    }
  }
}

module.exports = { createBacklog }
