'use strict'

// Frames of V8's profiler as text, as hops print theirs. longstack's own are one frame; those by which Node
// calls the program are left out, and all others of Node stay: they tell where the CPU went.

const { fileURLToPath } = require('node:url')
const { parseFrame } = require('../stacks/frames')
const { mapFrame } = require('../stacks/source-maps')

const OWN = '(longstack)'

/** @typedef {import('./cpu-samples').CallFrame} CallFrame */

function createFrameTexts () {
  /** @type {Map<CallFrame, { text: string, kind: string }>} */
  const described = new Map()

  /** @param {CallFrame} frame */
  function describe (frame) {
    let result = described.get(frame)
    if (result === undefined) described.set(frame, result = describeFrame(frame))
    return result
  }

  /**
   * Returns the frames of a stack as text, innermost first.
   * @param {CallFrame[]} stack innermost first
   * @returns {string[]}
   */
  return (stack) => {
    const frames = stack.map(describe)
    let end = frames.length
    while (end > 1 && frames[end - 1].kind === 'core' && frames[end - 2].kind !== 'builtin') end--
    return frames.slice(0, end).map(({ text }) => text)
      .filter((text, index, texts) => text !== OWN || texts[index - 1] !== OWN)
  }
}

/** @param {CallFrame} frame */
function describeFrame ({ functionName, url, lineNumber, columnNumber }) {
  const name = functionName === '' ? '<anonymous>' : functionName
  if (url === '') return { text: name, kind: 'builtin' }
  const line = `${name} (${pathOf(url)}:${lineNumber + 1}:${columnNumber + 1})`
  const frame = parseFrame(line)
  if (frame.kind === 'own') return { text: OWN, kind: 'own' }
  if (frame.kind === 'core') return { text: line, kind: 'core' }
  const { text } = mapFrame(frame)
  return { text: text.endsWith(')') ? text : `<anonymous> (${text})`, kind: frame.kind }
}

/** @param {string} url @returns {string} */
function pathOf (url) {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : url
  } catch {
    return url
  }
}

module.exports = { createFrameTexts, pathOf }
