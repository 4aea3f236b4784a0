'use strict'

// A long stack: hops stand out, frames that are not the program's own step back.

const { h } = require('./dom')

/** @param {string} text */
function stack (text) {
  return h('pre', { class: 'stack', tabindex: 0, 'aria-label': 'Stack' }, text.split('\n').map((line) => h('span', { class: kindOf(line) }, `${line}\n`)))
}

/** @param {string} line */
function kindOf (line) {
  if (/^\s*── /.test(line)) return 'hop'
  if (!/^\s+at /.test(line)) return 'head'
  return /\bnode:|node_modules/.test(line) ? 'foreign' : undefined
}

/** Folded away until asked for. @param {string | undefined} text @param {string} [title] */
function folded (text, title = 'Stack') {
  return text === undefined ? undefined : h('details', {}, h('summary', {}, title), stack(text))
}

module.exports = { stack, folded }
