'use strict'

// Explains a blocking callback: the frames sampled inside it, then the hops that led to it.

const { startQuery } = require('../core/clock')
const { Context } = require('../core/context')
const { kindOf } = require('../core/kinds')
const { Stack } = require('../stacks/frames')
const { view } = require('../format/context-view')
const { formatHops } = require('../format/hops')
const { settings } = require('../settings')
const { copyHop } = require('../stacks/hop-frames')
const { describe, hops } = require('../stacks/hops')

const kind = kindOf('BLOCKED', false)

/** @type {import('./blocking-callback').Explain} */
function explain (context, text) {
  startQuery()
  const stack = new Stack(text)
  const holder = new Context(0, 0, kind, undefined, 0)
  holder.stack = stack
  const { frames, lines } = describe(holder)
  const printed = hops(context, { above: stack.frames })
  // With no frame of the program on the stack, Node's own frames are the only information.
  const frameLines = lines.length > 0
    ? lines
    : stack.frames.slice(0, settings.options.frames).map((frame) => `    at ${frame.text}`)
  const parts = [...frameLines, formatHops(printed)].filter((part) => part !== '')
  return { frames, stack: parts.join('\n'), chain: printed.map(copyHop), context: view(context) }
}

module.exports = { explain }
