'use strict'

// The command's end of asking running processes, with all their threads, over sockets: those of
// LONGSTACK_SOCKET where the process has them, else each thread connects to one of this command, which its
// inspector is asked for. The inspector is open for that moment only.

const { askSocket, blockedProcess, connectTo, noteOfFailure, silentThreads } = require('./sockets')
const { AskedThread } = require('./thread')
const { SilentError } = require('./inspected-thread')
const { inspectProcess } = require('./inspector')
const { Meeting } = require('./meeting')
const {
  GoneError, RefusedError, endedSentence, hasEnded, nodeDescendants, ownerOf, pidInside, socketsOf
} = require('./system')
const { formatDuration } = require('../text')

const JOIN_MS = 2_000 // for a thread to connect, where its event loop is free
const BUSY_MS = 3_000 // for a busy event loop to come free
const POLL_MS = 50
const GONE_MS = 500 // from the end of a connection to that of the process
const BLOCKED_MS = 250 // what is shorter is work
const THREAD_ID = "process.getBuiltinModule('worker_threads').threadId"
const ownWorker = /[\\/]lib[\\/](blocked[\\/]inspector-worker|sinks[\\/]otlp-thread)\.js$/

/**
 * @typedef {{ pid: number, sentence: string, stack?: string }} Refusal stack: what it runs
 *
 * @typedef {object} AskedProcess
 * @property {number} pid
 * @property {AskedThread[]} threads the main one first; empty: its event loop is blocked
 * @property {string | undefined} busy the long stack of what its event loop was busy with when it was asked
 * @property {number} busyMs for how long at least
 *
 * @typedef {object} Asked
 * @property {AskedProcess[]} processes
 * @property {Refusal[]} refused processes and threads that could not be asked
 * @property {() => void} close
 *
 * @typedef {object} AskOptions
 * @property {boolean} [children] ask the processes that it has started as well
 * @property {boolean} [workers] ask its worker threads as well
 * @property {number} [busyMs] how long to wait for a busy event loop
 */

/**
 * Asks processes, and the Node processes that they have started.
 * @param {number[]} pids
 * @param {AskOptions} [options]
 * @returns {Promise<Asked>}
 * @throws {RefusedError} where none can be asked
 */
async function askProcesses (pids, { children = true, ...options } = {}) {
  const all = [...new Set(children ? pids.flatMap((pid) => [pid, ...nodeDescendants(pid)]) : pids)]
  /** @type {AskedProcess[]} */
  const processes = []
  /** @type {Asked['refused']} */
  const refused = []
  const close = () => { for (const { threads } of processes) for (const thread of threads) thread.close() }
  for (const pid of all) { // one after another: each inspector opens on the same port
    const isThere = !hasEnded(pid)
    try {
      processes.push(await askProcess(pid, refused, options))
    } catch (error) {
      if (!(error instanceof RefusedError)) {
        close() // what is open would keep the command alive
        throw error
      }
      refused.push({ pid, sentence: isThere ? await sentenceOf(pid, error) : error.message })
    }
  }
  if (processes.length === 0) throw new RefusedError(refused.map(({ sentence }) => sentence).join('\n'))
  return { processes, refused, close }
}

/** Says why a process was not asked. @param {number} pid @param {RefusedError} error */
async function sentenceOf (pid, error) {
  const end = Date.now() + (error instanceof GoneError ? GONE_MS : 0)
  while (!hasEnded(pid) && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  return hasEnded(pid) ? endedSentence(pid) : error.message
}

/**
 * @param {number} pid
 * @param {Refusal[]} refused to which its threads are added that cannot be asked
 * @param {AskOptions} options
 * @returns {Promise<AskedProcess>}
 */
async function askProcess (pid, refused, { busyMs = BUSY_MS, workers = true }) {
  const { threads, failures } = await connectTo(socketsOf(pid), pid)
  const silent = silentThreads(failures, pid)
  if (threads[0]?.facts.isMainThread && silent.every(({ stack }) => stack !== undefined)) {
    refused.push(...silent)
    return { pid, threads, busy: undefined, busyMs: 0 }
  }
  const own = pidInside(pid)
  const note = failures.map(noteOfFailure).find((found) => found?.pid === own && found.threadId === 0)
  if (note !== undefined) return { ...blockedProcess(note), pid }
  for (const thread of threads) thread.close() // the inspector finds all of them
  const target = await inspectProcess(pid)
  /** @type {Meeting | undefined} */
  let meeting
  try {
    const { stack, ms } = await waitForLoop(target, busyMs)
    if (ms >= busyMs) return { pid, threads: [], busy: stack, busyMs: ms }
    const present = meeting = new Meeting(ownerOf(pid))
    await present.isListening
    const inspected = workers ? (await target.workers().catch(() => [])).filter(isOfProgram) : []
    const [main, ...others] = await Promise.all([
      join(target, present).catch((error) => error),
      ...inspected.map((worker) => joinWorker(worker, present, busyMs))
    ])
    const found = others.filter((thread) => thread instanceof AskedThread)
    if (main instanceof AskedThread) {
      for (const answer of others) if (answer !== undefined && 'sentence' in answer) refused.push(answer)
      return { pid, threads: [main, ...found], busy: stack, busyMs: ms }
    }
    for (const thread of found) thread.close()
    throw main
  } finally {
    meeting?.close()
    await target.close()
  }
}

/**
 * Waits until the event loop of a process is free.
 * @param {import('./inspected-thread').InspectedThread} target
 * @param {number} busyMs
 * @returns {Promise<{ stack: string | undefined, ms: number }>} stack: of what it was busy with at first
 */
async function waitForLoop (target, busyMs) {
  const start = Date.now()
  /** @type {string | undefined} */
  let first
  let isFree = false // has been since
  const { isOpened } = target
  let stack = await target.callNow('busy') // loads longstack: nothing else may interrupt that
  target.call('idle', { isOpened }, busyMs).then(() => { isFree = true }, () => {})
  for (;;) {
    const ms = Date.now() - start
    if (stack === '' || isFree) return ms < BLOCKED_MS ? { stack: undefined, ms: 0 } : { stack: first, ms }
    first ??= stack
    if (ms >= busyMs) return { stack: first, ms }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    stack = await target.callNow('busy')
  }
}

/**
 * Has a thread connect.
 * @param {import('./inspected-thread').InspectedThread} inspected
 * @param {Meeting} meeting
 * @returns {Promise<AskedThread>}
 */
async function join (inspected, meeting) {
  const { token, thread } = meeting.expect(inspected.pid)
  await inspected.call('join', { path: meeting.address, token }, JOIN_MS)
  const asked = await within(thread, JOIN_MS)
  if (asked === undefined) throw new SilentError(`Process ${inspected.pid} ended, or closed its connection.`)
  await asked.introduce()
  return asked
}

/**
 * Has a worker connect, as soon as its event loop is free.
 * @param {import('./inspected-thread').InspectedThread} worker
 * @param {Meeting} meeting
 * @param {number} busyMs
 * @returns {Promise<AskedThread | Refusal | undefined>} undefined: it has ended
 */
async function joinWorker (worker, meeting, busyMs) {
  const { pid } = worker
  const id = await worker.evaluate(THREAD_ID).catch(() => undefined)
  const name = `${id === undefined ? worker.worker?.title : `Thread ${id}`} of process ${pid}`
  try {
    const { stack, ms } = await waitForLoop(worker, busyMs)
    if (ms < busyMs) return await join(worker, meeting)
    const duration = formatDuration(ms)
    return { pid, sentence: `${name} is blocked, for ${duration} at least. It runs`, stack }
  } catch (error) {
    if (!worker.isOpen) return undefined
    const reason = error instanceof SilentError ? '.' : `: ${/** @type {Error} */ (error).message}`
    return { pid, sentence: `${name} cannot be asked${reason}` }
  }
}

/** @template T @param {Promise<T>} promise @param {number} ms @returns {Promise<T | undefined>} */
async function within (promise, ms) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  const late = new Promise((resolve) => { timer = setTimeout(resolve, ms) })
  try {
    return await Promise.race([promise, late.then(() => undefined)])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Whether a worker is the program's, and not longstack's own.
 * @param {import('./inspected-thread').InspectedThread} thread
 */
function isOfProgram ({ worker }) {
  return worker === undefined || !ownWorker.test(worker.url)
}

/**
 * Asks what the user has named.
 * @param {Pick<import('./target').Target, 'pids' | 'socket'>} target
 * @param {AskOptions} [options]
 * @returns {Promise<Asked>}
 * @throws {RefusedError} where none can be asked
 */
async function ask ({ pids, socket }, options) {
  return socket === undefined ? await askProcesses(pids, options) : await askSocket(socket)
}

/**
 * Asks what the user has named, where all of it can answer.
 * @param {Pick<import('./target').Target, 'pids' | 'socket'>} target
 * @param {AskOptions} options
 * @returns {Promise<Asked>}
 * @throws {RefusedError} also where an event loop is blocked
 */
async function askUnblocked (target, options) {
  const asked = await ask(target, options)
  const [sentence] = blockedSentences(asked)
  if (sentence === undefined) return asked
  asked.close()
  throw new RefusedError(sentence)
}

/** Tells of the processes that are blocked what they run. @param {Asked} asked */
function blockedSentences ({ processes }) {
  return processes.filter(({ threads }) => threads.length === 0)
    .map(({ pid, busy }) => `The event loop of process ${pid} is blocked:\n${busy}`)
}

module.exports = { ask, askProcesses, askUnblocked, blockedSentences }
