'use strict'

// longstack diff: what a running process has opened in some seconds and not closed.

const { describe, integer, parse, quote, UsageError } = require('./flags')
const { printError, printHelp } = require('./terminal')

/** @typedef {import('../ask/processes').Asked} Asked */

const DEFAULT_SECONDS = 10

/** @type {import('./flags').Flags} */
const flags = {
  seconds: { type: 'string', value: 'N', description: `for how long; default ${DEFAULT_SECONDS}, or Ctrl-C` },
  'no-children': { type: 'boolean', description: 'without the Node processes that it has started' },
  json: { type: 'boolean', description: 'print the answer as one JSON object' }
}

const help = `Prints what a running process has opened in some seconds and not closed, by who opened it, with
its growth per minute: what leaks, under load. A process without longstack is traced for that time.

  longstack diff [flags] PID|:PORT|ADDRESS:PORT|PATH of LONGSTACK_SOCKET

${describe(flags)}

Exit code: 1 if the process cannot be asked, 2 for wrong usage.
`

/** @param {string[]} args */
async function main (args) {
  const { values, operands } = parse(args, flags)
  if (values.help) return await printHelp(help)
  if (operands.length === 0) throw new UsageError('Missing process id.')
  if (operands.length > 1) throw new UsageError(`One target at a time. Received ${quote(operands[1])}.`)
  const seconds = integer('seconds', values.seconds ?? String(DEFAULT_SECONDS), 1)
  const { findTarget } = require('../ask/target')
  const { askTarget } = require('../ask/processes')
  const { ended, printOpened } = require('./attach')
  const { RefusedError } = require('../ask/system')
  /** @type {Asked | undefined} */
  let asked
  try {
    asked = await askTarget(findTarget(operands[0]), { children: !values['no-children'] })
    const threads = asked.processes.flatMap((one) => one.threads)
    const untraced = threads.filter(({ facts }) => facts.tracing === 'off')
    await Promise.all(untraced.map((thread) => thread.call('attach', {})))
    await Promise.all(threads.map((thread) => thread.call('snapshot')))
    if (process.stderr.isTTY) printError(`For ${seconds} s …`)
    if (await ended(threads, seconds)) throw new RefusedError('The process has ended.')
    await printOpened(asked, values.json === true)
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    printError(`longstack: ${error.message}`)
    return 1
  } finally {
    asked?.close()
  }
}

module.exports = { help, main }
