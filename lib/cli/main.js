#!/usr/bin/env node
'use strict'

// The command line: runs a command, and prints one sentence for wrong usage.

const { nearest } = require('../errors')
const { quote, UsageError } = require('./flags')
const { handleStreamErrors, print, printError, printHelp } = require('./terminal')

/**
 * @typedef {object} Command
 * @property {string} help
 * @property {(args: string[]) => Promise<number | void>} main resolves to the exit code, if it is not 0
 */

/** Loaded when they are called. @type {Record<string, () => Command>} */
const commands = {
  run: () => require('./run'),
  env: () => require('./env'),
  report: () => require('./report'),
  why: () => require('./why'),
  diff: () => require('./diff'),
  attach: () => require('./attach'),
  profile: () => require('./profile'),
  top: () => require('./top'),
  doctor: () => require('./doctor')
}

const HELP = `Async tracing and long stack traces for Node.js.

  longstack run app.js [args]    run a program with long stack traces
  longstack env                  print the variables that preload longstack into every Node process
  longstack report FILE…         summarize spans: verdict, quartiles, waits, failures, blockers, slowest
                                 requests; compare two runs, check limits
  longstack why PID|:PORT        what a running process has open and why, requests in flight, awaits that hang
  longstack diff PID             what it opens in ten seconds and does not close
  longstack attach PID           trace a process that was started without longstack, until Ctrl-C
  longstack profile app.js|PID   where async time of a process goes, with CPU samples
  longstack top PID              a running process live: routes, latency, event loop, CPU, blockers, waits,
                                 open handles
  longstack doctor               print what is in force on this machine, and why

Each command has --help.

  --help                         print this text
  --version                      print the version of longstack
`

/** @param {string[]} args */
async function main ([name, ...args]) {
  if (name === undefined) throw new UsageError('Missing command.')
  if (['--help', '-h', 'help'].includes(name)) {
    return await printHelp(args.length > 0 ? command(args[0]).help : HELP)
  }
  if (['--version', '-v'].includes(name)) return await print(`${require('../../package.json').version}\n`)
  return await command(name).main(args)
}

/** @param {string} name @returns {Command} */
function command (name) {
  if (Object.hasOwn(commands, name)) return commands[name]()
  if (name.startsWith('-')) {
    throw new UsageError(`Unknown flag ${quote(name)}: use a command first, as in "longstack run app.js".`)
  }
  const hint = nearest(name, Object.keys(commands))
  const suggestion = hint === undefined ? '' : ` Did you mean ${quote(hint)}?`
  throw new UsageError(`Unknown command ${quote(name)}.${suggestion}`)
}

/** Prints an error and sets the exit code. @param {any} error */
function fail (error) {
  if (!(error instanceof UsageError)) {
    process.exitCode = 1
    const isSystemError = error?.code !== undefined && error.syscall !== undefined
    return printError(`longstack: ${isSystemError ? error.message : error?.stack ?? error}`)
  }
  process.exitCode = 2
  const [name] = process.argv.slice(2)
  printError(`longstack: ${error.message}`)
  printError(`See longstack ${name !== undefined && Object.hasOwn(commands, name) ? `${name} ` : ''}--help.`)
}

if (process.argv[2] !== 'run') handleStreamErrors()
main(process.argv.slice(2)).then((code) => { if (code) process.exitCode = code }, fail)
