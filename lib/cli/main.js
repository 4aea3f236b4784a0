#!/usr/bin/env node
'use strict'

// The command line: finds a command in the table, parses its arguments, runs it, and prints one sentence for
// wrong usage.

const { commands } = require('./commands')
const { parse, quote, suggestion, UsageError } = require('./flags')
const { handleStreamErrors, print, printError } = require('./terminal')

/** @param {string[]} args */
async function main ([name, ...args]) {
  if (name === undefined) throw new UsageError('Missing command.')
  if (['--help', '-h', 'help'].includes(name)) {
    const { printHelpOf, printOverview } = require('./help')
    return args.length > 0 ? await printHelpOf(commandOf(args[0])) : await printOverview()
  }
  if (['--version', '-v'].includes(name)) return await print(`${require('../../package.json').version}\n`)
  const command = commandOf(name)
  const { values, operands } = parseFor(command, args)
  if (values.help) return await require('./help').printHelpOf(command)
  const { missing, extra, ends } = command.operands
  const isProgram = ends === 'program' || (ends !== undefined && !isPid(operands[0]))
  const max = missing === undefined ? 0 : 1
  if (missing !== undefined && operands.length === 0) throw new UsageError(missing)
  if (extra !== undefined && !isProgram && operands.length > max) {
    throw new UsageError(`${extra} Received ${quote(operands[max])}.`)
  }
  return await command.load()(values, operands)
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
  throw new UsageError(`Unknown command ${quote(name)}.${suggestion(name, Object.keys(commands))}`)
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

if (process.argv[2] !== 'run') handleStreamErrors()
main(process.argv.slice(2)).then((code) => { if (code) process.exitCode = code }, fail)
