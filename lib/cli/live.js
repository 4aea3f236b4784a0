'use strict'

// Commands that query a running process. longstack why: open handles and their openers, requests in flight,
// unsettled awaits. longstack diff: handles opened within some seconds and not closed. longstack attach:
// traces the process while the command runs. longstack metrics: metrics for dashboards.

const path = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')
const { ask, askUnblocked, blockedSentences } = require('../ask/processes')
const { GoneError, RefusedError, endedSentence, findTarget, isHandleAt } = require('../ask/system')
const { formatOpenMetrics } = require('../metrics/openmetrics')
const { defaultOptions, parseOptions } = require('../options')
const { DEFAULTS } = require('./commands')
const { UsageError, integer, number } = require('./flags')
const { boxesOfTarget, orFromBox, printOpen } = require('./from-box')
const { formatAnswer, formatOpened, jsonAnswer, titleOf, withHops } = require('./live-text')
const { asJson, colours, print, printError, printExactly, untilSignal } = require('./terminal')

/**
 * @typedef {import('../ask/processes').Asked} Asked
 * @typedef {import('../ask/processes').AskedProcess} AskedProcess
 * @typedef {import('../ask/threads').AskedThread} AskedThread
 * @typedef {import('../ask/system').Target} Target
 *
 * @typedef {object} Wish
 * @property {string[] | undefined} filter
 * @property {number} olderThanMs
 * @property {number | undefined} watchMs
 * @property {boolean} json
 */

const CLEAR = '\x1b[H\x1b[2J\x1b[3J'
const MIN_MEASURED_MS = 2_000 // the first query starts the measurement
const MAX_MS = 2 ** 31 - 1 // of a Node timer

/** @type {import('./commands').Main} */
async function why (values, operands) {
  const [word] = operands
  const { only, watch, json = false, 'older-than': olderThan = '0' } = values
  const wish = {
    filter: only === undefined ? undefined : checkFilter(only),
    olderThanMs: seconds('older-than', olderThan, 0) * 1000,
    watchMs: watch && seconds('watch', watch === true ? String(DEFAULTS.watchSeconds) : watch, 0.1) * 1000,
    json
  }
  // A box knows no subsystems and addresses, and of awaits only those of requests
  const isOpenInBox = /^\d+$/.test(word) && !values.ask && only === undefined && wish.olderThanMs === 0
  const printed = isOpenInBox ? await printFromBoxes(word, values, wish) : undefined
  if (printed !== undefined) return printed.isSilent ? 1 : undefined
  return await orFromBox(() => whileAsking(ask, word, values, (asked, threads, target) =>
    printAnswers(asked, target, wish)))(values, operands)
}

/**
 * @param {string} word
 * @param {Record<string, any>} values
 * @param {Wish} wish
 * @returns {ReturnType<typeof printOpen>} undefined if there are no boxes, or one cannot be read
 */
async function printFromBoxes (word, values, { watchMs, json }) {
  let printed
  for (let isFirst = true; ; isFirst = false) {
    const boxes = [...boxesOfTarget(word, !values['no-children']).keys()]
    if (boxes.length === 0) return printed // at first there are none; later, the process has ended
    const isOnce = watchMs === undefined
    const round = await printOpen(boxes, { json, isOnce, separator: separatorOf(isOnce, isFirst) })
    if (isOnce || (isFirst && round === undefined)) return round
    printed = round ?? printed
    await sleep(watchMs)
  }
}

/** @param {boolean} isOnce @param {boolean} isFirst @returns {string} printed before an answer */
function separatorOf (isOnce, isFirst) {
  const before = process.stdout.isTTY === true ? CLEAR : '\n'
  return isOnce || (isFirst && before !== CLEAR) ? '' : before
}

/** @param {string} name @param {string} text @param {number} min @throws {UsageError} */
function seconds (name, text, min) {
  return number(name, text, min, Infinity, `a number of seconds${min > 0 ? `, at least ${min}` : ''}`)
}

/** @param {string} text comma-separated names @returns {string[]} @throws {UsageError} */
function checkFilter (text) {
  const names = text.split(',').map((name) => name.trim())
  try {
    return [...parseOptions({ filter: names }, defaultOptions()).filter]
  } catch (error) {
    throw new UsageError(/** @type {Error} */ (error).message)
  }
}

/**
 * @param {Asked} asked
 * @param {Target} target
 * @param {Wish} wish
 * @returns {Promise<1 | undefined>} 1 if a process or a thread did not respond
 */
async function printAnswers ({ processes, refused }, target, wish) {
  const { others, end } = target
  for (let isFirst = true; ; isFirst = false) {
    const answers = await Promise.all(processes.map((asked) => answerOf(asked, target, wish, isFirst)))
    const present = answers.filter(({ threads, busy }) => threads.length > 0 || busy !== undefined)
    if (present.length === 0 && isFirst) {
      const ended = processes.map(({ pid }) => endedSentence(pid))
      throw new RefusedError([...refused.map(({ sentence }) => sentence), ...ended].join('\n'))
    }
    const answer = { processes: present, refused, others, end: end?.text }
    const isOnce = wish.watchMs === undefined
    await printExactly(wish.json ? '' : separatorOf(isOnce, isFirst))
    await print(wish.json
      ? asJson(jsonAnswer(answer), isOnce ? 2 : 0)
      : formatAnswer(answer, colours()))
    if (wish.watchMs === undefined || present.length === 0) {
      const isComplete = refused.every(({ waits }) => waits) &&
        present.every(({ threads }) => threads.length > 0)
      return isComplete ? undefined : 1
    }
    await sleep(wish.watchMs)
  }
}

/**
 * @param {AskedProcess} asked
 * @param {Target} target
 * @param {Wish} wish
 * @param {boolean} isFirst prints the stack of a blocked event loop; later rounds omit it
 * @returns {Promise<import('./live-text').ProcessAnswer>}
 */
async function answerOf ({ pid, threads, busy, busyMs }, target, wish, isFirst) {
  const answers = await Promise.all(threads.map((thread) =>
    threadAnswer(thread, target, wish).catch((error) => {
      if (!(error instanceof GoneError)) throw error
    })))
  const present = answers.filter((answer) => answer !== undefined)
  return { pid, threads: present, ...(isFirst && { busy, busyMs }) }
}

/**
 * @param {AskedThread} thread
 * @param {Target} target
 * @param {Wish} wish
 * @returns {Promise<import('./live-text').ThreadAnswer>}
 */
async function threadAnswer (thread, { end }, { filter, olderThanMs }) {
  await thread.introduce()
  const open = withHops(await thread.call('open', { filter }))
  const { facts } = thread
  if (end !== undefined) return { facts, open: open.filter((handle) => isHandleAt(handle, end)) }
  if (filter !== undefined) return { facts, open } // the query is about handles only
  const requests = await thread.call('requests')
  const pending = await thread.call('pending', { olderThanMs })
  return { facts, open, requests, pending, waitGraph: await thread.call('waitGraph') }
}

/** @type {import('./commands').Main} */
async function diff (values, [word]) {
  const seconds = integer('seconds', values.seconds ?? String(DEFAULTS.diffSeconds), 1)
  await whileAsking(askUnblocked, word, values, async (asked, threads) => {
    const untraced = threads.filter(({ facts }) => facts.tracing === 'off')
    await Promise.all(untraced.map((thread) => thread.call('attach', {})))
    await Promise.all(threads.map((thread) => thread.call('snapshot')))
    if (process.stderr.isTTY) printError(`For ${seconds} s …`)
    const isGone = await waitForEnd(threads, seconds)
    if (isGone) throw new RefusedError('The process has ended.')
    await printOpened(asked, values.json)
  })
}

/** @type {import('./commands').Main} */
async function attach (values, [word]) {
  const { seconds, json } = values
  const options = optionsOf(values)
  const duration = seconds === undefined ? undefined : integer('seconds', seconds, 1)
  await whileAsking(askUnblocked, word, values, async (asked, threads) => {
    for (const thread of threads) {
      const { pid, facts: { threadId } } = thread
      thread.onEvent = (event, value) => {
        print(json ? asJson({ event, pid, threadId, ...value }, 0) : `${thread.name}: ${value.text}\n\n`)
      }
    }
    const attached = await Promise.all(threads.map((thread) => thread.call('attach', options)))
    await Promise.all(threads.map((thread) => thread.call('snapshot')))
    const end = waitForEnd(threads, duration) // from here on, Ctrl-C detaches, as the output says
    const isNew = attached.some(({ wasEnabled }) => !wasEnabled)
    if (!json) {
      const titles = asked.processes.map((one) => titleOf(one.pid, one.threads, colours(), false))
      const last = `${isNew ? 'Tracing started' : 'Already traced'}. Ctrl-C detaches.`
      await print([...titles, ...asked.refused.map(({ sentence }) => sentence), `${last}\n`].join('\n'))
    }
    if (await end) return printError(`longstack: process ${asked.processes[0].pid} has ended.`)
    await printOpened(asked, json)
    if (!json) printError('Detached.')
  })
}

/** @type {import('./commands').Main} */
async function metrics ({ json, ...values }, [word]) {
  return await whileAsking(ask, word, values, async (asked, threads) => {
    const sentences = [...asked.refused.map(({ sentence }) => sentence), ...blockedSentences(asked)]
    if (threads.length === 0) throw new RefusedError(sentences.join('\n'))
    for (const sentence of sentences) printError(`longstack: ${sentence}`)
    const untraced = threads.filter(({ facts }) => facts.tracing === 'off')
    await Promise.all(untraced.map((thread) => thread.call('attach', {})))
    const read = () => Promise.all(threads.map((thread) => thread.call('metrics')))
    let answers = await read()
    if (answers.some(({ sinceUnixMs, unixMs }) => unixMs - sinceUnixMs < MIN_MEASURED_MS)) {
      await sleep(MIN_MEASURED_MS)
      answers = await read()
    }
    await print(json ? asJson(answers) : formatOpenMetrics(answers))
    return asked.refused.some(({ waits }) => !waits) || blockedSentences(asked).length > 0 ? 1 : undefined
  })
}

/** @param {Record<string, any>} values @returns {object} options of trace.enable @throws {UsageError} */
function optionsOf ({ spans, blocked, only }) {
  if (spans === '-') throw new UsageError('--spans - would write to the output of the process. Name a file.')
  const isFile = spans !== undefined && !/^(https?:\/\/|file:)/.test(spans)
  return {
    ...(spans !== undefined && { spans: isFile ? path.resolve(spans) : spans }),
    ...(blocked !== undefined && { blocked: integer('blocked', blocked, 1) }),
    ...(only !== undefined && { filter: checkFilter(only) })
  }
}

/**
 * @template T
 * @param {typeof ask} askFor
 * @param {string} word from the command line
 * @param {Record<string, any>} values
 * @param {(asked: Asked, threads: AskedThread[], target: Target) => Promise<T>} work
 */
async function whileAsking (askFor, word, values, work) {
  const target = findTarget(word)
  const asked = await askFor(target, { children: !values['no-children'] })
  try {
    return await work(asked, asked.processes.flatMap(({ threads }) => threads), target)
  } finally {
    asked.close()
  }
}

/**
 * Waits for Ctrl-C, the given time, or the end of all threads.
 * @param {AskedThread[]} threads
 * @param {number | undefined} seconds
 * @returns {Promise<boolean>} true if all threads are gone
 */
async function waitForEnd (threads, seconds) {
  const areGone = () => threads.every(({ isClosed }) => isClosed)
  await untilSignal(async (signal, stop) => {
    for (const thread of threads) thread.onClose = () => { if (areGone()) stop() }
    if (areGone()) stop()
    await sleep(Math.min((seconds ?? Infinity) * 1000, MAX_MS), undefined, { signal }).catch(() => {})
  })
  return areGone()
}

/**
 * Prints handles that were opened since the snapshot and are still open.
 * @param {Asked} asked
 * @param {boolean} json
 */
async function printOpened ({ processes, refused }, json) {
  const answers = await Promise.all(processes.map(async ({ pid, threads }) => {
    const alive = threads.filter((thread) => !thread.isClosed)
    const opened = alive.map(async (thread) =>
      ({ facts: thread.facts, open: withHops(await thread.call('diff')) }))
    return { pid, threads: await Promise.all(opened) }
  }))
  const answer = { processes: answers, refused, others: [], end: undefined }
  await print(json ? asJson(jsonAnswer(answer)) : formatOpened(answer, colours()))
}

module.exports = { attach, diff, metrics, why }
