#!/usr/bin/env node
'use strict'

// The command line: finds a command in the table, parses its arguments, runs it, and prints one sentence for
// wrong usage. Prints the help of a command or of all. Help fits the terminal: paragraphs are filled,
// descriptions keep their column.

const { existsSync, statSync } = require('node:fs')
const { prose, wrap } = require('../../report/render/wrap')
const { attempt } = require('../files')
const { ownManifest } = require('../platform')
const { commands } = require('./commands')
const { helpFlag, parse, quote, suggestion, UsageError } = require('./flags')
const { handleStreamErrors, print, printError, width: terminalWidth } = require('./terminal')

const MAX_COLUMNS = 100
const MIN_DESCRIPTION = 30 // columns; with less room, a description gets its own lines
const NARROW_INDENT = '      '
const MAX_FLAG_COLUMNS = 26
const USAGE_COLUMNS = 33

/** A line with an indent of two, and a wider gap before its description: a usage, an example. */
const ITEM = /^( {2}\S+(?: \S+)*)(?: {2,}(\S.*))?$/

/** @param {string[]} args */
async function main ([name, ...args]) {
  if (name === undefined) throw new UsageError('Missing command.')
  if (['--help', '-h', 'help'].includes(name)) {
    return args.length > 0 ? await printHelpOf(commandOf(args[0])) : await printOverview()
  }
  if (['--version', '-v'].includes(name)) return await print(`${ownManifest().version}\n`)
  if (!isTarget(name) && isDirectory(name)) [name, args] = ['report', [name, ...args]]
  const isOfTarget = isTarget(name) || (isFlagOfTarget(name) && isTarget(args.at(-1) ?? ''))
  const command = isOfTarget ? commands.PID : commandOf(name)
  const { values, operands } = parseFor(command, isOfTarget ? [name, ...args] : args)
  if (values.help) return await printHelpOf(command)
  const { missing, extra, ends } = command.operands
  const isProgram = ends === 'program' || (ends !== undefined && !isPid(operands[0]))
  const max = missing === undefined ? 0 : 1
  if (missing !== undefined && operands.length === 0) throw new UsageError(missing)
  if (extra !== undefined && !isProgram && operands.length > max) {
    throw new UsageError(`${extra} Received ${quote(operands[max])}.`)
  }
  return await command.load()(values, operands)
}

/** Returns whether a word is not a command but a directory, of black boxes. @param {string} word */
function isDirectory (word) {
  return !Object.hasOwn(commands, word) && attempt(() => statSync(word).isDirectory()) === true
}

/** Returns whether a word is not a command but a PID, port, address or socket. @param {string} word */
function isTarget (word) {
  if (Object.hasOwn(commands, word) || word.startsWith('-')) return false
  return /^\d+$|:\d+$/.test(word) || require('../ask/system').isSocket(word)
}

/** Returns whether a word is a flag that may precede a target. @param {string} word */
function isFlagOfTarget (word) {
  return word.startsWith('--') && Object.hasOwn(commands.PID.flags(), word.slice(2).split('=', 1)[0])
}

/** @param {string | undefined} word */
const isPid = (word) => /^\d+$/.test(word ?? '')

/** @param {import('./commands').Command} command @param {string[]} args */
function parseFor ({ flags, operands: { ends } }, args) {
  const parsed = parse(args, flags(), ends !== undefined)
  const isPidFirst = ends === 'program or PID' && isPid(parsed.operands[0])
  return isPidFirst ? parse(args, flags()) : parsed // flags may follow a PID
}

/** @param {string} name */
function commandOf (name) {
  if (Object.hasOwn(commands, name)) return commands[name]
  if (name.startsWith('-')) {
    throw new UsageError(`Unknown flag ${quote(name)}: use a command first, as in "longstack run app.js".`)
  }
  throw new UsageError(`Unknown command ${quote(name)}.${remedyFor(name)}`)
}

/** Returns a sentence about a word that is not a command. @param {string} name */
function remedyFor (name) {
  const similar = suggestion(name, Object.keys(commands))
  if (similar !== '') return similar
  if (!existsSync(name)) return ' There is no file or directory with that name either.'
  const command = /\.[cm]?[jt]s$/.test(name) ? 'run' : 'report'
  return ` For a file, use "longstack ${command} ${name}".`
}

/** Prints an error and sets the exit code. @param {any} error */
function fail (error) {
  if (!(error instanceof UsageError)) {
    process.exitCode = 1
    const isSentence = error instanceof require('../ask/system').RefusedError ||
      (error?.code !== undefined && error.syscall !== undefined)
    return printError(`longstack: ${isSentence ? error.message : error?.stack ?? error}`)
  }
  process.exitCode = 2
  const [name] = process.argv.slice(2)
  printError(`longstack: ${error.message}`)
  printError(`See longstack ${name !== undefined && Object.hasOwn(commands, name) ? `${name} ` : ''}--help.`)
}

/**
 * Fits unindented paragraphs and lists of items.
 * @param {string} text
 * @param {number} width
 */
function fit (text, width) {
  return text.split('\n\n').map((block) => {
    const lines = block.split('\n')
    if (!block.startsWith(' ')) return wrap(prose(lines.join(' ')), width)
    return lines.flatMap((line) => {
      const [, head, description = ''] = /** @type {RegExpExecArray} */ (ITEM.exec(line))
      return itemLines(head, description, line.length - description.length, width)
    })
  })
}

/** @param {string} head @param {string} description @param {number} column @param {number} width */
function itemLines (head, description, column, width) {
  if (description === '') return [head]
  if (width - column < MIN_DESCRIPTION) return [head, ...wrap(prose(description), width, NARROW_INDENT)]
  const hanging = ' '.repeat(column)
  if (head.length >= column) return [head, ...wrap(prose(description), width, hanging)]
  return wrap(prose(description), width, head.padEnd(column), hanging)
}

/** @param {import('./commands').Flags} flags @param {number} width */
function flagLines (flags, width) {
  const rows = Object.entries({ ...flags, help: helpFlag }).map(([name, flag]) =>
    ({ head: `  --${name}${placeholder(flag)}`, description: flag.description }))
  const column = Math.min(MAX_FLAG_COLUMNS, Math.max(...rows.map(({ head }) => head.length))) + 2
  return rows.flatMap(({ head, description }) => itemLines(head, description, column, width))
}

/** @param {import('./commands').Flag} flag */
function placeholder ({ type, value = 'VALUE' }) {
  return type === 'boolean' ? '' : type === 'optional' ? `[=${value}]` : ` ${value}`
}

/** Prints the help of a command. @param {import('./commands').Command} command */
function printHelpOf ({ help, flags, notes = '' }) {
  const width = Math.min(terminalWidth(), MAX_COLUMNS)
  const below = notes === '' ? [] : fit(notes, width)
  return printBlocks([...fit(help, width), flagLines(flags(), width), ...below])
}

/** Prints the list of commands. */
function printOverview () {
  const row = (/** @type {string} */ head, /** @type {string} */ text) =>
    `${`  ${head}`.padEnd(USAGE_COLUMNS)}${text}`
  const list = Object.values(commands).map(({ usage, summary }) => row(`longstack ${usage}`, summary))
  const text = `Async tracing and long stack traces for Node.js.

${list.join('\n')}

Each command has --help.

${row('--help', 'print this text')}
${row('--version', 'print the version of longstack')}`
  return printBlocks(fit(text, Math.min(terminalWidth(), MAX_COLUMNS)))
}

/** @param {string[][]} blocks lines */
const printBlocks = (blocks) => print(`${blocks.map((lines) => lines.join('\n')).join('\n\n')}\n`)

if (process.argv[2] !== 'run') handleStreamErrors()
main(process.argv.slice(2)).then((code) => { if (code) process.exitCode = code }, fail)
