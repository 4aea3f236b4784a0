'use strict'

// Queries running processes, with all their threads, over sockets: those of LONGSTACK_SOCKET if the process
// has them. Otherwise the inspector makes each thread connect to a socket of this command, and is open only
// for that moment. A thread with a blocked event loop is read from the note that it left beside its socket,
// or else through the inspector.

const { setTimeout: sleep } = require('node:timers/promises')
const { inspectProcess } = require('./inspector')
const {
  GoneError, RefusedError, cpuWaitOf, endedSentence, hasEnded, nodeDescendants, socketFiles, socketsOf
} = require('./system')
const { AskedThread, BlockedError, Meeting, connectTo, nameOfThread } = require('./threads')
const { groupBy } = require('../group-by')
const { formatDuration, shortFrame } = require('../text')

const JOIN_MS = 2_000 // for a thread with a free event loop to connect
const BUSY_MS = 3_000 // for a busy event loop to become free
const POLL_MS = 50
const GONE_MS = 500 // from the end of a connection to the end of its process
const BLOCKED_MS = 250 // shorter is normal work
const MIN_BUSY_MS = 500 // the least wait for a busy event loop, if a deadline is near
const MAX_STARVED_MS = 1_000 // wait for a CPU that does not count as busy
const QUIET_LOOKS = 6 // consecutive looks without CPU use after which a worker counts as waiting for work
const MIN_QUIET_LOOKS = 2 // the same if time runs out
const MAX_CPU_SHARE = 0.2 // during such a look: the query itself uses some CPU
const UNKNOWN_STACK = 'in Node itself'
const THREAD_ID = "process.getBuiltinModule('worker_threads').threadId"
const ownWorker = /[\\/]lib[\\/](record[\\/]apart|sinks[\\/]otlp)-thread\.js$/

/**
 * @typedef {import('./threads').Refusal} Refusal
 * @typedef {import('./threads').Silent} Silent
 *
 * @typedef {object} AskedProcess
 * @property {number} pid
 * @property {AskedThread[]} threads the main one first; empty if its event loop is blocked
 * @property {string | undefined} busy long stack of what its event loop was running when queried
 * @property {number} busyMs how long at least
 *
 * @typedef {object} Asked
 * @property {AskedProcess[]} processes
 * @property {Refusal[]} refused processes and threads that could not be queried
 * @property {() => void} close
 *
 * @typedef {object} AskOptions
 * @property {boolean} [children] also query the Node processes that it started
 * @property {boolean} [workers] also query its worker threads
 * @property {number} [busyMs] how long to wait for a busy event loop
 * @property {number} [until] deadline, in ms of Date.now(); later waits are short, and no further process is
 *   queried
 */

/**
 * Separates main threads that left a note of what they run from other silent threads.
 * @param {Silent[]} silent
 * @returns {{ blocked: AskedProcess[], refusals: Refusal[] }}
 */
function sortSilent (silent) {
  const isNoted = (/** @type {Silent} */ { threadId, stack }) => threadId === 0 && stack !== undefined
  return {
    blocked: silent.filter(isNoted)
      .map(({ pid, stack, busyMs }) => ({ pid, threads: [], busy: stack, busyMs })),
    refusals: silent.filter((thread) => !isNoted(thread))
      .map(({ pid, sentence, stack }) => ({ pid, sentence, stack }))
  }
}

/**
 * Queries the processes that listen on a LONGSTACK_SOCKET.
 * @param {string} file
 * @returns {Promise<Asked>}
 * @throws {RefusedError}
 */
async function askSocket (file) {
  const { threads, silent, refused: odd, codes } = await connectTo(socketFiles(file))
  const { blocked, refusals } = sortSilent(silent)
  const refused = [...odd, ...refusals]
  const answering = groupBy(threads, ({ pid }) => String(pid)).map((own) =>
    ({ pid: own[0].pid, threads: own, busy: undefined, busyMs: 0 }))
  const processes = [...answering, ...blocked]
  if (processes.length > 0) return { processes, refused, close: () => closeAll(processes) }
  const isForbidden = codes.includes('EACCES') || codes.includes('EPERM')
  const silence = isForbidden
    ? `The socket ${file} belongs to another user.`
    : `No process listens on ${file}: the one that did has ended.`
  const [{ sentence, stack = '' } = { sentence: silence }] = refused
  throw new RefusedError(`${sentence}\n${stack}`.trimEnd())
}

/** @param {AskedProcess[]} processes */
function closeAll (processes) {
  for (const { threads } of processes) for (const thread of threads) thread.close()
}

/**
 * Queries the processes that the user named, and the Node processes that they started.
 * @param {{ pids: number[], socket?: string }} target
 * @param {AskOptions} [options]
 * @returns {Promise<Asked>}
 * @throws {RefusedError} if none can be queried
 */
async function ask ({ pids, socket }, { children = true, ...options } = {}) {
  if (socket !== undefined) return await askSocket(socket)
  const family = new Set(children ? pids.flatMap((pid) => [pid, ...nodeDescendants(pid)]) : pids)
  /** @type {AskedProcess[]} */
  const processes = []
  /** @type {Refusal[]} */
  const refused = []
  for (const pid of family) { // one after another: each inspector opens on the same port
    const isThere = !hasEnded(pid)
    if (Date.now() > (options.until ?? Infinity)) {
      refused.push({ pid, sentence: `Process ${pid} was not queried: other processes took too long.` })
      continue
    }
    try {
      processes.push(await askProcess(pid, refused, options))
    } catch (error) {
      if (!(error instanceof RefusedError)) {
        closeAll(processes) // open connections would keep the command alive
        throw error
      }
      const end = Date.now() + (error instanceof GoneError ? GONE_MS : 0)
      while (!hasEnded(pid) && Date.now() < end) await sleep(POLL_MS)
      refused.push({ pid, sentence: isThere && hasEnded(pid) ? endedSentence(pid) : error.message })
    }
  }
  if (processes.length === 0) throw new RefusedError(refused.map(({ sentence }) => sentence).join('\n'))
  return { processes, refused, close: () => closeAll(processes) }
}

/**
 * @param {number} pid
 * @param {Refusal[]} refused receives its threads that cannot be queried
 * @param {AskOptions} options
 * @returns {Promise<AskedProcess>}
 */
async function askProcess (pid, refused, options) {
  const { busyMs: maxMs = BUSY_MS, workers = true, until = Infinity } = options
  const { threads, silent, refused: odd } = await connectTo(socketsOf(pid), pid)
  const { blocked: [blocked], refusals } = sortSilent(silent)
  if (threads[0]?.facts.isMainThread && silent.every(({ stack }) => stack !== undefined)) {
    refused.push(...odd, ...refusals)
    return { pid, threads, busy: undefined, busyMs: 0 }
  }
  for (const thread of threads) thread.close() // the inspector reaches all of them
  if (blocked !== undefined) return blocked
  const target = await inspectProcess(pid)
  const busyMs = () => Math.max(Math.min(maxMs, MIN_BUSY_MS), Math.min(maxMs, until - Date.now()))
  /** @type {Meeting | undefined} */
  let meeting
  try {
    const { stack, ms, isBlocked } = await waitForLoop(target, busyMs())
    if (isBlocked) return { pid, threads: [], busy: stack, busyMs: ms }
    const present = meeting = new Meeting()
    await present.isListening
    const inspected = (workers ? await target.workers().catch(() => []) : [])
      .filter(({ url = '' }) => !ownWorker.test(url))
    const joinedAt = Date.now()
    const [main, ...others] = await Promise.all([
      join(target, present, busyMs()).catch((error) => error),
      ...inspected.map((worker) => joinWorker(worker, present, busyMs))
    ])
    const joined = others.filter((thread) => thread instanceof AskedThread)
    if (main instanceof AskedThread) {
      for (const answer of others) if (answer !== undefined && 'sentence' in answer) refused.push(answer)
      return { pid, threads: [main, ...joined], busy: stack, busyMs: ms }
    }
    for (const thread of joined) thread.close()
    const late = main instanceof BlockedError ? await target.callNow('busy').catch(() => '') : ''
    if (late === '') throw main
    return { pid, threads: [], busy: late, busyMs: Date.now() - joinedAt }
  } finally {
    meeting?.close()
    await target.close()
  }
}

/**
 * Waits until the event loop of a process is free. Microtasks, or the lack of program code at some moment, do
 * not show that: microtasks may never end.
 * @param {import('./inspector').InspectedThread} target
 * @param {number} busyMs
 * @param {boolean} [isWorker] which may wait in Atomics.wait, like an idle worker of a pool
 * @returns {Promise<{ stack: string | undefined, ms: number, isBlocked?: boolean, waits?: boolean,
 *   settles?: boolean }>} stack: of what ran at first; isBlocked: the event loop did not become free; waits:
 *   it uses no CPU but still runs calls of the inspector, which only Atomics.wait allows; settles: it runs
 *   microtasks
 * @throws {RefusedError} if it waits for a CPU, and what it runs is unknown
 */
async function waitForLoop (target, busyMs, isWorker = false) {
  const start = Date.now()
  const waitedMs = isWorker ? undefined : cpuWaitOf(target.pid)
  let quiet = 0
  const { isOpened } = target
  let isFree = false // the loop was free at some time since the start
  let settles = false
  let stack = await target.callNow('busy') // loads longstack, which no other call may interrupt
  let first = stack
  target.call('settle', { isOpened }).then(() => { settles = true }, () => {})
  const idle = target.call('idle', {}, busyMs + JOIN_MS).then(() => { isFree = true }, () => {})
  const pause = () => Promise.race([idle, sleep(POLL_MS)])
  for (await pause(); ; stack = await target.callNow('busy')) {
    const ms = Date.now() - start
    if (isFree && ms < BLOCKED_MS) return { stack: undefined, ms: 0 }
    if (isFree) return { stack: first === '' ? undefined : first, ms }
    if (quiet >= QUIET_LOOKS || (ms >= busyMs && quiet >= MIN_QUIET_LOOKS)) {
      return { stack, ms, isBlocked: true, waits: true }
    }
    if (first === '') first = stack
    const starvedMs = waitedMs === undefined ? 0 : Number(cpuWaitOf(target.pid)) - waitedMs
    const minMs = busyMs + Math.min(MAX_STARVED_MS, Math.max(0, starvedMs || 0))
    if (ms >= minMs && first === '' && starvedMs >= ms / 2) {
      throw new RefusedError(`Process ${target.pid} waits for a CPU: it has not responded for ` +
        `${formatDuration(ms)}.`)
    }
    if (ms >= minMs || (isWorker && settles && ms >= BUSY_MS)) {
      return { stack: first === '' ? UNKNOWN_STACK : first, ms, isBlocked: true, settles }
    }
    if (!isWorker) {
      await pause()
      continue
    }
    const before = await target.callNow('cpuMs')
    await pause()
    const after = await target.callNow('cpuMs')
    const isQuiet = before !== '' && Number(after) - Number(before) < POLL_MS * MAX_CPU_SHARE
    quiet = isQuiet ? quiet + 1 : 0
  }
}

/**
 * Makes a thread connect to this command.
 * @param {import('./inspector').InspectedThread} inspected
 * @param {Meeting} meeting
 * @param {number} busyMs that a callback may take meanwhile
 * @returns {Promise<AskedThread>}
 */
async function join (inspected, meeting, busyMs) {
  const { pid } = inspected
  const { token, thread } = meeting.expect(pid)
  await inspected.call('join', { path: meeting.address, token }, Math.max(JOIN_MS, busyMs))
  const asked = await Promise.race([thread, sleep(JOIN_MS, undefined, { ref: false })])
  if (asked === undefined) throw new BlockedError(`Process ${pid} ended, or closed its connection.`)
  await asked.introduce()
  return asked
}

/**
 * Makes a worker connect as soon as its event loop is free.
 * @param {import('./inspector').InspectedThread} worker
 * @param {Meeting} meeting
 * @param {() => number} busyMs
 * @returns {Promise<AskedThread | Refusal | undefined>} undefined if it has ended
 */
async function joinWorker (worker, meeting, busyMs) {
  const { pid } = worker
  const id = await worker.evaluate(THREAD_ID).catch(() => undefined)
  const name = !Number.isInteger(id) ? `A worker of process ${pid}` : nameOfThread(pid, id)
  try {
    const { stack, ms, isBlocked, waits, settles } = await waitForLoop(worker, busyMs(), true)
    if (waits) return { pid, sentence: `${name} waits in Atomics.wait${placeOf(stack)}.`, waits }
    if (!isBlocked) return await join(worker, meeting, busyMs())
    if (settles) { // such as a busy worker of Piscina
      const sentence = `${name} is busy${placeOf(stack)}: it runs microtasks but not its event loop, so it ` +
        'cannot be queried.'
      return { pid, sentence, waits: true, busyThread: Number.isInteger(id) ? id : undefined }
    }
    const sentence = `${name} has been blocked for at least ${formatDuration(ms)}. It is running`
    return { pid, sentence, stack }
  } catch (error) {
    if (!worker.isOpen) return undefined
    const reason = error instanceof BlockedError ? '.' : `: ${/** @type {Error} */ (error).message}`
    return { pid, sentence: `${name} does not respond${reason}` }
  }
}

/** Returns the package, or else the function, of the innermost frame. @param {string} [stack] */
function placeOf (stack = '') {
  const [frame] = stack.split('\n', 1)
  const name = /.*node_modules[/\\]((?:@[^/\\]+[/\\])?[^/\\]+)/.exec(frame)?.[1]
  const place = name ?? shortFrame(frame.trim().replace(/^at /, ''))
  return place === '' ? '' : ` (${place})`
}

/**
 * Queries the processes that the user named, and refuses if one of them is blocked.
 * @param {{ pids: number[], socket?: string }} target
 * @param {AskOptions} [options]
 * @returns {Promise<Asked>}
 * @throws {RefusedError} also if an event loop is blocked
 */
async function askUnblocked (target, options) {
  const asked = await ask(target, options)
  const [sentence] = blockedSentences(asked)
  if (sentence === undefined) return asked
  asked.close()
  throw new RefusedError(sentence)
}

/** Describes what each blocked process runs. @param {Asked} asked */
function blockedSentences ({ processes }) {
  return processes.filter(({ threads }) => threads.length === 0)
    .map(({ pid, busy }) => `The event loop of process ${pid} is blocked:\n${busy}`)
}

module.exports = { ask, askUnblocked, blockedSentences }
