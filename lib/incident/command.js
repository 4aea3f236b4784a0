'use strict'

// longstack PID: observes a running process for some seconds and prints one screen: the problems, their
// places and the next command to run. The figures are those of longstack top. The command turns the run log
// into spans and a report.

const fs = require('node:fs')
const path = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')
const { createModel } = require('../../report/aggregate/model')
const { DEFAULTS } = require('../cli/commands')
const { UsageError, number } = require('../cli/flags')
const { boxesOfTarget, orFromBox, readBoxes } = require('../cli/from-box')
const { asJson, colours, print, printError, untilSignal, width, withStatus } = require('../cli/terminal')
const { ask } = require('../ask/processes')
const { GoneError, RefusedError, findTarget, openFiles } = require('../ask/system')
const { Watched } = require('../top/watched')
const { findingsOf } = require('./findings')
const { Observation } = require('./observation')
const { incidentText, incidentJson } = require('./text')
const { untilLimit, waitUntil } = require('./until')

const MAX_SECONDS = 3600
const LOOKS = 10 // at least, in the whole time
const [MIN_INTERVAL_MS, MAX_INTERVAL_MS] = [200, 1000]
const BLOCKED_FROM_MS = 20 // shorter goes unnoticed
const REST = 50 // ms of rest per ms of counting open handles
const EXTRA_MS = 3000 // for all queries, beyond the time of the observation
const MAX_ASKING_MS = 1200 // for the first queries; longer ones shorten the observation
const MIN_UNTIL_MS = 5000 // after which the first queries wait for no further thread
const SILENT_MS = 3000 // after which a thread is also queried through the inspector
const BUSY_MS = 1000 // for its event loop to become free then
const [LATE_MS, LATE_SILENT_MS] = [1500, 1000] // before the end, a thread that is silent ends the observation
const CLOSE_MS = 700 // to close the inspector and to disconnect
const ANSWER_MS = 1500 // for the last queries
const LAST_QUESTIONS = ['requests', 'agentQueues', 'waitGraph', 'finishLog']

/**
 * @typedef {import('../ask/processes').Asked} Asked
 * @typedef {import('../ask/system').Target} Target
 * @typedef {import('../ask/threads').AskedThread} AskedThread
 */

/** @type {import('../cli/commands').Main} */
async function main (values, operands) {
  // Whoever gives a time or a limit wants to see what happens from now on
  const isNow = values.seconds !== undefined || values.until !== undefined
  const files = isNow ? [] : [...boxesOfTarget(operands[0], !values['no-children']).keys()]
  return await (files.length > 0 ? diagnose(values, operands, files) : orFromBox(diagnose)(values, operands))
}

/**
 * @param {Record<string, any>} values
 * @param {string[]} operands
 * @param {string[]} [boxes] to read in place of querying
 * @returns {Promise<1 | undefined>} 1 if a process does not respond
 */
async function diagnose (values, [word], boxes = []) {
  const { seconds: text = String(DEFAULTS.incidentSeconds), json = false, html } = values
  const withChildren = !values['no-children']
  const seconds = number('seconds', text, 1, MAX_SECONDS)
  const limit = values.until === undefined ? undefined : untilLimit(values.until)
  if (html === '-') throw new UsageError('--html - would mix the page with the text. Name a file.')
  if (html !== undefined) fs.accessSync(path.dirname(html), fs.constants.W_OK) // fails early
  const reached = limit && await withStatus((show) => waitUntil(word, limit, withChildren, show))
  if (reached !== undefined) printError(`longstack: ${reached.sentence}`)
  const target = findTarget(word)
  const observation = new Observation(word, seconds * 1000)
  observation.exceeded = reached?.exceeded
  observation.endAt += EXTRA_MS
  observation.files = target.pids.map(openFiles).filter((files) => files !== undefined)
  const report = boxes.length === 0 ? undefined : await readBoxes(boxes, html !== undefined)
  if (report !== undefined) observation.addBoxes(boxes, report)
  else if (!observation.cannotAsk) await look(observation, target, withChildren, html !== undefined)
  const findings = findingsOf(observation)
  await print(json
    ? asJson(incidentJson(observation, findings))
    : incidentText(observation, findings, { colours: colours(), width: width() }))
  if (html !== undefined) await writeReport(observation, html)
  return observation.cannotAsk || findings.some(({ kind }) => kind === 'blocked') ? 1 : undefined
}

/** @param {Observation} observation @param {string} file */
async function writeReport ({ report, name }, file) {
  if (report?.span === undefined) return printError(`longstack: no page in ${file}: no request was recorded.`)
  await require('../cli/report').writePage(report, file, name)
}

/**
 * Queries and observes the processes, and leaves them as they were.
 * @param {Observation} observation
 * @param {Target} target
 * @param {boolean} withChildren
 * @param {boolean} traces for a page
 */
async function look (observation, target, withChildren, traces) {
  const { wantedMs } = observation
  const start = performance.now()
  const until = Date.now() + Math.max(MIN_UNTIL_MS, wantedMs / 2)
  const asked = await ask(target, { children: withChildren, until })
  observation.addAsked(asked)
  const lateMs = Math.max(0, performance.now() - start - MAX_ASKING_MS)
  observation.wantedMs = Math.max(wantedMs / 2, wantedMs - lateMs)
  const watched = new Watched(observation.name, {
    intervalMs: intervalOf(observation),
    blockedMs: BLOCKED_FROM_MS,
    rest: REST,
    begin: async (thread) => {
      observation.addThread(thread)
      await thread.call('startLog')
    }
  })
  const source = () => observation.log
  const busyWorkers = () => observation.busyWorkers
  const report = createModel([observation.name], { traces, source, busyWorkers })
  report.catch(() => {}) // it is awaited below
  try {
    watched.watch(target, asked, withChildren)
    if (watched.threads.length === 0) return // all are blocked, which is the finding
    await withStatus((show) => untilSignal((signal) => watch(observation, watched, show, signal)))
    observation.readCpuWaits()
    await Promise.all(watched.threads.map((thread) => askLast(observation, thread)))
  } finally {
    await watched.close()
    asked.close()
    observation.log.push(null)
    observation.report = await report
  }
}

/** @param {Observation} observation @returns {number} ms between two looks at the figures */
const intervalOf = ({ wantedMs }) =>
  Math.max(MIN_INTERVAL_MS, Math.min(MAX_INTERVAL_MS, wantedMs / LOOKS))

/**
 * Polls until the time is over, Ctrl-C, a process is blocked, or all have ended.
 * @param {Observation} observation
 * @param {Watched} watched
 * @param {(status: string) => void} show
 * @param {AbortSignal} signal Ctrl-C
 */
async function watch (observation, watched, show, signal) {
  const { wantedMs } = observation
  const intervalMs = intervalOf(observation)
  const start = performance.now()
  for (let look = 1; ; look++) {
    const isLast = await isOver(observation, watched, wantedMs - (performance.now() - start))
    const ms = observation.ms = performance.now() - start
    if (isLast) return
    show(observation.status)
    observation.isInterrupted = signal.aborted
    if (ms >= wantedMs || observation.isInterrupted) return
    const pauseMs = Math.max(1, Math.min(look * intervalMs, wantedMs) - ms)
    await sleep(pauseMs, undefined, { signal }).catch(() => {})
    watched.discover()
  }
}

/**
 * Polls once.
 * @param {Observation} observation
 * @param {Watched} watched
 * @param {number} leftMs until the end
 * @returns {Promise<boolean>} whether to stop
 */
async function isOver (observation, watched, leftMs) {
  try {
    const answers = await watched.poll()
    observation.addFigures(answers)
    const silent = answers.filter(({ silentMs }) => silentMs >= SILENT_MS)
    for (const { key, silentMs } of silent) {
      if (observation.inspected.has(key)) continue // each query opens the inspector again
      observation.inspected.add(key)
      await askSilent(observation, Number(key.split(' ')[0]), silentMs)
    }
    const isLate = leftMs < LATE_MS && answers.some((one) => one.silentMs >= LATE_SILENT_MS)
    return observation.isBlocked || isLate // the last queries find out more
  } catch (error) {
    if (!(error instanceof GoneError)) throw error
    observation.hasEnded = true
    return true
  }
}

/**
 * Queries what a silent thread is running, as long as there is time.
 * @param {Observation} observation
 * @param {number} pid
 * @param {number} silentMs
 */
async function askSilent (observation, pid, silentMs) {
  const leftMs = Math.max(BUSY_MS, observation.endAt - performance.now() - CLOSE_MS)
  const isOver = sleep(leftMs, true, { ref: false })
  if (await Promise.race([readSilent(observation, pid, silentMs), isOver])) observation.addSilent(pid)
}

/** @type {typeof askSilent} */
async function readSilent (observation, pid, silentMs) {
  try {
    const asked = await ask({ pids: [pid] }, { children: false, busyMs: BUSY_MS })
    observation.addBlocked(asked, silentMs)
    asked.close()
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error // it has ended
  }
}

/**
 * Queries what is in flight at the end.
 * @param {Observation} observation
 * @param {AskedThread} thread
 */
async function askLast (observation, thread) {
  if (observation.isBlocked) return
  try {
    const [requests, queues, graph, log] = await Promise.all(LAST_QUESTIONS
      .map((name) => thread.call(name, {}, ANSWER_MS)))
    observation.addLast({ ...requests, queues, graph, unsentMs: log?.unsentMs })
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    if (!thread.isClosed) await askSilent(observation, thread.pid, ANSWER_MS)
  }
}

module.exports = { main }
