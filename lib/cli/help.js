'use strict'

// Fits the help of a command to the terminal: paragraphs are filled, descriptions keep their column.

const { prose, wrap } = require('../../report/render/wrap')

const MIN_DESCRIPTION = 30 // columns; where there are less, a description gets lines of its own
const NARROW_INDENT = '      '

/** A line with two spaces before it: a flag, a command, an example. */
const ITEM = /^( {2}\S+(?: \S+)*)(?: {2,}(\S.*))?$/

/**
 * @param {string} help whose paragraphs have no indent
 * @param {number} width
 * @returns {string}
 */
function fitHelp (help, width) {
  const blocks = help.trimEnd().split('\n\n').map((block) => fitBlock(block.split('\n'), width).join('\n'))
  return `${blocks.join('\n\n')}\n`
}

/** @param {string[]} lines @param {number} width */
function fitBlock (lines, width) {
  /** @type {string[]} */
  const entries = []
  for (const line of lines) {
    const isContinued = entries.length > 0 && (/^ {3}/.test(line) || !/^ /.test(`${line}${entries.at(-1)}`))
    if (isContinued) entries.push(`${entries.pop()}${/^ {3}/.test(line) ? '\n' : ' '}${line}`)
    else entries.push(line)
  }
  return entries.flatMap((entry) => fitEntry(entry, width))
}

/** @param {string} entry a paragraph, or an item with the lines of its description @param {number} width */
function fitEntry (entry, width) {
  const [first, ...others] = entry.split('\n')
  const [, head, start = ''] = ITEM.exec(first) ?? []
  if (head === undefined) return wrap(prose(entry), width)
  const description = [start, ...others.map((line) => line.trim())].join(' ').trim()
  if (description === '') return [first]
  const column = start === '' ? others[0].search(/\S/) : first.indexOf(start, head.length)
  if (width - column < MIN_DESCRIPTION) return [head, ...wrap(prose(description), width, NARROW_INDENT)]
  const hanging = ' '.repeat(column)
  if (start === '') return [head, ...wrap(prose(description), width, hanging)]
  return wrap(prose(description), width, first.slice(0, column), hanging)
}

module.exports = { fitHelp }
