'use strict'

// longstack doctor: prints trace.doctor() of a process that runs nothing else.

const { describe, parse, quote, UsageError } = require('./flags')
const { print, printHelp } = require('./terminal')

/** @type {import('./flags').Flags} */
const flags = { json: { type: 'boolean', description: 'the same as data' } }

const help = `Prints what is in force on this machine, with this Node and this environment, and why.
In a program, call trace.doctor().

  longstack doctor [--json]

${describe(flags)}
`

/** @param {string[]} args */
async function main (args) {
  const { values, operands } = parse(args, flags)
  if (values.help) return await printHelp(help)
  if (operands.length > 0) {
    throw new UsageError(`longstack doctor takes no arguments. Received ${quote(operands[0])}.`)
  }
  const { text, ...data } = diagnosis()
  await print(values.json ? `${JSON.stringify(data, undefined, 2)}\n` : `${text.trimEnd()}\n`)
}

function diagnosis () {
  const trace = require('../../index')
  trace.enable()
  try {
    return trace.doctor()
  } finally {
    trace.disable()
  }
}

module.exports = { help, main }
