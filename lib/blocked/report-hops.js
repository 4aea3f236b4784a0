'use strict'

// Explains a blocking callback: the frames sampled inside it, then the hops that led to it.

const { Context } = require('../context/context')
const { kindOf } = require('../context/kinds')
const { Stack } = require('../stacks/frames')
const { formatHops } = require('../format/hops')

const kind = kindOf('BLOCKED', false)

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('../stacks/chain').createChain>} deps.chain
 * @param {(context: Context | undefined) => import('../context/view').ContextView | undefined} deps.view
 * @param {(hop: import('../stacks/chain').PrintedHop) => import('../stacks/chain').Hop} deps.toHop
 * @param {() => number} deps.maxFrames
 * @returns {import('./blocking-callback').Explain}
 */
function createBlockedHops ({ chain, view, toHop, maxFrames }) {
  return (context, text) => {
    const stack = new Stack(text)
    const holder = new Context(0, 0, kind, undefined, 0)
    holder.stack = stack
    const { frames, lines } = chain.describe(holder)
    const hops = chain.hops(context, { above: stack.frames })
    // With no frame of the program on the stack, Node's own frames are the only information.
    const frameLines = lines.length > 0
      ? lines
      : stack.frames.slice(0, maxFrames()).map((frame) => `    at ${frame.text}`)
    const parts = [...frameLines, formatHops(hops)].filter((part) => part !== '')
    return { frames, stack: parts.join('\n'), chain: hops.map(toHop), context: view(context) }
  }
}

module.exports = { createBlockedHops }
