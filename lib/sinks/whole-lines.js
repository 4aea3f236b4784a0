'use strict'

// Where lines end in a batch of them.

const PIPE_BUF = 4096 // bytes that reach a pipe without those of another writer in between; see pipe(7)
const LINE_FEED = 10

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

/** @param {Buffer} bytes */
function countLines (bytes) {
  let count = 0
  for (let i = bytes.indexOf(LINE_FEED); i !== -1; i = bytes.indexOf(LINE_FEED, i + 1)) count++
  return count
}

module.exports = { LINE_FEED, PIPE_BUF, countLines, endOfPiece }
