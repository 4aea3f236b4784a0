'use strict'

// Finds problems in an observation: facts that are rare in a healthy process, worst first, each with the
// command that shows more. Other rules do not repeat problems of the report's verdict.

const { growthOf } = require('../../report/aggregate/growth')
const { idleSentence } = require('../../report/aggregate/verdict/idle')
const { counted, grouped, percent, time } = require('../../report/render/text-parts')
const { nameOfThread } = require('../ask/threads')
const { convoySentence, cycleSentence, knownBy } = require('../format/wait-graph')
const { placeOf, stoppedText } = require('../format/waits')
const { groupBy } = require('../group-by')
const { generalPath } = require('../path-names')
const { shortFrame } = require('../text')
const { isOutOfFiles } = require('./observation')

const MIN_BLOCKED_MS = 250 // of one callback; shorter is normal work
const MIN_BLOCKED_SHARE = 0.1 // of the time, if it happened several times
const MIN_BLOCKED_TIMES = 5
const MIN_BUSY_SHARE = 0.9
const MIN_OF_RUNS = 0.5 // of that time, for one route
const MIN_CPU_SHARE = 0.8 // of the time that a loop is busy
const MIN_CPU_WAIT = 0.25 // of the time
const MIN_OWN_CPU = 1.25 // CPUs: more than a main thread alone uses
const MIN_FAILED_CALLS = 0.1 // share of HTTP calls; rare failures are retried
const MIN_RETRIED = 0.4 // share of these failures; the callee may be in the same process
const MIN_QUEUE = 5 // and at least twice the limit; fewer is a limit at work
const [MIN_HANG_MS, HANG_MS] = [2000, 5000] // bounds; half of the time in between
const MIN_FILES_SHARE = 0.9 // of the limit
const MAX_OF_KIND = 3
const MAX_IDLE_PEERS = 2

/** @typedef {import('../../report/aggregate/verdict').Fault['rule']} VerdictRule */
/** By rule of the verdict. @type {Record<VerdictRule, FindingKind>} */
const kindOfRule = {
  blocker: 'blocks',
  delayer: 'blocks',
  loop: 'blocks',
  background: 'blocks',
  pool: 'waits',
  fanOut: 'waits',
  threads: 'waits',
  collects: 'busy',
  starved: 'busy',
  workers: 'waits',
  stampede: 'slow',
  lookups: 'slow',
  opening: 'slow',
  sequence: 'slow',
  dependency: 'slow',
  retries: 'slow',
  interval: 'grows',
  grows: 'grows',
  after: 'after',
  failing: 'failed',
  unanswered: 'hangs',
  hangs: 'hangs',
  deadlock: 'deadlock',
  convoy: 'waits',
  death: 'hangs',
  stuck: 'blocked',
  filling: 'busy'
}
/** Rank of a kind, to which the share is added. @type {Partial<Record<FindingKind, number>>} */
const levels = { blocked: 4, files: 3, deadlock: 2, hangs: 1, waits: 1, grows: -1, after: -1 }

/**
 * @typedef {import('./observation').Observation} Observation
 * @typedef {'blocked' | 'files' | 'deadlock' | 'blocks' | 'waits' | 'hangs' | 'slow'
 *   | 'failed' | 'busy' | 'grows' | 'after'} FindingKind
 *
 * @typedef {object} Finding
 * @property {FindingKind} kind
 * @property {string} sentence
 * @property {string} [at] function, file and line
 * @property {string[]} [routes] that it is about; absent: all
 * @property {boolean} [explains] may be why the limit of --until was exceeded
 * @property {string} [stack]
 * @property {number} share severity within and across kinds, mostly from 0 to 1, at most 2
 * @property {string} next a command
 */

/** @param {Observation} observation @returns {Finding[]} worst first */
function findingsOf (observation) {
  const [pid = observation.name] = [...observation.blocked, ...observation.refused]
    .map((one) => one.pid).concat([...observation.threads.keys()])
  const rules = [
    blocked, files, verdict, blocks, queues, waitsFor, hangs, failed, starved, busy, grows
  ]
  /** @type {Finding[]} */
  const findings = []
  for (const rule of rules) {
    const found = rule(observation, findings, pid).sort((a, b) => b.share - a.share)
    findings.push(...found.slice(0, rule === verdict ? undefined : MAX_OF_KIND))
  }
  // A box has what the process would be asked for
  const { boxes } = observation
  const next = boxes.length === 0 ? {} : { next: `longstack report ${boxes.join(' ')}` }
  const sorted = findings.sort((a, b) => rank(b) - rank(a)).map((finding) => ({ ...finding, ...next }))
  const { exceeded } = observation
  if (exceeded === undefined) return sorted
  return sorted.map((finding) => ({ ...finding, explains: doesExplain(finding, exceeded) }))
    .sort((a, b) => Number(b.explains) - Number(a.explains))
}

/**
 * Whether a finding may be why a limit was exceeded: it is about errors or about latency, of that route or of
 * the whole process.
 * @param {Finding} finding
 * @param {NonNullable<Observation['exceeded']>} exceeded
 */
function doesExplain ({ kind, routes }, exceeded) {
  const { metric, route } = exceeded
  if (metric === 'rate') return true
  if (metric === 'errors' ? !ofErrors.has(kind) : ofOthers.has(kind)) return false
  return route === undefined || routes === undefined || delaysAll.has(kind) || routes.includes(route)
}

/** @type {Set<FindingKind>} */
const ofErrors = new Set(['failed', 'files', 'hangs'])
/** Kinds that do not slow down requests. @type {Set<FindingKind>} */
const ofOthers = new Set(['failed', 'grows', 'after'])
/** Kinds whose route delays the others, too. @type {Set<FindingKind>} */
const delaysAll = new Set(['blocks', 'busy'])

/** @param {Finding} finding */
const rank = ({ kind, share }) => (levels[kind] ?? 0) + Math.min(2, share)

/**
 * @typedef {(observation: Observation, found: Finding[], pid: number | string) => Finding[]} Rule
 */

/** @type {Rule} */
function blocked ({ blocked, refused }) {
  return [
    ...blocked.map(({ pid, busy: stack, busyMs }) => {
      const ms = time(busyMs)
      const sentence = `The event loop of process ${pid} has been blocked for at least ${ms}. It is running`
      return { pid, stack, sentence }
    }),
    ...refused.filter(({ stack }) => stack !== undefined)
  ].map(({ pid, sentence, stack }) =>
    ({ kind: 'blocked', sentence, stack, share: 1, next: `longstack why ${pid} --watch` }))
}

/** @type {Rule} */
function files ({ files }) {
  return files.filter(({ open, max }) => open >= max * MIN_FILES_SHARE).map((state) => {
    const { pid, open, max, kinds: [{ what, count, closed }] } = state
    const byPeer = closed > 0 ? ` (${grouped(closed)} closed by the peer)` : ''
    const isOut = isOutOfFiles(state)
    const end = isOut ? ': it cannot open more (EMFILE), so it cannot be inspected' : ''
    return {
      kind: 'files',
      sentence: `Process ${pid} has ${grouped(open)} of ${grouped(max)} files open${end}; the most: ` +
        `${grouped(count)} × ${what}${byPeer}.`,
      share: open / max,
      next: isOut ? `ls -l /proc/${pid}/fd` : `longstack why ${pid} --only TCP`
    }
  })
}

/** @type {Rule} */
function verdict ({ report, cpuWaits }, _, pid) {
  // The system knows more about the wait for a CPU
  const known = (report?.verdict ?? []).filter(({ rule }) => rule !== 'starved' || cpuWaits.size === 0)
  return known.map(({ rule, sentence, at: place, share: ownShare, route }) => {
    const kind = kindOfRule[rule]
    const next = kind === 'blocks' || kind === 'busy' ? `longstack profile ${pid}` : `longstack diff ${pid}`
    const share = kind === 'busy' ? 1 + ownShare : ownShare // others may be its consequences
    const isOfSpans = kind !== 'blocks' && kind !== 'grows' && kind !== 'busy'
    const routes = route === undefined ? undefined : [route]
    return { kind, sentence, at: place, routes, share, next: isOfSpans ? recordCommand(pid) : next }
  })
}

/** @param {number | string} pid @returns {string} records spans and reports on them */
const recordCommand = (pid) =>
  `longstack attach ${pid} --spans spans.jsonl --seconds 60 && longstack report spans.jsonl`

/** @type {Rule} */
function blocks ({ frame, cpuWaits }, found, pid) {
  const known = new Set(found.map(({ at: place }) => place && functionOf(place)))
  const ranShare = 1 - Math.max(0, ...cpuWaits.values()) // callbacks include the wait for a CPU
  return (frame.blockers ?? [])
    .filter(({ site, count, ms, worstMs }) => isFrame(site) && !known.has(functionOf(site)) &&
      ((worstMs * ranShare >= MIN_BLOCKED_MS && !isOfNode(site)) ||
        (count >= MIN_BLOCKED_TIMES && ms * ranShare >= frame.ms * MIN_BLOCKED_SHARE)))
    .map(({ site, count, ms, worstMs, stack }) => ({
      kind: 'blocks',
      sentence: `${shortFrame(site)} blocked the event loop ${counted(count, 'time')} (${time(ms)}` +
        `${count === 1 ? '' : ` total, ${time(worstMs)} max`}).`,
      at: site,
      stack,
      share: ms / frame.ms,
      next: `longstack profile ${pid}`
    }))
}

/** Whether a site is a frame. @param {string} site */
const isFrame = (site) => / \(.*:\d+\)/.test(site)

/** Whether a frame is of Node: no code of the program is known. @param {string} site */
const isOfNode = (site) => site.includes('(node:')

/** @param {string} frame */
const functionOf = (frame) => frame.replace(/:\d+:\d+\)/, ')')

/** @type {Rule} */
function queues ({ queues }, _, pid) {
  return queues.filter(({ waiting, max }) => waiting >= Math.max(MIN_QUEUE, 2 * max))
    .map(({ peer, waiting, sockets, max }) => ({
      kind: 'waits',
      sentence: `${grouped(waiting)} requests to ${peer} wait for a free socket: ${grouped(sockets)} ` +
        `are in use, maxSockets of the http.Agent is ${max}.`,
      share: waiting / (waiting + sockets),
      next: `longstack why ${pid}`
    }))
}

/** @type {Rule} */
function waitsFor ({ graphs, inFlight }, _, pid) {
  const next = `longstack why ${pid}`
  return graphs.flatMap(({ cycles, convoys }) => [
    ...cycles.map((cycle) => ({
      kind: /** @type {const} */ ('deadlock'),
      // The label already has the word
      sentence: `${cycleSentence(cycle).replace(/^deadlock: /, '')} (${knownBy(cycle)}).`,
      at: cycle.members[0].at,
      share: 1,
      next
    })),
    ...convoys.map((convoy) => ({
      kind: /** @type {const} */ ('waits'),
      sentence: `${convoySentence(convoy)} (${knownBy(convoy)}).`,
      at: convoy.at,
      share: convoy.count / Math.max(convoy.count, inFlight.length),
      next
    }))
  ])
}

/** @param {string} request `GET /invoice/10` @returns {string} `GET /invoice/*` */
const generalName = (request) => request.replace(/\/\S*$/, generalPath)

/** @type {Rule} */
function hangs ({ frame, inFlight, idle, graphs, wantedMs }, _, pid) {
  const minMs = Math.max(MIN_HANG_MS, Math.min(HANG_MS, wantedMs / 2))
  const longest = new Map(frame.routes.map(({ name, maxMs }) => [name, maxMs]))
  // Other requests of the route took at least half as long, and were answered
  const isUsual = (/** @type {string} */ request, /** @type {number} */ ms) =>
    (longest.get(request) ?? 0) >= ms / 2
  // The wait graph shows more about these
  const known = new Set(graphs.flatMap(({ cycles, convoys }) =>
    [...cycles.flatMap(({ members }) => members), ...convoys].map(({ at: place }) => place)))
  const old = inFlight.filter(({ request, leastMs = 0, ageMs = leastMs, answering, waits: [wait] }) =>
    !answering && ageMs >= minMs && !known.has(String(wait?.at)) && !isUsual(request, ageMs))
  const keyOf = (/** @type {Observation['inFlight'][number]} */ { request, waits, uses, stopped }) => {
    const whats = [...waits.map(placeOf), ...uses.map(({ what }) => what)]
    return JSON.stringify([generalName(request), whats, stopped === undefined])
  }
  return groupBy(old, keyOf).map((group) => {
    const [first] = group.sort((a, b) => (b.ageMs ?? Infinity) - (a.ageMs ?? Infinity))
    const age = first.ageMs === undefined ? `at least ${time(first.leastMs ?? 0)}` : time(first.ageMs)
    const [wait] = first.waits
    const isOne = group.every(({ request }) => request === first.request)
    const ofName = isOne ? '' : ` of ${generalName(first.request)}`
    const oldest = group.length === 1 ? age : `${age} (the oldest of ${grouped(group.length)}${ofName})`
    return {
      kind: 'hangs',
      sentence: `${first.request} has been pending for ${oldest}; ${waitText(idle, first)}`,
      at: wait?.at,
      routes: group.flatMap(({ request }) => [request, generalName(request)]),
      share: group.length / inFlight.length,
      next: `longstack why ${pid}`
    }
  })
}

/** @param {Observation['idle']} idle @param {Observation['inFlight'][number]} request */
function waitText (idle, request) {
  const { waits: [wait], uses, stopped } = request
  const whats = [...(wait === undefined ? [] : [placeOf(wait)]), ...uses.map(({ what }) => what)]
  if (whats.length > 0) {
    const { ageMs = Infinity } = request
    const unused = idleSentence(idle, { at: wait?.at, isUsing: uses.length > 0, ageMs }, time)
    return `it waits for ${whats.join(', ')}.${unused}`
  }
  if (stopped !== undefined) return `${stoppedText(stopped)}.`
  return `what it waits for is unknown.${silenceSentence(idle)}`
}

/**
 * Names peers with silent connections only, for a request that waits for something unknown.
 * @param {Observation['idle']} idle
 */
function silenceSentence (idle) {
  const unused = idle.filter(({ open, silent, leastMs }) => silent === open && leastMs >= MIN_HANG_MS)
  return unused.slice(0, MAX_IDLE_PEERS).map(({ peer, open, leastMs }) => {
    const [on, they] = open === 1
      ? ['the only connection', 'it is']
      : [`any of the ${open} connections`, 'they are']
    return ` Nothing was sent or received on ${on} to ${peer} for at least ${time(leastMs)}: ` +
      `check whether ${they} released, and whether the peer responds.`
  }).join('')
}

/** @type {Rule} */
function failed ({ report, total }, _, pid) {
  const known = new Map((report?.routes ?? []).map((route) => [route.name, route]))
  // The verdict says how many calls fail
  const retried = new Set((report?.verdict ?? []).map(({ figures: { call } }) => call))
  return (report?.failures ?? []).filter(({ isOfClient, count, routes }) => {
    const isRetried = routes.some((route) => retried.has(route.name) && route.count >= count * MIN_RETRIED)
    if (isRetried) return false
    const called = routes.map(({ name }) => known.get(name))
    const isOfCalls = called.every((route) => route?.kind === 'CLIENT')
    const calls = called.reduce((sum, route) => sum + (route?.weighted ?? 0), 0)
    // A client may go away at any time; if it waited for long, the verdict says so.
    return isOfCalls ? count >= calls * MIN_FAILED_CALLS : !isOfClient
  }).map(({ type, message, at: place, count, routes }) => {
    const hasType = message.includes(type)
    const head = hasType ? message : [type, message].filter(Boolean).join(': ')
    const [first, ...others] = routes
    const more = others.length === 0 ? '' : ` and ${counted(others.length, 'more route')}`
    const route = first === undefined ? '' : ` in ${first.name}${more}`
    const served = routes.map(({ name }) => name).filter((name) => known.get(name)?.kind === 'SERVER')
    const where = place === undefined ? route : ` at ${shortFrame(place)}${route}`
    return {
      kind: 'failed',
      sentence: `${grouped(count)} × ${head}${where}.`,
      at: place,
      routes: served.length > 0 ? served : undefined,
      share: 2 * count / Math.max(count, total), // worse than slow requests
      next: `${recordCommand(pid)} --full`
    }
  })
}

/** @type {Rule} */
function starved ({ cpuWaits, loads }) {
  return [...cpuWaits].filter(([, share]) => share >= MIN_CPU_WAIT).map(([pid, share]) => ({
    kind: /** @type {const} */ ('busy'),
    sentence: `The main thread of process ${pid} waited for a CPU ${percent(share)} of the time: ` +
      `${competitorsOf(loads, pid)}. This slowed callbacks and requests.`,
    share: 1 + share, // other findings may be consequences
    next: 'ps -eo pid,pcpu,args --sort=-pcpu | head'
  }))
}

/** Names what competes for CPUs. @param {Observation['loads']} loads @param {number} pid @returns {string} */
function competitorsOf (loads, pid) {
  const { processShare = 0 } = loads.find((load) => load.pid === pid && load.threadId === 0) ?? {}
  return processShare > MIN_OWN_CPU
    ? `its own threads used ${percent(processShare)} of a CPU (workers, garbage collection, thread pool)`
    : 'other processes used it, or its container reached its limit'
}

/**
 * Names the route that the busiest event loop mostly ran, even if all others ran nothing else.
 * @param {Observation} observation
 */
function runsText ({ report, loads: [busiest, ...others], frame }) {
  const busyMs = busiest.share * frame.ms
  const elsewhereMs = others.reduce((sum, { share }) => sum + share, 0) * frame.ms
  const runs = (report?.routes ?? []).filter(({ kind }) => kind === 'SERVER')
    .map(({ name, weighted, split }) => ({ name, weighted, ms: weighted * (split?.run ?? 0) }))
  const [most] = runs.sort((a, b) => b.ms - a.ms)
  if (most === undefined || !(most.ms - elsewhereMs >= busyMs * MIN_OF_RUNS)) return ''
  return `, mostly with ${most.name} (${time(most.ms / most.weighted)} per request)`
}

/** @type {Rule} */
function busy (observation, found) {
  const { loads: [busiest] } = observation
  if (busiest === undefined || busiest.share < MIN_BUSY_SHARE) return []
  if (found.some(({ kind }) => kind === 'blocks' || kind === 'blocked' || kind === 'busy')) return []
  const { pid, threadId, share, cpuShare } = busiest
  const name = nameOfThread(pid, threadId).toLowerCase()
  const without = cpuShare > MIN_CPU_SHARE * share
    ? ''
    : `, with ${percent(cpuShare)} of a CPU: it waits for a CPU or in synchronous calls`
  return [{
    kind: 'busy',
    sentence: `The event loop of ${name} is busy ${percent(share)} of the time` +
      `${runsText(observation)}${without}.`,
    share,
    next: `longstack profile ${pid}`
  }]
}

/** @type {Rule} */
function grows ({ looks, frame }, found, pid) {
  const series = Object.entries(looks)
    .flatMap(([kind, list]) => seriesOf(list).map((own) => ({ kind, ...own })))
  const grown = series.flatMap(({ kind, noun, site, points }) => {
    const more = growthOf(points)
    if (more === undefined || found.some(({ at: place }) => place === site)) return []
    const [, present] = points[points.length - 1]
    const opened = kind === 'handles' ? ' opened' : ''
    const place = isFrame(site) ? `${opened} at ${shortFrame(site)}` : ''
    return [{
      kind: /** @type {const} */ ('grows'),
      sentence: `${noun}${place}: ${grouped(more)} more in ${time(frame.ms)}, ${grouped(present)} now.`,
      at: isFrame(site) ? site : undefined,
      share: more / Math.max(present, 1),
      next: kind === 'handles' ? `longstack diff ${pid}` : `longstack why ${pid}`
    }]
  })
  const placed = grown.filter(({ at: place }) => place !== undefined)
  return placed.length > 0 ? placed : grown // the others are mostly consequences of these
}

/** Returns the counts of each place over time. @param {import('./observation').Look[]} looks */
function seriesOf (looks) {
  const counts = looks.flatMap(({ ms, rows }) => rows.map((row) => ({ ms, ...row })))
  return groupBy(counts, ({ noun, site }) => `${noun} ${site}`).map((same) => {
    const byMs = new Map(same.map(({ ms, count }) => [ms, count]))
    return { ...same[0], points: looks.map(({ ms }) => [ms, byMs.get(ms) ?? 0]) }
  })
}

module.exports = { findingsOf }
