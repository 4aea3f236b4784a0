'use strict'

// Where lines end in a batch of them.

const PIPE_BUF = 4096 // bytes that reach a pipe without those of another writer in between; see pipe(7)
const LINE_FEED = 10
const DEFINITION = 'l'.charCodeAt(0) // the first letter of its first key, see definitions.js

/**
 * Returns where the whole lines end that one write of a pipe takes, or the first line where that is longer.
 * @param {Buffer} bytes
 * @param {number} start
 */
function endOfPiece (bytes, start) {
  if (start + PIPE_BUF >= bytes.length) return bytes.length
  const end = bytes.lastIndexOf(LINE_FEED, start + PIPE_BUF - 1) + 1
  return end > start ? end : bytes.indexOf(LINE_FEED, start) + 1
}

/** Counts the spans among whole lines; the others are definitions. @param {Buffer} bytes */
function countSpans (bytes) {
  let count = 0
  for (let start = 0, end; start < bytes.length; start = end + 1) {
    end = bytes.indexOf(LINE_FEED, start)
    if (end === -1) break
    if (bytes[start + 2] !== DEFINITION) count++
  }
  return count
}

module.exports = { LINE_FEED, PIPE_BUF, countSpans, endOfPiece }
