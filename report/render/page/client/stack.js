'use strict'

// Renders a long stack: hops are emphasized, frames that are not the program's own are dimmed.

const { h } = require('./dom')

/** @param {string} text */
function stack (text) {
  const lines = text.split('\n').map((line) => h('span', { class: kindOf(line) }, `${line}\n`))
  return h('pre', { class: 'stack', tabindex: 0, 'aria-label': 'Stack' }, lines)
}

/** @param {string} line */
function kindOf (line) {
  if (/^\s*── /.test(line)) return 'hop'
  if (!/^\s+at /.test(line)) return 'head'
  return /\bnode:|node_modules/.test(line) ? 'foreign' : undefined
}

/** Renders a stack that is collapsed at first. @param {string | undefined} text @param {string} [title] */
function folded (text, title = 'Stack') {
  return text === undefined ? undefined : h('details', {}, h('summary', {}, title), stack(text))
}

module.exports = { stack, folded }
