'use strict'

// Colours for a terminal, through chalk, which is loaded only when something is printed and obeys
// FORCE_COLOR; NO_COLOR is obeyed here. Text in, text out, unchanged without colours.

const { isatty } = require('node:tty')

/**
 * @param {string} text a stack, hops or a report
 * @param {'stdout' | 'stderr'} [stream] where it goes
 * @returns {string}
 */
function paint (text, stream = 'stderr') {
  // chalk imports node:process, which opens all three standard streams: only where there may be colours.
  const isPlain = process.env.NO_COLOR || !isatty(stream === 'stderr' ? 2 : 1)
  if (process.env.FORCE_COLOR === undefined && isPlain) return text
  const chalk = /** @type {any} */ (require('chalk'))
  const colours = stream === 'stderr' ? chalk.chalkStderr : chalk.default
  if (colours.level === 0) return text
  return text.split('\n').map((line) => {
    if (line.startsWith('  ── ')) {
      return line.includes(' · reader') ? colours.yellow(line) : colours.cyan(line)
    }
    if (line.startsWith('    at ')) return /\bnode:|node_modules/.test(line) ? colours.dim(line) : line
    if (/^\w*Error\b/.test(line)) return colours.red(line)
    return /^\S/.test(line) ? colours.bold(line) : line
  }).join('\n')
}

module.exports = { paint }
