'use strict'

// longstack attach: tracing is on in a running process for as long as this command runs. longstack diff: what
// it opens in some seconds and does not close.

const path = require('node:path')
const { DEFAULTS } = require('./commands')
const { integer, UsageError } = require('./flags')
const { asJson, colours, print, printError } = require('./terminal')

/**
 * @typedef {import('../ask/processes').Asked} Asked
 * @typedef {import('../ask/thread').AskedThread} AskedThread
 */

/** @type {import('./commands').Main} */
async function attach (values, [word]) {
  const options = optionsOf(values)
  if (values.light) printError(`longstack: --light: ${require('../options').NO_LIGHT_MODE}`)
  const seconds = values.seconds === undefined ? undefined : integer('seconds', values.seconds, 1)
  await whileAsking(word, values, (asked) => attachTo(asked, options, seconds, values.json === true))
}

/** @type {import('./commands').Main} */
async function diff (values, [word]) {
  const seconds = integer('seconds', values.seconds ?? String(DEFAULTS.diffSeconds), 1)
  await whileAsking(word, values, async (asked) => {
    const threads = asked.processes.flatMap((one) => one.threads)
    const untraced = threads.filter(({ facts }) => facts.tracing === 'off')
    await Promise.all(untraced.map((thread) => thread.call('attach', {})))
    await Promise.all(threads.map((thread) => thread.call('snapshot')))
    if (process.stderr.isTTY) printError(`For ${seconds} s …`)
    if (await ended(threads, seconds)) {
      throw new (require('../ask/system').RefusedError)('The process has ended.')
    }
    await printOpened(asked, values.json === true)
  })
}

/**
 * @param {string} word of the command line
 * @param {Record<string, any>} values
 * @param {(asked: Asked) => Promise<void>} work
 */
async function whileAsking (word, values, work) {
  const { findTarget } = require('../ask/target')
  const { askUnblocked } = require('../ask/processes')
  const asked = await askUnblocked(findTarget(word), { children: !values['no-children'] })
  try {
    await work(asked)
  } finally {
    asked.close()
  }
}

/** @param {Record<string, any>} values @returns {object} options of trace.enable @throws {UsageError} */
function optionsOf ({ spans, blocked, only }) {
  if (spans === '-') throw new UsageError('--spans - is the output of the process: name a file.')
  const file = spans !== undefined && !/^https?:\/\//.test(spans) ? absolute(spans) : spans
  return {
    ...(spans !== undefined && { spans: file }),
    ...(blocked !== undefined && { blocked: integer('blocked', blocked, 1) }),
    ...(only !== undefined && { filter: require('./why').checkFilter(only) })
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
      const { pid, facts: { threadId } } = thread
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

module.exports = { attach, diff }
