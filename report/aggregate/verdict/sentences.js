'use strict'

// The sentence and the advice of each finding.

const { convoySentence, cycleSentence, knownBy } = require('../../../lib/format/wait-graph')
const { stoppedText } = require('../../../lib/format/waits')
const { formatDuration, shortFrame } = require('../../../lib/text')
const { idleSentence } = require('./idle')

const MAX_NAME_CHARS = 100
const MIN_SAVED = 0.01 // share
const BLOCKING_MS = 20
const MIN_RUNNING_MS = 200 // a box knows when its process died to 100 ms

/** @param {number} share from 0 to 1 */
const percent = (share) => `${Math.round(share * 100)} %`

/** Formats a duration, with a decimal below 10 ms. @param {number} ms */
const time = (ms) => ms < 9.95 ? `${ms.toFixed(1)} ms` : formatDuration(ms)

/** @param {number} bytes */
const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`

/** @param {number} count @param {string} noun @param {string} [nouns] */
const counted = (count, noun, nouns = `${noun}s`) => `${count} ${count === 1 ? noun : nouns}`

/** @param {string} name of a route or function, from a file */
const short = (name) => name.length > MAX_NAME_CHARS ? `${name.slice(0, MAX_NAME_CHARS)}…` : name

/** Formats a frame as function, file and line. @param {string} frame */
const place = (frame) => short(shortFrame(frame))

/** Formats a mean count, as an integer if it is close to one. @param {number} mean */
function meanText (mean) {
  const rounded = Math.round(mean)
  return Math.abs(mean - rounded) < 0.05 || mean >= 20 ? String(rounded) : mean.toFixed(1)
}

/** @param {string | undefined} frame @returns {string} */
const atPlace = (frame) => frame === undefined ? '' : ` at ${place(frame)}`

/** @param {string | undefined} frame */
const scheduledAt = (frame) => frame === undefined ? '' : ` scheduled${atPlace(frame)}`

/**
 * @param {string | undefined} request
 * @param {string | undefined} frame
 * @param {string | false} isInside a verb: the frame runs in the callback, otherwise it has scheduled it
 */
function callbackText (request, frame, isInside) {
  const site = isInside ? ` that ${isInside} inside ${place(String(frame))}` : scheduledAt(frame)
  return `${request === undefined ? '' : ` for ${short(request)}`}${site}`
}

const FULL_ADVICE = 'find what fills it with heap snapshots (--heapsnapshot-near-heap-limit=1); raise ' +
  '--max-old-space-size if all of it is needed'
const RUNNING_ADVICE = 'compare heap snapshots to find what fills it; raise --max-old-space-size if all of ' +
  'it is needed'
const MEMORY_ADVICE = 'raise the limit, or find what takes the memory: the heap, or Buffers'
const STUCK_ADVICE = 'split the work, move it to a worker thread, or look for a loop without an end'
const KEPT_ADVICE = 'look for a cache, an array or listeners without a limit that keep them'

/**
 * Describes what filled the memory of a process.
 * @param {import('./memory').Holder} holder
 * @param {'heap' | 'buffers' | undefined} kind
 * @returns {string} empty if unknown
 */
function heldText ({ heldAt, heldBy, heldBytes, heldShare = 0 }, kind) {
  if (heldBytes === undefined) return ''
  const by = heldBy === undefined ? '' : `, for ${short(heldBy)}`
  if (kind === 'buffers') {
    const inside = heldAt === undefined ? '' : `, probably in ${place(heldAt)}`
    return `. Since memory was half full, ${short(String(heldBy))} allocated ${percent(heldShare)} of the ` +
      `${megabytes(heldBytes)} outside of the heap, mostly Buffers${inside}`
  }
  return `. ${percent(heldShare)} of the ${megabytes(heldBytes)} that it kept since sampling began ` +
    `were allocated by ${place(String(heldAt))}${by}`
}

/**
 * Sentence and advice by rule.
 * @type {Record<import('./index').Fault['rule'], (fault: any) => [string, string]>}
 */
const sentences = {
  collects ({ share, figures }) {
    const { pid, thread, used, limit } = figures
    const held = heldText(figures, 'heap')
    const name = thread === undefined ? `Process ${pid}` : `Thread ${thread} of process ${pid}`
    return [
      `${name} spent ${percent(share)} of the time in garbage collection; its heap has ${megabytes(used)} ` +
        `of at most ${megabytes(limit)}. This slowed callbacks and requests${held}.`,
      held === '' ? RUNNING_ADVICE : KEPT_ADVICE
    ]
  },
  death ({ at: frame, figures, details: { request, isInside, kind } }) {
    const { pid, unixMs, runningMs, requests, used, limit, resident, residentLimit } = figures
    const when = new Date(unixMs).toISOString().slice(0, 23).replace('T', ' ')
    const callback = `running a callback${callbackText(request, frame, isInside && 'was')}`
    const isLong = runningMs >= MIN_RUNNING_MS
    const lasting = isLong ? `For ${time(runningMs)} it had been ${callback}` : `It was ${callback}`
    const running = runningMs === undefined ? 'No callback was running' : lasting
    const inFlight = `${counted(requests, 'request')} ${requests === 1 ? 'was' : 'were'} in flight`
    const held = heldText(figures, kind)
    /** @type {Record<string, [string, string]>} */
    const causes = {
      heap: [
        `with a full heap: ${megabytes(used)} of at most ${megabytes(limit)} were left after its last ` +
          `full collection${held}`,
        held === '' ? FULL_ADVICE : KEPT_ADVICE
      ],
      memory: [
        `with ${megabytes(resident)} of the ${megabytes(Number(residentLimit))} that its container may ` +
          `use; its heap had ${megabytes(used)} after its last full collection${held}`,
        `the kernel probably killed it; ${held === '' ? MEMORY_ADVICE : KEPT_ADVICE}`
      ],
      stuck: [
        'while its event loop was stuck in one callback',
        STUCK_ADVICE
      ],
      unknown: [
        'without an orderly end: it was killed, or it crashed in native code',
        'look up its exit code or signal where it was started: the shell, systemd, Kubernetes'
      ]
    }
    const [how, advice] = causes[figures.cause]
    return [`Process ${pid} died at ${when} UTC ${how}. ${running}; ${inFlight}.`, advice]
  },
  stuck: ({ at: frame, figures: { pid, runningMs, requests }, details: { request, isInside } }) => [
    `The event loop of process ${pid} is stuck: for ${time(runningMs)} it has been running a callback` +
      `${callbackText(request, frame, isInside && 'is')}; ${counted(requests, 'request')} ` +
      `${requests === 1 ? 'is' : 'are'} in flight.`,
    STUCK_ADVICE
  ],
  filling ({ figures, details: { kind } }) {
    const { pid, thread, cause, used, limit, resident, residentLimit } = figures
    const held = heldText(figures, kind)
    if (cause === 'heap') {
      const owner = thread === undefined ? `process ${pid}` : `thread ${thread} of process ${pid}`
      return [
        `The heap of ${owner} has ${megabytes(used)} of at most ${megabytes(limit)} after its last ` +
          `full collection${held}.`,
        held === '' ? RUNNING_ADVICE : KEPT_ADVICE
      ]
    }
    return [
      `Process ${pid} has ${megabytes(resident)} of the ${megabytes(residentLimit)} that its container may ` +
        `use; its heap had ${megabytes(used)} after its last full collection${held}.`,
      held === '' ? MEMORY_ADVICE : KEPT_ADVICE
    ]
  },
  starved: ({ figures: { pid, cpuShare, busyShare, waitedShare } }) => waitedShare === undefined
    ? [
        `The event loop of process ${pid} was busy ${percent(busyShare)} of the time, but used only ` +
          `${percent(cpuShare)} of a CPU: it waited for a CPU or in synchronous calls. This slowed ` +
          'callbacks and requests.',
        'give the process more CPU, or look for synchronous calls; other findings may be consequences'
      ]
    : [
        `The main thread of process ${pid} waited for a CPU ${percent(waitedShare)} of the time. This ` +
          'slowed callbacks and requests.',
        'give the process more CPU; other findings may be consequences'
      ],
  blocker ({ at: frame, share, figures, details: { owner } }) {
    const { times, totalMs, worstMs, delayedMs, delayedRequests } = figures
    const others = delayedRequests > 0 ? `; it delayed others by ${time(delayedMs)}` : ''
    return [
      `${place(frame)}${owner === undefined ? '' : ` in ${short(owner)}`} blocked the event loop ` +
        `${counted(times, 'time')} (${time(totalMs)} total, ${time(worstMs)} max): ${percent(share)} of ` +
        `all request time${others}.`,
      'split it into slices, or move it to a worker thread'
    ]
  },
  delayer: ({ route, share, figures: { runMs, othersRunMs } }) => [
    `${short(route)} runs ${time(runMs)} per request, other routes ${time(othersRunMs)}; it delays them ` +
      `for ${percent(share)} of their time.`,
    'record with --blocked 20 to find the function; split it into slices, or move it to a worker thread'
  ],
  dependency ({ route, share, figures: { peer, answerMs, queuedMs, ownMs, connections, atOnce } }) {
    const head = `${short(route)} spends ${percent(share)} of its time waiting for ${short(peer)}, which ` +
      `responds in ${time(answerMs)}`
    const advice = 'check that service, cache its responses, or drop the call'
    if (queuedMs === undefined) return [`${head}.`, advice]
    return [
      `${head}: up to ${atOnce} queries at once share ${counted(connections, 'connection')}; each waits ` +
        `${time(queuedMs)} for others and then takes ${time(ownMs)}.`,
      'use more connections if the peer can take them, or find the slow queries among them'
    ]
  },
  loop ({ route, share, figures: { delayMs, runMs, runShare, victim, victimMs, victimUnreadMs } }) {
    const forClients = victim === undefined
      ? ''
      : ` ${short(victim)} takes ${time(victimMs)} here and ${time(victimMs + victimUnreadMs)} for clients.`
    return [
      `Requests wait for the event loop for ${time(delayMs)} on average, ${percent(share)} of their ` +
        `latency, while it runs ${short(route)} (${time(runMs)} per request, ${percent(runShare)} of all ` +
        `run time).${forClients}`,
      `${runMs >= BLOCKING_MS ? 'record with --blocked 20' : 'run longstack profile'} to find the ` +
        'function; make it cheaper, split it into slices, or move it to a worker thread'
    ]
  },
  background: ({ at: frame, share, figures: { delayMs, busyShare, meanMs, maxMs } }) => [
    `Requests wait for the event loop for ${time(delayMs)} on average, ${percent(share)} of their latency, ` +
      `while it runs code outside of requests: callbacks scheduled${atPlace(frame)} take ` +
      `${percent(busyShare)} of the time (${time(meanMs)} each, ${time(maxMs)} max).`,
    'run it less often or in smaller slices, or move it to a worker thread'
  ],
  retries: ({ route, share, figures: { call, callsPerRequest, most, failedShare } }) => [
    `${short(route)} repeats ${short(call)} until it succeeds: ${meanText(callsPerRequest)} calls per ` +
      `request, up to ${most}; ${percent(failedShare)} of them fail, which takes ${percent(share)} of its ` +
      'time.',
    'find out why these calls fail; back off between retries, and limit them'
  ],
  fanOut ({ route, at: frame, share, figures: { queries, unsentMs, answerMs, turns, atOnce, peer } }) {
    const limit = `${atOnce} at a time are in flight${peer === undefined ? '' : ` to ${short(peer)}`}`
    const waits = unsentMs === undefined
      ? `${meanText(turns)} run one after another, ${time(answerMs)} each`
      : `each waits ${time(unsentMs)} to be sent and ${time(answerMs)} for its response`
    return [
      `${short(route)} issues ${meanText(queries)} queries${unsentMs === undefined ? '' : ' at once'}` +
        `${atPlace(frame)}, but only ${limit}: ${waits}, ${percent(share)} of its time.`,
      unsentMs === undefined
        ? 'combine them into one query, or into a few'
        : 'combine them into one query, or limit how many run at once'
    ]
  },
  threads ({ route, at: frame, share, figures, details: { holder } }) {
    const { queuedMs, ranMs, atOnce, threads, subsystem } = figures
    const held = holder && ` These threads mostly run ${short(holder.until)} tasks${atPlace(holder.at)}.`
    return [
      `${short(route)} waits ${percent(share)} of its time for a thread of libuv's pool${atPlace(frame)}: ` +
        `up to ${atOnce} tasks at once for ${counted(threads, 'thread')}; each ${short(subsystem)} task ` +
        `waits ${time(queuedMs)} and then takes ${time(ranMs)}.${held ?? ''}`,
      'raise UV_THREADPOOL_SIZE if CPUs are free, or limit how many of these tasks run at once'
    ]
  },
  lookups: ({ route, at: frame, share, figures: { lookupMs, queuedMs } }) => [
    `${short(route)} spends ${percent(share)} of its time resolving host names${atPlace(frame)}: each ` +
      `lookup takes ${time(lookupMs)}` +
      `${queuedMs === undefined ? '' : `, ${time(queuedMs)} of it in the queue of libuv's thread pool`}.`,
    'reuse connections (keep-alive), cache lookups, or check the resolver of this machine'
  ],
  opening ({ route, at: frame, share, figures: { peer, openingMs, lookupMs, queuedMs } }) {
    const queue = queuedMs === undefined ? '' : ` (${time(queuedMs)} in the queue of libuv's thread pool)`
    const lookup = lookupMs === undefined ? '' : `, ${time(lookupMs)} of it for the host name${queue}`
    return [
      `${short(route)} spends ${percent(share)} of its time opening connections to ${short(peer)}` +
        `${atPlace(frame)}: each takes ${time(openingMs)}${lookup}.`,
      'reuse connections (keep-alive); check how long names are resolved, and the peer accepts'
    ]
  },
  workers ({ route, at: frame, share, figures: { atOnce, workers, busyShare, queuedMs, ranMs } }) {
    const most = workers === 1 ? '' : 'up to '
    const busy = busyShare === undefined ? '' : ` (${most}${percent(busyShare)} busy)`
    return [
      `${short(route)} waits ${percent(share)} of its time for a free worker thread${atPlace(frame)}: up ` +
        `to ${atOnce} tasks at once for ${counted(workers, 'worker')}${busy}; each task waits ` +
        `${time(queuedMs)} and then takes ${time(ranMs)}.`,
      'start more workers if CPUs are free, or give them less work'
    ]
  },
  stampede ({ route, at: frame, figures: { times, atOnce, requests, sending }, details: { caller } }) {
    const by = caller === undefined ? '' : ` ← ${place(caller)}`
    return [
      `${short(route)} sends a query${atPlace(frame)}${by} in only ${sending} of ` +
        `${counted(requests, 'request')}, but then up to ${atOnce} at once do, ${counted(times, 'time')}: ` +
        'a cache entry expires.',
      'if it is the same query, let one request send it and the others await its promise'
    ]
  },
  interval ({ route, at: frame, figures: { open, requests }, details: { label } }) {
    const site = frame === undefined ? '' : `, set at ${place(frame)}`
    const since = open > requests
      ? `, some from before the ${counted(requests, 'recorded request')}`
      : ` after ${counted(requests, 'request')}`
    return [
      `${short(route)} leaves ${label === undefined ? 'an interval' : short(label)} behind with each ` +
        `request${site}: ${open} are open${since}.`,
      'clear it when the response closes'
    ]
  },
  grows: ({ at: frame, figures: { noun, more, open, ms } }) => [
    `${open} × ${short(noun)} opened${atPlace(frame)} are open, ${more} more than ${time(ms)} before: ` +
      'their number grows steadily.',
    'close or clear them when the work that opened them is done'
  ],
  failing: ({ route, figures: { path, failed, others } }) => [
    `All ${counted(failed, 'request')} of ${short(route)} that fail are ${short(path)}; ` +
      `${counted(others, 'request')} of other paths succeed.`,
    'reproduce this request, and check what is special about it'
  ],
  unanswered ({ route, at: frame, figures, details: { error } }) {
    const { requests, longestMs, answeredMs, path } = figures
    const isKnown = path === undefined || route?.endsWith(` ${path}`)
    const of = isKnown ? short(route) : `${short(route)} (all ${short(path)})`
    const others = answeredMs === undefined ? '' : `; the others take ${time(answeredMs)}`
    const none = `${counted(requests, 'request')} of ${of} got no response for up to ${time(longestMs)}`
    const clients = `their clients gave up or still wait${others}.`
    if (error !== undefined) {
      const some = error.count === requests ? '' : ` in ${error.count} of them`
      return [
        `${none} after ${short(error.type)} was thrown${atPlace(frame)}${some}; ${clients}`,
        'check that the code that catches this error sends a response, or retries soon enough'
      ]
    }
    return [
      `${none}, and ${clients}${frame === undefined ? '' : ` They last ran${atPlace(frame)}.`}`,
      'look for a code path without a response, and for a connection or lock that is not released; run ' +
        'longstack why while one is pending'
    ]
  },
  hangs ({ route, at: frame, figures: { requests, oldestMs }, details }) {
    const { waits, isUsing, stopped, idle = [], isCut, lives } = details
    const all = `${isCut ? 'at least ' : ''}${requests}`
    const age = `${time(oldestMs)}${requests === 1 ? '' : ` (the oldest of ${all})`}`
    const [have, wait, waitsFor] = lives ? ['has been', 'is', 'waits'] : ['had been', 'was', 'waited']
    const none = stopped === undefined
      ? `no await or connection of it ${wait} pending`
      : stoppedText(stopped, !lives)
    const known = waits.length === 0 ? none : `it ${waitsFor} for ${waits.map(short).join(', ')}`
    const unused = idleSentence(idle, { at: frame, isUsing, ageMs: oldestMs }, time, !lives)
    return [
      `${short(route)} ${have} pending for ${age}; ${known}.${unused}`,
      stopped === undefined
        ? 'look for what should end this wait: an event that never comes, or a lock or a connection that ' +
          'is not released'
        : 'look for a path in the code after that without a response'
    ]
  },
  deadlock ({ details: { cycle } }) {
    const sentence = cycleSentence(cycle).replace(/^(?:probably a )?deadlock: /, '')
    const head = cycle.by === 'name' ? 'Probably a deadlock' : 'A deadlock'
    return [
      `${head} at the end of the recording: ${sentence} (${knownBy(cycle)}).`,
      'take them in the same order everywhere, or release one before waiting for the other'
    ]
  },
  convoy ({ details: { convoy } }) {
    return [
      `At the end of the recording, ${convoySentence(convoy)} (${knownBy(convoy)}).`,
      'hold it for a shorter time, and release it also after an error'
    ]
  },
  after ({ route, at: frame, figures, details: { caller, count } }) {
    const { requests, calls, asked, failed, lateMs } = figures
    const each = meanText(asked / requests)
    const [one, several] = calls > 0 ? ['call', 'calls'] : ['query', 'queries']
    const failures = failed > 0 ? `; ${failed} of ${counted(asked, one, several)} fail` : ''
    return [
      `${short(route)} continues after its response in ${requests} of ${counted(count, 'request')}: ` +
        `${each} ${each === '1' ? one : several} at ${place(frame)}` +
        `${caller === undefined ? '' : ` ← ${place(caller)}`}, for ${time(lateMs)}${failures}.`,
      'await it before sending the response, or handle its errors: no client sees them'
    ]
  },
  pool ({ route, at: frame, share, figures, details: { isAgent, isQueue, routes } }) {
    const { peer, connections, queries, waitShare, atATime, heldShare, heldAt, heldFor } = figures
    const sizes = []
    if (atATime !== undefined) sizes.push(`${atATime === 1 ? '' : 'up to '}${atATime} at a time`)
    if (connections !== undefined) sizes.push(counted(connections, 'connection'))
    if (!isQueue) {
      const noun = meanText(queries) === '1' ? 'query' : 'queries'
      sizes.push(`${routes > 1 ? 'up to ' : ''}${meanText(queries)} ${noun} per request`,
        `${percent(waitShare)} of the wait for ${short(peer)} is for a free connection`)
    }
    const held = heldShare === undefined
      ? ''
      : `; ${percent(heldShare)} of a turn is the wait` +
        `${heldFor === undefined ? '' : ` for ${short(heldFor)}`}${atPlace(heldAt)}`
    const isAlone = route !== undefined
    const awaited = isAgent ? 'a free socket of an http.Agent' : atATime === 1 ? 'a lock' : 'a turn'
    const morePlaces = 'raise the limit of the pool, or of the queue in front of it, if the peer can take ' +
      'more; or send fewer queries per request'
    const shorter = isAgent
      ? 'raise maxSockets of the agent, if the peer can take more'
      : heldShare === undefined
        ? 'raise the limit, or hold the lock or slot for a shorter time'
        : 'move that wait before or after it, make it shorter, or raise the limit'
    return [
      `${isAlone ? `${short(route)} waits` : `${routes} routes wait`} for ` +
        `${awaited}${atPlace(frame)} ` +
        `${percent(share)} of ${isAlone ? 'its' : 'their'} time` +
        `${sizes.length === 0 ? '' : ': '}${sizes.join(', ')}${held}.`,
      isQueue ? shorter : morePlaces
    ]
  },
  sequence ({ route, at: frame, share, figures, details: { loop } }) {
    const { steps, queries, requestMs, places } = figures
    const sites = `at ${places === 1 ? '' : `${places} places of `}${place(frame)}`
    const repeated = loop === undefined
      ? ''
      : `: ${Math.round(loop.steps)} × ${short(loop.frame.replace(/ \(.*$/, ''))} in each request`
    const part = queries - steps < 0.5 ? '' : `${meanText(steps)} of them `
    const answers = queries === undefined
      ? `waits for ${Math.round(steps)} responses `
      : `sends ${meanText(queries)} queries per request, ${part}`
    const saved = share < MIN_SAVED
      ? ''
      : `; if they are independent, running them at once would save ${percent(share)} of its time`
    return [
      `${short(route)} ${answers}one after another ${sites}${repeated}, for ` +
        `${time(requestMs)} per request${saved}.`,
      'use Promise.all, or combine them into one query'
    ]
  }
}

const FIGURE_NAMES = { median: 'the median', p99: 'p99' }
const MAX_PREDICTIONS = 2

/** @param {import('./index').Fault} fault @param {import('../what-if').WhatIf} gain */
function whatIfSentence ({ at: frame, route, details }, { change, places, predictions }) {
  const changes = {
    offThread: () => frame === undefined
      ? `Without long callbacks of ${short(String(route))} on the main thread,`
      : `Without ${short(frame.replace(/ \(.*$/, ''))} on the main thread,`,
    places: () => `With ${places} connections to ${short(String(details?.peer))}, responding as fast,`,
    atOnce: () => 'If responses stay as fast with all of them at once,'
  }
  const falls = predictions.slice(0, MAX_PREDICTIONS).map(({ figure, route, beforeMs, afterMs, unread }) => {
    const name = `${FIGURE_NAMES[figure]} of ${short(route)}`
    return `${name} falls from ${time(beforeMs)} to ${time(afterMs)}${unread ? ' for clients' : ''}`
  })
  return `${changes[change]()} ${falls.join(', ')}.`
}

module.exports = { sentences, whatIfSentence }
