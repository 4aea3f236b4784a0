'use strict'

// Collects the data of longstack PID: the figures of each look, the run logs, the requests in flight at the
// end, and the processes that could not be queried.

const { Readable } = require('node:stream')
const { isDeepStrictEqual } = require('node:util')
const { grouped } = require('../../report/render/text-parts')
const { cpuWaitOf } = require('../ask/system')
const { getOrAdd } = require('../group-by')
const { Model } = require('../top/model')

/**
 * @typedef {import('../ask/threads').AskedThread} AskedThread
 * @typedef {import('../ask/processes').Refusal} Refusal
 * @typedef {import('../handles/requests-in-flight').RequestInFlight} RequestInFlight
 * @typedef {import('../handles/requests-in-flight').AgentQueue} AgentQueue
 * @typedef {import('../handles/wait-graph').WaitGraph} WaitGraph
 * @typedef {import('../ask/system').OpenFiles} OpenFiles
 *
 * @typedef {{ noun: string, site: string, count: number }} Row
 * @typedef {{ ms: number, rows: Row[] }} Look
 *
 * @typedef {object} Load of a thread, in shares of the time
 * @property {number} pid
 * @property {number} threadId
 * @property {number} share in which its event loop was busy
 * @property {number} cpuShare CPU of the thread
 * @property {number} processShare CPU of the whole process, from its main thread; may exceed 1
 */

const MIN_FREE = 4 // files that a query needs
const MAX_UNREAD = 1 << 26 // bytes of run logs
const MIN_CPU_MS = 1000 // shorter says little about the wait for a CPU

/** @param {OpenFiles} files */
const isOutOfFiles = ({ open, max }) => max - open < MIN_FREE

class Observation {
  model = new Model()
  /** open files of each process, near its limit or not @type {OpenFiles[]} */
  files = []
  /** @type {Refusal[]} */
  refused = []
  /** silent processes @type {Array<{ pid: number, busy: string | undefined, busyMs: number }>} */
  blocked = []
  /** threads by process @type {Map<number, AskedThread[]>} */
  threads = new Map()
  /** @type {RequestInFlight[]} */
  inFlight = []
  /** @type {import('../handles/idle-connections').IdleConnections[]} */
  idle = []
  /** @type {AgentQueue[]} */
  queues = []
  /** of each thread @type {WaitGraph[]} */
  graphs = []
  /** ms of run logs that processes dropped, since there was too much to send */
  unsentMs = 0
  /** this command could not keep up with the run logs, and dropped parts of them */
  isBehind = false
  /** the run logs of all threads as they arrive: a recording */
  log = new Readable({ read () {} })
  /** counts at each place, by kind @type {Record<'handles' | 'waits', Look[]>} */
  looks = { handles: [], waits: [] }
  /** keys of threads that were queried through the inspector @type {Set<string>} */
  inspected = new Set()
  hasEnded = false
  /** duration of the observation */
  ms = 0
  isInterrupted = false
  /** limit for which the command waited @type {import('./until').Exceeded | undefined} */
  exceeded
  /** black boxes that were read in place of querying their processes @type {string[]} */
  boxes = []
  /** report on the spans @type {import('../../report/aggregate/model').Model | undefined} */
  report
  /**
   * when each process was first seen, and ms that its main thread had waited for a CPU by then
   * @type {Map<number, { at: number, waitedMs: number }>}
   */
  #cpu = new Map()
  /** CPU wait since then as a share of the time, if known @type {Map<number, number>} */
  cpuWaits = new Map()
  /** by thread, in ms @type {Map<string, { busyMs: number, cpuMs: number, processMs: number }>} */
  #sums = new Map()
  /** the longest that an event loop was late */
  lateMs = 0

  /** @param {string} name a word of the command line @param {number} wantedMs */
  constructor (name, wantedMs) {
    this.name = name
    this.wantedMs = wantedMs
    /** ms of performance.now() when the result is due */
    this.endAt = performance.now() + wantedMs
  }

  get isBlocked () { return this.blocked.length > 0 }

  /** Workers that are too busy to be queried. */
  get busyWorkers () {
    return this.refused.flatMap(({ pid, busyThread }) =>
      busyThread === undefined ? [] : [{ pid, thread: busyThread }])
  }

  get cannotAsk () {
    const isRefused = this.refused.some(({ waits }) => !waits)
    return this.isBlocked || isRefused || this.files.some(isOutOfFiles)
  }

  /** Sums over the whole time. */
  get frame () { return this.model.frame(Infinity) }

  /** Routes in the boxes. */
  get #served () { return this.report?.routes.filter(({ kind }) => kind === 'SERVER') ?? [] }

  /** Number of requests that ended. */
  get total () {
    return this.boxes.length === 0
      ? this.frame.total.count
      : Math.round(this.#served.reduce((sum, { weighted }) => sum + weighted, 0))
  }

  /** Number of requests in flight in the boxes. */
  get open () { return this.#served.reduce((sum, { open }) => sum + open, 0) }

  /** Shares of the time, per thread, the busiest first. @returns {Load[]} */
  get loads () {
    const { ms } = this.frame
    return [...this.#sums].map(([key, { busyMs, cpuMs, processMs }]) => {
      const [pid, threadId] = key.split(' ').map(Number)
      const shares = { share: busyMs / ms, cpuShare: cpuMs / ms, processShare: processMs / ms }
      return { pid, threadId, ...shares }
    }).sort((a, b) => b.share - a.share)
  }

  /** @param {string[]} boxes @param {import('../../report/aggregate/model').Model} report on them */
  addBoxes (boxes, report) {
    this.boxes = boxes
    this.report = report
    if (report.span !== undefined) this.ms = report.span.toUnixMs - report.span.fromUnixMs
  }

  /** @param {Pick<import('../ask/processes').Asked, 'processes' | 'refused'>} asked */
  addAsked (asked) {
    this.addBlocked(asked)
    this.refused.push(...asked.refused.filter(({ pid, sentence }) =>
      !this.refused.some((other) => other.pid === pid && other.sentence === sentence)))
  }

  /**
   * @param {Pick<import('../ask/processes').Asked, 'processes' | 'refused'>} asked
   * @param {number} [silentMs] that it was already silent
   */
  addBlocked ({ processes, refused }, silentMs = 0) {
    for (const { pid, threads, busy, busyMs } of processes) {
      if (threads.length === 0) this.blocked.push({ pid, busy, busyMs: busyMs + silentMs })
    }
    for (const refusal of refused) {
      const isKnown = this.refused.some(({ pid, stack, sentence }) =>
        pid === refusal.pid && (refusal.waits ? sentence === refusal.sentence : stack === refusal.stack))
      if ((refusal.stack === undefined && !refusal.waits) || isKnown) continue
      this.refused.push(refusal)
    }
  }

  /** Notes that it stays unknown what a process is running. @param {number} pid */
  addSilent (pid) {
    const sentence = `Process ${pid} does not respond: its event loop is blocked.`
    if (!this.isBlocked) this.addAsked({ processes: [], refused: [{ pid, sentence }] })
  }

  /** @param {AskedThread} thread */
  addThread (thread) {
    const { pid } = thread
    const waitedMs = this.#cpu.has(pid) ? undefined : cpuWaitOf(pid)
    if (waitedMs !== undefined) this.#cpu.set(pid, { at: performance.now(), waitedMs })
    const own = this.threads.get(pid) ?? []
    this.threads.set(pid, [...own, thread].sort((a, b) => a.facts.threadId - b.facts.threadId))
    thread.onEvent = (event, { block }) => {
      if (event !== 'log') return
      if (this.log.readableLength > MAX_UNREAD) this.isBehind = true
      else this.log.push(Buffer.from(block, 'base64'))
    }
  }

  /** @param {import('../top/model').Answer[]} answers of one look */
  addFigures (answers) {
    this.model.add(answers.map(withoutWork), Date.now())
    const { ms, handles, waits = [] } = this.model.frame(0)
    if (answers.length === 0 || ms === this.looks.waits.at(-1)?.ms) return // no thread has responded
    const open = handles.map(({ noun, site, count }) => ({ noun, site, count }))
    // If equal, they are those of the last look
    if (!isDeepStrictEqual(open, this.looks.handles.at(-1)?.rows)) this.looks.handles.push({ ms, rows: open })
    const rows = waits.map(({ label, site, count, isOfRequest }) =>
      ({ noun: isOfRequest ? `${label} of requests` : label, site, count }))
    this.looks.waits.push({ ms, rows })
    for (const { key, figures } of answers) {
      if (figures?.thread === undefined) continue
      const { loop, cpuMs, process } = figures.thread
      const sums = getOrAdd(this.#sums, key, () => ({ busyMs: 0, cpuMs: 0, processMs: 0 }))
      this.lateMs = Math.max(this.lateMs, loop.maxMs || 0)
      sums.busyMs += loop.share * figures.ms
      sums.cpuMs += cpuMs ?? process?.cpuMs ?? 0
      sums.processMs += process?.cpuMs ?? 0
    }
  }

  /**
   * Adds the last responses of a thread.
   * @param {object} answer
   * @param {RequestInFlight[]} answer.requests
   * @param {import('../handles/idle-connections').IdleConnections[]} [answer.idle]
   * @param {AgentQueue[]} answer.queues
   * @param {WaitGraph} answer.graph
   * @param {number} [answer.unsentMs]
   */
  addLast ({ requests, idle = [], queues, graph, unsentMs = 0 }) {
    this.graphs.push(graph)
    this.inFlight.push(...requests)
    this.idle.push(...idle)
    this.queues.push(...queues)
    this.unsentMs += unsentMs
  }

  /** Reads CPU waits at the end of the observation; later ones do not count. */
  readCpuWaits () {
    for (const [pid, { at: begun, waitedMs }] of this.#cpu) {
      const now = cpuWaitOf(pid)
      const ms = performance.now() - begun
      if (now !== undefined && ms >= MIN_CPU_MS) this.cpuWaits.set(pid, (now - waitedMs) / ms)
    }
  }

  /** One line about the progress. */
  get status () {
    const { total } = this.frame
    return `looking, ${Math.round(this.ms / 1000)} of ${Math.round(this.wantedMs / 1000)} s: ` +
      `${grouped(total.count)} requests`
  }
}

/**
 * Removes the blockers of a worker that serves no requests: nothing waits for its event loop.
 * @param {import('../top/model').Answer} answer
 * @returns {import('../top/model').Answer}
 */
function withoutWork (answer) {
  const { facts, figures } = answer
  if (figures === undefined || facts.threadId === 0 || figures.routes.length > 0) return answer
  return { ...answer, figures: { ...figures, blockers: [] } }
}

module.exports = { Observation, isOutOfFiles }
