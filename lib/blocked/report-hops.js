'use strict'

// What a long run was about: the frames inside of it, then the hops that led there.

const { Context } = require('../context/context')
const { kindOf } = require('../context/kinds')
const { Stack } = require('../stacks/frames')
const { formatHops } = require('../format/hops')

const kind = kindOf('BLOCKED', false)

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('../stacks/chain').createChain>} deps.chain
 * @param {(context: import('../context/context').Context | undefined) => import('../context/view').ContextView | undefined} deps.view
 * @param {(hop: import('../stacks/chain').PrintedHop) => import('../stacks/chain').Hop} deps.plain
 * @param {() => number} deps.most frames
 * @returns {(context: import('../context/context').Context | undefined, text: string) => import('./detector').Explained}
 */
function createBlockedHops ({ chain, view, plain, most }) {
  return (context, inside) => {
    const stack = new Stack(inside)
    const holder = new Context(0, 0, kind, undefined, 0)
    holder.stack = stack
    const { frames, lines } = chain.describe(holder)
    const hops = chain.hops(context, { above: stack.frames })
    // Where nothing of the program's was on the stack, Node's own frames are all there is to tell.
    const shown = lines.length > 0 ? lines : stack.frames.slice(0, most()).map((frame) => `    at ${frame.text}`)
    return { frames, stack: [...shown, formatHops(hops)].filter((part) => part !== '').join('\n'), chain: hops.map(plain), context: view(context) }
  }
}

module.exports = { createBlockedHops }
