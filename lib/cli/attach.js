'use strict'

// longstack attach: tracing is on in a running process for as long as this command runs.

const path = require('node:path')
const { describe, integer, parse, quote, UsageError } = require('./flags')
const { asJson, colours, print, printError, printHelp } = require('./terminal')

/**
 * @typedef {import('../ask/processes').Asked} Asked
 * @typedef {import('../ask/thread').AskedThread} AskedThread
 */

/** @type {import('./flags').Flags} */
const flags = {
  spans: {
    type: 'string',
    value: 'OUT',
    description: 'the process writes a span for each request and connection to this file or OTLP URL'
  },
  blocked: { type: 'string', value: 'MS', description: 'print what blocks its event loop for longer' },
  only: { type: 'string', value: 'NAMES', description: 'the option filter, for example TCP,HTTP' },
  light: { type: 'boolean', description: 'the option mode: light, which does without promises' },
  seconds: { type: 'string', value: 'N', description: 'detach after N seconds; default: Ctrl-C' },
  'no-children': { type: 'boolean', description: 'without the Node processes that it has started' },
  json: { type: 'boolean', description: 'print JSON: a line for what blocks, at the end what was opened' }
}

const help = `Traces a running process from now on, until Ctrl-C: errors get long stacks, longstack why, top
and profile know who opened what and what waits. At the end prints what was opened in this time and is still
open, and leaves the process as it was: also if this command is killed.

  longstack attach [flags] PID

What was opened before is early: of it only what the handles themselves tell is known.

${describe(flags)}

Exit code: 1 if the process cannot be asked, 2 for wrong usage.
`

/** @param {string[]} args */
async function main (args) {
  const { values, operands } = parse(args, flags)
  if (values.help) return await printHelp(help)
  if (operands.length === 0) throw new UsageError('Missing process id.')
  if (operands.length > 1) throw new UsageError(`One process at a time. Received ${quote(operands[1])}.`)
  const options = optionsOf(values)
  const seconds = values.seconds === undefined ? undefined : integer('seconds', values.seconds, 1)
  const { findTarget } = require('../ask/target')
  const { askTarget } = require('../ask/processes')
  const { RefusedError } = require('../ask/system')
  /** @type {Asked | undefined} */
  let asked
  try {
    asked = await askTarget(findTarget(operands[0]), { children: !values['no-children'] })
    await attachTo(asked, options, seconds, values.json === true)
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    printError(`longstack: ${error.message}`)
    return 1
  } finally {
    asked?.close()
  }
}

/** @param {Record<string, any>} values @returns {object} options of trace.enable @throws {UsageError} */
function optionsOf ({ spans, blocked, only, light }) {
  if (spans === '-') throw new UsageError('--spans - is the output of the process: name a file.')
  const file = spans !== undefined && !/^https?:\/\//.test(spans) ? absolute(spans) : spans
  return {
    ...(spans !== undefined && { spans: file }),
    ...(blocked !== undefined && { blocked: integer('blocked', blocked, 1) }),
    ...(only !== undefined && { filter: require('./why').checkFilter(only) }),
    ...(light && { mode: 'light' })
  }
}

/** Returns an output with the whole name of its file. @param {string} spans */
function absolute (spans) {
  return spans.startsWith('file:') ? spans : path.resolve(spans)
}

/**
 * @param {Asked} asked
 * @param {object} options
 * @param {number | undefined} seconds
 * @param {boolean} json
 */
async function attachTo (asked, options, seconds, json) {
  const threads = asked.processes.flatMap((one) => one.threads)
  for (const thread of threads) {
    thread.onEvent = (event, value) => {
      const { pid, threadId } = thread
      if (json) print(`${JSON.stringify({ event, pid, threadId, ...value })}\n`)
      else print(`${thread.name}: ${value.text}\n\n`)
    }
  }
  const attached = await Promise.all(threads.map((thread) => thread.call('attach', options)))
  await Promise.all(threads.map((thread) => thread.call('snapshot')))
  const end = ended(threads, seconds) // from here on Ctrl-C detaches, as the next line says
  if (!json) await print(`${headOf(asked, attached)}\n`)
  const isGone = await end
  if (isGone) return printError(`longstack: process ${asked.processes[0].pid} has ended.`)
  await printOpened(asked, json)
  if (!json) printError('Detached.')
}

/** @param {Asked} asked @param {Array<{ wasEnabled: boolean }>} attached */
function headOf ({ processes, refused }, attached) {
  const { titleOf } = require('./live-text')
  const lines = processes.map(({ pid, threads }) => titleOf(pid, threads, colours(), false))
  for (const { sentence } of refused) lines.push(sentence)
  const isNew = attached.some(({ wasEnabled }) => !wasEnabled)
  lines.push(isNew ? 'Traced from now on. Ctrl-C detaches.' : 'It is traced already. Ctrl-C detaches.')
  return lines.join('\n')
}

/**
 * Waits for the end: Ctrl-C, the time that was given, or the end of all threads.
 * @param {AskedThread[]} threads
 * @param {number | undefined} seconds
 * @returns {Promise<boolean>} all threads are gone
 */
function ended (threads, seconds) {
  return new Promise((resolve) => {
    /** @type {NodeJS.Signals[]} */
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
    const stop = () => finish(false)
    const timer = seconds === undefined ? undefined : setTimeout(stop, seconds * 1000)
    const finish = (/** @type {boolean} */ isGone) => {
      for (const signal of signals) process.off(signal, stop)
      clearTimeout(timer)
      resolve(isGone)
    }
    for (const signal of signals) process.on(signal, stop)
    for (const thread of threads) {
      thread.onClose = () => { if (threads.every(({ isClosed }) => isClosed)) finish(true) }
    }
    if (threads.every(({ isClosed }) => isClosed)) finish(true)
  })
}

/**
 * Prints what was opened since `snapshot` was asked, and is open.
 * @param {Asked} asked
 * @param {boolean} json
 */
async function printOpened ({ processes, refused }, json) {
  const { formatOpened, jsonAnswer, withHops } = require('./live-text')
  const answers = await Promise.all(processes.map(async ({ pid, threads }) => {
    const alive = threads.filter((thread) => !thread.isClosed)
    const answered = await Promise.all(alive.map(async (thread) => {
      const open = withHops((await thread.call('diff')) ?? [])
      return { facts: thread.facts, open }
    }))
    return { pid, threads: answered }
  }))
  const answer = { processes: answers, refused, others: [], end: undefined }
  if (json) await print(asJson(jsonAnswer(answer)))
  else await print(formatOpened(answer, colours()))
}

module.exports = { ended, help, main, printOpened }
