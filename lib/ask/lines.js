'use strict'

// JSON, one message a line: what goes over a socket between a command and the thread that it asks.

const { parse } = JSON // programs replace it

/**
 * Returns what takes a text that is cut anywhere, and calls `onMessage` with each object in it.
 * @param {(message: any) => void} onMessage
 * @param {number} [maxLine] characters, after which a line is forgotten
 * @returns {(text: string) => void}
 */
function createLineReader (onMessage, maxLine = Infinity) {
  let rest = ''
  return (text) => {
    const [first, ...others] = text.split('\n')
    rest += first // joined here alone: a profile comes in a thousand pieces
    for (const next of others) {
      const message = parseObject(rest)
      if (message !== undefined) onMessage(message)
      rest = next
    }
    if (rest.length > maxLine) rest = ''
  }
}

/** @param {string} line @returns {any} undefined: no object */
function parseObject (line) {
  try {
    const message = parse(line)
    return typeof message === 'object' && message !== null ? message : undefined
  } catch {
    return undefined
  }
}

module.exports = { createLineReader }
