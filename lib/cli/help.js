'use strict'

// The help of a command, as the table says it, and of all of them. Fits the terminal: paragraphs are filled,
// descriptions keep their column.

const { prose, wrap } = require('../../report/render/wrap')
const { commands } = require('./commands')
const { helpFlag } = require('./flags')
const { print, width } = require('./terminal')

/**
 * @typedef {import('./commands').Flag} Flag
 * @typedef {import('./commands').Flags} Flags
 */

const MAX_COLUMNS = 100
const FLAG_COLUMNS = 90 // of a flag and its description, before they are fitted
const MAX_FLAG_COLUMNS = 26
const USAGE_COLUMNS = 33
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

/** Lists flags. @param {Flags} flags @returns {string} at least one line for each */
function describe (flags) {
  const rows = Object.entries({ ...flags, help: helpFlag }).flatMap(([name, flag]) =>
    flag.description === undefined ? [] : [[`  --${name}${placeholder(flag)}`, flag.description]])
  const width = Math.min(MAX_FLAG_COLUMNS, Math.max(...rows.map(([flag]) => flag.length))) + 2
  return rows.map(([flag, description]) => describeFlag(flag, description, width)).join('\n')
}

/** @param {Flag} flag */
function placeholder ({ type, value = 'VALUE' }) {
  return type === 'boolean' ? '' : type === 'optional' ? `[=${value}]` : ` ${value}`
}

/** @param {string} flag @param {string} description @param {number} width of the flag's column */
function describeFlag (flag, description, width) {
  const lines = ['']
  for (const word of description.split(' ')) {
    if (lines[lines.length - 1].length + word.length >= FLAG_COLUMNS - width) lines.push('')
    lines[lines.length - 1] += `${lines[lines.length - 1] === '' ? '' : ' '}${word}`
  }
  const indent = ' '.repeat(width)
  const start = flag.length >= width ? `${flag}\n${indent}` : flag.padEnd(width)
  return start + lines.join(`\n${indent}`)
}

/** Prints the help of a command. @param {import('./commands').Command} command */
function printHelpOf ({ help, flags, notes }) {
  return printHelp([help, describe(flags()), ...(notes === undefined ? [] : [notes])].join('\n\n'))
}

/** Prints which commands there are. */
function printOverview () {
  const row = (/** @type {string} */ head, /** @type {string} */ text) =>
    `${`  ${head}`.padEnd(USAGE_COLUMNS)}${text}`
  const list = Object.values(commands).map(({ usage, summary }) => row(`longstack ${usage}`, summary))
  return printHelp([
    'Async tracing and long stack traces for Node.js.',
    list.join('\n'),
    'Each command has --help.',
    [row('--help', 'print this text'), row('--version', 'print the version of longstack')].join('\n')
  ].join('\n\n'))
}

/** @param {string} help */
const printHelp = (help) => print(fitHelp(help, Math.min(width(), MAX_COLUMNS)))

module.exports = { printHelpOf, printOverview }
