'use strict'

// Parses the text of native/heap-growth.cc: the functions that allocated the memory retained by the heap.

/**
 * @typedef {object} HeapGrowth
 * @property {number} sampled bytes that were allocated since memory became short and are still held
 * @property {Array<{ bytes: number, frames: string[] }>} growth of those, by function of the program,
 *   largest first; its frames innermost first
 */

/** @param {string} stack @returns {string[]} its frames, innermost first */
const framesOf = (stack) => stack.split('\n').map((line) => line.trim())
  .filter((line) => line.startsWith('at ')).map((line) => line.slice('at '.length))

/** @param {string} text numbers of bytes, each followed by a stack @returns {HeapGrowth['growth']} */
function growthOf (text) {
  const starts = [...text.matchAll(/^\d+$/gm)]
  return starts.map(({ 0: bytes, index }, i) =>
    ({ bytes: Number(bytes), frames: framesOf(text.slice(index, starts[i + 1]?.index)) }))
}

module.exports = { framesOf, growthOf }
