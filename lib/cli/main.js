#!/usr/bin/env node
'use strict'

// longstack on the command line: finds the command, and says in one sentence what is wrong with a call.

const { nearest } = require('../errors')
const { Wrong, show } = require('./flags')
const { print, quietly, say } = require('./terminal')

/**
 * @typedef {object} Command
 * @property {string} help
 * @property {(args: string[]) => Promise<number | void>} main gives the exit code, if it is not 0
 */

/** Each is loaded only when it is called. @type {Record<string, () => Command>} */
const commands = {
  run: () => require('./run'),
  report: () => require('./report'),
  doctor: () => require('./doctor')
}

/** Those that a later version brings. */
const later = ['why', 'attach']

const HELP = `Async tracing and long stack traces for Node.js.

  longstack run app.js [args]    run a program with long stack traces
  longstack report FILE…         spans to a summary: quartiles, densities, box plots, blockers, the slowest
  longstack doctor               what is in force on this machine and why

Each of them has --help.

  --help                         this text
  --version                      the version of longstack
`

/** @param {string[]} args */
async function main ([name, ...args]) {
  if (name === undefined) throw new Wrong('No command is named.')
  if (name === '--help' || name === '-h' || name === 'help') return await print(args.length > 0 ? command(args[0]).help : HELP)
  if (name === '--version') return await print(`${require('../../package.json').version}\n`)
  return await command(name).main(args)
}

/** @param {string} name @returns {Command} */
function command (name) {
  if (Object.hasOwn(commands, name)) return commands[name]()
  if (later.includes(name)) throw new Wrong(`longstack ${name} is not available yet.`)
  if (name.startsWith('-')) throw new Wrong(`Unknown flag ${show(name)}: the command comes first, as in "longstack run app.js".`)
  const hint = nearest(name, Object.keys(commands))
  throw new Wrong(`Unknown command ${show(name)}.${hint === undefined ? '' : ` Did you mean ${show(hint)}?`}`)
}

/** @param {any} error */
function failed (error) {
  if (!(error instanceof Wrong)) {
    process.exitCode = 1
    return say(`longstack: ${error?.code !== undefined && error.syscall !== undefined ? error.message : error?.stack ?? error}`)
  }
  process.exitCode = 2
  const [name] = process.argv.slice(2)
  say(`longstack: ${error.message}`)
  say(`See longstack ${name !== undefined && Object.hasOwn(commands, name) ? `${name} ` : ''}--help.`)
}

quietly()
main(process.argv.slice(2)).then((code) => { if (code) process.exitCode = code }, failed)
