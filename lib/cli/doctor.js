'use strict'

// longstack doctor: what trace.doctor() says in a process that runs nothing else.

const { describe, parse, Wrong } = require('./flags')
const { print } = require('./terminal')

/** @type {import('./flags').Flags} */
const flags = { json: { type: 'boolean', says: 'the same as data' } }

const help = `What is in force on this machine, with this Node and this environment, and why. In a program, trace.doctor() says the
same of that program.

  longstack doctor [--json]

${describe(flags)}
`

/** @param {string[]} args */
async function main (args) {
  const { flags: given, rest } = parse(args, flags)
  if (given.help) return await print(help)
  if (rest.length > 0) throw new Wrong(`longstack doctor takes no further words; got ${JSON.stringify(rest[0].slice(0, 80))}.`)
  const { text, ...data } = diagnosis()
  await print(given.json ? `${JSON.stringify(data, undefined, 2)}\n` : `${text.trimEnd()}\n`)
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
