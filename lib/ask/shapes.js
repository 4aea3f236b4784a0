'use strict'

// The shapes of a process's responses, as far as commands read them. The listener at a socket or port may be
// another program, another version of longstack, or hostile. A response of the wrong shape is refused here,
// once, so its readers need no checks. Properties that are not listed are ignored.

/** @typedef {(value: any) => boolean} Shape */

const MAX_DEPTH = 2500 // nested objects: a profile has up to 2,000, and JSON is written recursively

const text = (/** @type {unknown} */ value) => typeof value === 'string'
const flag = (/** @type {unknown} */ value) => typeof value === 'boolean'
const number = (/** @type {unknown} */ value) => typeof value === 'number'
const integer = Number.isSafeInteger
/** A number or null: JSON writes NaN and Infinity as null. */
const figure = (/** @type {unknown} */ value) => value === null || typeof value === 'number'
/** A string that is used as a key of tables. */
const word = (/** @type {any} */ value) => typeof value === 'string' && !(value in Object.prototype)
const anything = () => true

/** @param {Shape} shape @returns {Shape} */
const optional = (shape) => (value) => value === undefined || shape(value)

/** @param {Shape} shape @returns {Shape} */
const list = (shape) => (value) => Array.isArray(value) && value.every(shape)

/** @param {Record<string, Shape>} shapes @returns {Shape} */
function object (shapes) {
  const entries = Object.entries(shapes)
  return (value) => isObject(value) && entries.every(([name, shape]) => shape(value[name]))
}

/** An object with any keys. @param {Shape} shape of their values @returns {Shape} */
const table = (shape) => (value) => isObject(value) && Object.values(value).every(shape)

/** @param {unknown} value */
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)

const frame = object({
  functionName: optional(text),
  fileName: optional(text),
  lineNumber: optional(number),
  columnNumber: optional(number)
})
const hop = object({
  asyncId: figure,
  triggerAsyncId: figure,
  type: text,
  label: text,
  ageMs: figure,
  repeats: number,
  origin: word,
  frames: list(frame),
  lines: list(text),
  short: optional(list(text))
})
const hops = list(hop)

const facts = object({
  pid: integer,
  threadId: integer,
  isMainThread: flag,
  node: text,
  longstack: text,
  title: text,
  script: optional(text),
  uptimeMs: number,
  rss: optional(number),
  tracing: text,
  spans: flag,
  blocked: optional(number)
})

const handle = object({
  group: integer,
  what: text,
  noun: text,
  type: text,
  origin: text,
  side: optional(text),
  state: optional(text),
  local: optional(text),
  remote: optional(text),
  opened: optional(hops),
  usedBy: optional(object({ request: text, hops: optional(hops) })),
  writtenBy: optional(object({ at: optional(text), agoMs: number, hops })),
  through: list(object({ name: text, at: optional(text) })),
  ageMs: optional(number),
  idleMs: optional(number),
  bytesRead: optional(number),
  bytesWritten: optional(number),
  referenced: optional(flag),
  hint: optional(text),
  growth: optional(object({ more: number, elapsedMs: number }))
})
const handles = optional(list(handle))

const counted = list(object({ request: text, count: number }))
const requests = object({
  count: number,
  requests: list(object({
    request: text,
    ageMs: optional(figure),
    leastMs: optional(figure),
    answering: flag,
    waits: list(object({ at: optional(text), label: text, count: number, oldestMs: figure })),
    uses: list(object({ what: text, sinceMs: optional(figure) })),
    stopped: optional(object({ at: optional(text), label: optional(text) })),
    hops
  })),
  noteCode: optional(text),
  // Absent if the process has loaded an older version
  idle: optional(list(object({
    peer: text,
    open: number,
    idle: number,
    silent: optional(number),
    leastMs: figure,
    users: list(object({ request: optional(text), at: optional(text), count: number }))
  })))
})
const agentQueues = list(object({ peer: text, waiting: number, sockets: number, max: figure }))
const pending = object({
  groups: list(object({
    at: optional(text),
    label: text,
    count: number,
    oldestMs: number,
    newestMs: number,
    requests: counted,
    hops
  })),
  noteCode: optional(text)
})

const cycles = list(object({
  by: text,
  behind: number,
  members: list(object({
    request: text, count: number, took: optional(text), at: text, caller: optional(text), oldestMs: number
  }))
}))
const convoys = list(object({
  by: text,
  requests: counted,
  count: number,
  at: text,
  caller: optional(text),
  oldestMs: number,
  for: object({
    request: text,
    count: number,
    took: optional(text),
    at: optional(text),
    uses: optional(text),
    heldMs: number
  })
}))
const edges = list(object({ waits: text, for: text, at: text }))

const openFigures = object({
  count: number,
  groups: list(object({ chain: integer, noun: text, site: text, count: number }))
})
const topFacts = object({
  pid: integer, threadId: integer, name: text, blockedMs: optional(number), handles: openFigures
})
const topFigures = object({
  ms: number,
  enabled: flag,
  routes: list(object({
    name: text,
    count: number,
    errors: number,
    lost: number,
    sumUs: number,
    maxUs: number,
    buckets: list(number)
  })),
  inFlight: number,
  oldest: optional(object({ ms: number, name: text })),
  thread: object({
    loop: object({ share: figure, p50Ms: figure, p99Ms: figure, maxMs: figure }),
    cpuMs: optional(number),
    process: optional(object({ cpuMs: number, rss: number })),
    heap: object({ used: number, limit: optional(number) })
  }),
  blockers: list(object({ site: text, count: number, ms: number, worstMs: number, stack: text })),
  waits: optional(list(object({
    chain: integer, site: text, label: text, isOfRequest: flag, count: number
  }))),
  handles: openFigures,
  waitsFor: object({ cycles, convoys })
})

const metric = object({
  type: text,
  unit: word,
  description: text,
  points: list(object({
    attributes: table(text),
    value: optional(figure),
    histogram: optional(object({ count: number, sum: number, bounds: list(number), counts: list(number) }))
  }))
})
const metrics = object({
  enabled: flag, sinceUnixMs: number, unixMs: number, resource: table(anything), metrics: table(metric)
})

/** By query of lib/ask/session.js. @type {Record<string, Shape>} */
const answers = {
  facts,
  open: handles,
  requests,
  agentQueues,
  pending,
  waitGraph: object({ edges, cycles, convoys }),
  snapshot: anything,
  diff: handles,
  attach: object({ wasEnabled: flag }),
  profile: anything, // report/read/profile.js reads it
  finishProfile: anything,
  startLog: anything,
  finishLog: optional(object({ unsentMs: number })),
  startTop: topFacts,
  readTop: optional(topFigures),
  metrics,
  stopTop: anything,
  describeChain: text
}

/** By event that a process sends unprompted. @type {Record<string, Shape>} */
const events = { blocked: object({ text }), log: object({ block: text }) }

/** Checks a response to a query. @param {string} question @param {unknown} value */
const isAnswer = (question, value) => isShallow(value, MAX_DEPTH) && answers[question](value)

/** Checks the value of an event. @param {unknown} event @param {unknown} value */
const isEvent = (event, value) => typeof event === 'string' && Object.hasOwn(events, event) &&
  isShallow(value, MAX_DEPTH) && events[event](value)

/** @param {any} value @param {number} depth @returns {boolean} whether objects nest no deeper */
function isShallow (value, depth) {
  if (typeof value !== 'object' || value === null) return true
  if (depth === 0) return false
  for (const member of Object.values(value)) if (!isShallow(member, depth - 1)) return false
  return true
}

module.exports = { isAnswer, isEvent }
