'use strict'

// Handmade contexts and frames, for unit tests of code that reads chains.

const { Stack, parseFrame } = require('../../lib/stacks/frames')

/** @param {...string} lines without "    at " */
const framesOf = (...lines) => lines.map(parseFrame)

let lastId = 100

/**
 * Makes a context as readers see it, without a record.
 * @param {string} type
 * @param {object} [fields]
 * @param {string[]} [fields.lines] of its stack
 * @returns {any}
 */
function contextOf (type, { lines = [], ...fields } = {}) {
  return {
    type,
    asyncId: ++lastId,
    triggerAsyncId: 1,
    time: 0,
    origin: 'registered',
    detail: undefined,
    request: undefined,
    awaited: false,
    repeats: 1,
    folded: false,
    ref: 0,
    parent: undefined,
    stack: new Stack(lines.join('\n')),
    ...fields
  }
}

/** Makes each context the parent of the next; returns the last. @param {any[]} contexts oldest first */
function chained (...contexts) {
  for (let i = 1; i < contexts.length; i++) contexts[i].parent = contexts[i - 1]
  return contexts[contexts.length - 1]
}

/** Lists a chain, newest first. @param {any} newest */
function ancestry (newest) {
  const contexts = []
  for (let context = newest; context !== undefined; context = context.parent) contexts.push(context)
  return contexts
}

module.exports = { ancestry, chained, contextOf, framesOf }
