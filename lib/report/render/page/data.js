'use strict'

// What of a model goes into the page, in the shape the page wants: times in ms from the start of a trace, each stack
// once, foreign text cut to a length one can read. A model that is too large is thinned step by step until it fits, and
// the page says what was left out. Everything in a model may come from a hostile file: nothing is taken on trust here.

const { shortFrame } = require('../../../text')
const { count, plural } = require('./client/format')

/**
 * @typedef {object} Limits
 * @property {number} routes
 * @property {number} rows of the other tables
 * @property {number} traces
 * @property {number} spans of one trace
 * @property {number} text characters of a stack
 * @property {number} value characters of an attribute
 * @property {number} points of a density
 * @property {number} outliers of a box
 *
 * @typedef {object} Split ms
 * @property {number} [run]
 * @property {number} [waited]
 * @property {number} [delayed]
 * @property {Array<[string, number]>} wait waited, by subsystem, longest first
 *
 * @typedef {{ ms: number, count: number, at?: string, site?: string, until?: string }} Wait site is `at` in short
 * @typedef {{ spanId?: string, name?: string, ms?: number, at?: string }} Delay
 * @typedef {{ name: string, message: string, at?: number, stack?: number }} Event
 *
 * @typedef {object} PageSpan
 * @property {string} id
 * @property {string} [parent]
 * @property {string} name
 * @property {string} kind
 * @property {boolean} [blocked] a blocked run of the loop
 * @property {number} start ms from the start of its trace
 * @property {number} ms
 * @property {string} status UNSET, OK or ERROR
 * @property {string} [message]
 * @property {string} [end] why it did not end as it should, or "open"
 * @property {Split} [split]
 * @property {Wait[]} waits worst first
 * @property {Delay[]} delayedBy
 * @property {Array<[number, number, string]>} runs start from the span's own start, ms, what ran
 * @property {number} [stack] index in stacks
 * @property {Event[]} events
 * @property {Array<[string, string]>} attributes
 * @property {string} [where] its service
 *
 * @typedef {{ id: string, name: string, startUnixMs?: number, ms: number, spans: PageSpan[], more: number }} PageTrace
 *
 * @typedef {object} PageRoute
 * @property {string} name
 * @property {string} kind
 * @property {Record<string, number>} figures count, rate, errors, open, min … p999
 * @property {{ low?: number, q1?: number, median?: number, q3?: number, high?: number, outliers: number[], outlierCount?: number }} [box]
 * @property {Array<[number, number]>} density
 * @property {Array<[number, number]>} logDensity
 * @property {number} [beyond] spans past the end of the density
 * @property {Split} [split]
 *
 * @typedef {object} PageRow a span in a table, or a blocker
 * @property {string} name
 * @property {string} [at]
 * @property {string} [traceId]
 * @property {string} [spanId]
 * @property {string} [status]
 * @property {boolean} [open] a blocker that had not ended
 * @property {boolean} [guessed] a blocker known by the delays it caused only
 * @property {Record<string, number>} figures
 * @property {Split} [split]
 * @property {Wait[]} waits worst first
 * @property {Delay[]} delayedBy
 * @property {number} [stack]
 *
 * @typedef {object} PageRun
 * @property {string} label
 * @property {number} [from] unix ms
 * @property {number} [to] unix ms
 * @property {Array<{ name: string, spans?: number, skipped?: number, problems: string[] }>} files
 * @property {string[]} notes
 * @property {PageRoute[]} routes
 * @property {PageRow[]} blockers
 *
 * @typedef {object} PageData
 * @property {string} title
 * @property {PageRun[]} runs one, or two to compare
 * @property {PageRow[]} slowest
 * @property {PageRow[]} open
 * @property {PageTrace[]} traces
 * @property {string[]} stacks
 * @property {string[]} thinned what is not on the page, in sentences
 */

/** Of everything embedded, as written: what the library, the styles and the page's code need comes on top. */
const BUDGET_BYTES = 3_800_000
const TABLES_BYTES = 1_900_000 // of these, so that many routes leave room for single requests

const TABLES = { routes: 300, rows: 200, points: 256, outliers: 200 }
const TRACES = { traces: 100, spans: 1000, text: 16_000, value: 2000 }
const STEPS = 6
const NAME_CHARS = 300
const ROW_WAITS = 3 // of a request in a table
const SPAN_WAITS = 10 // of a span that is looked at by itself

const FIGURES = ['count', 'weighted', 'rate', 'errors', 'open']
const SUMMARY = ['min', 'q1', 'median', 'mean', 'q3', 'max', 'p99', 'p999']
const ROW_FIGURES = ['ms', 'startUnixMs', 'count', 'totalMs', 'worstMs', 'delayedSpans', 'delayedMs']

/**
 * Thins the tables and the single requests apart from each other, each as much as it must be.
 * @param {any} model see Model in lib/report/aggregate/model.js
 * @param {string} title
 * @returns {{ data: PageData, json: string }}
 */
function fit (model, title) {
  const tables = steps((step) => thin({ ...model, traces: {} }, title, limitsOf(step, STEPS)), TABLES_BYTES)
  return steps((step) => thin(model, title, limitsOf(tables.step, step)), BUDGET_BYTES)
}

/** @param {(step: number) => PageData} make @param {number} most bytes */
function steps (make, most) {
  for (let step = 0; ; step++) {
    const data = make(step)
    const json = escape(JSON.stringify(data))
    if (step === STEPS || Buffer.byteLength(json) <= most) return { data, json, step }
  }
}

/** Each step halves all that can be long. @param {number} tables @param {number} traces @returns {Limits} */
function limitsOf (tables, traces) {
  return { ...halved(TABLES, tables), ...halved(TRACES, traces), points: Math.max(64, TABLES.points >> tables) }
}

/** @template {Record<string, number>} Some @param {Some} limits @param {number} step @returns {Some} */
function halved (limits, step) {
  return /** @type {Some} */ (Object.fromEntries(Object.entries(limits).map(([name, most]) => [name, Math.max(8, most >> step)])))
}

/** No "<", so that neither a tag's end nor a comment can begin inside of a script element. @param {string} json */
function escape (json) {
  return json.replace(/</g, '\\u003c')
}

/** @param {any} model @param {string} title @param {Limits} limits @returns {PageData} */
function thin (model, title, limits) {
  const stacks = createStacks(limits.text)
  /** @type {string[]} */
  const thinned = []
  const tell = (/** @type {string} */ sentence) => { if (!thinned.includes(sentence)) thinned.push(sentence) }
  const rows = (/** @type {unknown} */ list, /** @type {string} */ what) => few(list, limits.rows, what, tell).map((one) => row(one, stacks, limits))
  const pair = object(model.compare) ? [model, model.compare] : [model]
  return {
    title: text(title, NAME_CHARS),
    runs: pair.map((one, i) => run(one, labels(pair)[i], limits, rows, tell)),
    slowest: rows(model.slowest, 'slowest requests'),
    open: rows(model.open, 'open requests'),
    traces: traces(model, limits, stacks, tell),
    stacks: stacks.list,
    thinned: [...thinned, ...stacks.told()]
  }
}

/**
 * @param {any} model @param {string} label @param {Limits} limits
 * @param {(list: unknown, what: string) => PageRow[]} rows
 * @param {(sentence: string) => void} tell
 * @returns {PageRun}
 */
function run (model, label, limits, rows, tell) {
  return {
    label,
    from: number(model.span?.fromUnixMs),
    to: number(model.span?.toUnixMs),
    files: few(model.files, limits.rows, 'files', tell).map((file) => ({
      name: text(file.name, NAME_CHARS), spans: number(file.spans), skipped: number(file.skipped), problems: sentences(file.problems).map((problem) => `${text(file.name)}: ${problem}`)
    })),
    notes: sentences(model.notes),
    routes: few(model.routes, limits.routes, 'routes', tell).map((one) => route(one, limits, tell)),
    blockers: rows(model.blockers, 'blockers')
  }
}

/** What two runs are called: their files, if those tell them apart. @param {any[]} models */
function labels (models) {
  const names = models.map((model) => array(model.files).map((file) => text(file?.name, NAME_CHARS).replace(/^.*[/\\]/, '')).join(', '))
  const clear = names.length === 1 || (names[0] !== names[1] && names.every((name) => name !== '' && name.length <= 60))
  return clear ? names : ['first run', 'second run']
}

/** @param {any} one @param {Limits} limits @param {(sentence: string) => void} tell @returns {PageRoute} */
function route (one, limits, tell) {
  return {
    name: text(one.name, NAME_CHARS),
    kind: text(one.kind ?? '', 20),
    figures: { ...figures(one, FIGURES), ...figures(one.summary, SUMMARY) },
    box: object(one.box) ? box(one.box, limits, tell) : undefined,
    density: density(one.density, limits.points),
    logDensity: density(one.logDensity, limits.points),
    beyond: number(one.density?.beyond) || undefined,
    split: split(one.split)
  }
}

/** @param {any} one @param {Limits} limits @param {(sentence: string) => void} tell @returns {PageRoute['box']} */
function box (one, limits, tell) {
  const outliers = array(one.outliers).map(number).filter((value) => value !== undefined)
  const count = number(one.outlierCount) ?? outliers.length
  const shown = even(outliers, limits.outliers).map(round)
  if (shown.length < count) tell('Of outliers outside of the whiskers at most a few hundred are drawn for each route; the figures count all.')
  return { ...figures(one, ['low', 'q1', 'median', 'q3', 'high']), outliers: shown, outlierCount: count }
}

/** @param {any} one @param {number} points @returns {Array<[number, number]>} */
function density (one, points) {
  if (!object(one)) return []
  const [xs, ys] = [array(one.x), array(one.y)]
  const pairs = /** @type {Array<[number, number]>} */ (xs.map((x, i) => [number(x), number(ys[i])]).filter(([x, y]) => x !== undefined && y !== undefined))
  return even(pairs, points).map(([x, y]) => [round(x), round(y)])
}

/** @param {any} one @param {ReturnType<typeof createStacks>} stacks @param {Limits} limits @returns {PageRow} */
function row (one, stacks, limits) {
  return {
    name: text(one.name ?? '', NAME_CHARS),
    at: string(one.at, NAME_CHARS),
    traceId: string(one.traceId, 32),
    spanId: string(one.spanId, 16),
    status: string(one.status?.code, 20),
    open: one.open === true || undefined,
    guessed: one.known === 'delays' || undefined,
    figures: figures(one, ROW_FIGURES),
    split: split(one.split),
    waits: waits(one.waits, ROW_WAITS),
    delayedBy: delays(one.delayedBy, limits),
    stack: stacks.add(one.stack)
  }
}

/** @param {any} one @returns {Split | undefined} */
function split (one) {
  if (!object(one)) return undefined
  const wait = object(one.wait) ? Object.entries(one.wait).map(([name, ms]) => [text(name, 40), number(ms)]).filter(([, ms]) => ms !== undefined) : []
  wait.sort((a, b) => Number(b[1]) - Number(a[1]))
  const parts = figures(one, ['run', 'waited', 'delayed'])
  return { ...parts, wait: /** @type {Split['wait']} */ (wait.slice(0, 30)) }
}

/** Takes the first waits of a list. @param {unknown} list @param {number} max @returns {Wait[]} */
function waits (list, max) {
  const valid = array(list).filter((one) => object(one) && number(one.ms) !== undefined)
  return valid.slice(0, max).map(({ ms, count: times, at, until }) => {
    const frame = string(at, NAME_CHARS)
    const site = frame === undefined ? undefined : shortFrame(frame)
    return { ms, count: number(times) ?? 1, at: frame, site, until: string(until, NAME_CHARS) }
  })
}

/** @param {unknown} list @param {Limits} limits @returns {Delay[]} */
function delays (list, limits) {
  return array(list).filter(object).slice(0, 20).map((one) => ({
    spanId: string(one.spanId, 16), name: string(one.name, NAME_CHARS), ms: number(one.ms), at: string(one.at, limits.value)
  }))
}

/**
 * The trees of the slowest requests, in their order.
 * @param {any} model @param {Limits} limits @param {ReturnType<typeof createStacks>} stacks @param {(sentence: string) => void} tell
 * @returns {PageTrace[]}
 */
function traces (model, limits, stacks, tell) {
  const all = object(model.traces) ? Object.entries(model.traces).filter(([, spans]) => Array.isArray(spans) && spans.length > 0) : []
  const order = new Map(array(model.slowest).filter(object).map((one, i) => /** @type {[any, number]} */ ([one.traceId, i])).reverse())
  all.sort((a, b) => (order.get(a[0]) ?? Infinity) - (order.get(b[0]) ?? Infinity) || 0)
  if (all.length > limits.traces) tell(`Of ${count(all.length)} traces the slowest ${limits.traces} are here to be looked at step by step.`)
  return all.slice(0, limits.traces).map(([id, spans]) => trace(id, spans, limits, stacks)).filter(({ spans }) => spans.length > 0)
}

/** @param {string} id @param {any[]} digests @param {Limits} limits @param {ReturnType<typeof createStacks>} stacks @returns {PageTrace} */
function trace (id, digests, limits, stacks) {
  const all = digests.filter((one) => object(one) && number(one.startUnixMs) !== undefined).sort((a, b) => a.startUnixMs - b.startUnixMs || b.ms - a.ms)
  const first = all[0]?.startUnixMs ?? 0
  const end = all.reduce((most, one) => Math.max(most, one.startUnixMs + (number(one.ms) ?? 0)), first)
  const spans = all.slice(0, limits.spans).map((one) => span(one, first, stacks, limits))
  const ids = new Set(spans.map((one) => one.id))
  const root = spans.find((one) => one.parent === undefined || !ids.has(one.parent)) ?? spans[0]
  return { id: text(id, 32), name: root?.name ?? '', startUnixMs: first, ms: micros(end - first), spans, more: all.length - spans.length }
}

/** @param {any} one @param {number} first start of the trace @param {ReturnType<typeof createStacks>} stacks @param {Limits} limits @returns {PageSpan} */
function span (one, first, stacks, limits) {
  return {
    id: text(one.spanId ?? '', 16),
    parent: string(one.parentSpanId, 16),
    name: text(one.name ?? ''),
    kind: text(one.kind ?? 'INTERNAL', 20),
    blocked: one.blocked === true || undefined,
    start: micros(one.startUnixMs - first),
    ms: Math.max(0, number(one.ms) ?? 0),
    status: text(one.status?.code ?? 'UNSET', 20),
    message: string(one.status?.message, limits.value),
    end: string(one.end, 40),
    split: split(one.split),
    waits: waits(one.waits, SPAN_WAITS),
    delayedBy: delays(one.delayedBy, limits),
    runs: runs(one.runs),
    stack: stacks.add(one.stack),
    events: array(one.events).filter(object).slice(0, 20).map((each) => event(each, one.startUnixMs, stacks, limits)),
    attributes: attributes(one.attributes, limits),
    where: string(one.service, NAME_CHARS)
  }
}

/** @param {unknown} list @returns {PageSpan['runs']} */
function runs (list) {
  const right = array(list).filter((one) => Array.isArray(one) && number(one[0]) !== undefined && number(one[1]) !== undefined)
  return right.slice(0, 64).map(([start, ms, type]) => [round(start), round(ms), text(type ?? '', 60)])
}

/** @param {any} one @param {number} start @param {ReturnType<typeof createStacks>} stacks @param {Limits} limits @returns {Event} */
function event ({ name, message, unixMs, stack }, start, stacks, limits) {
  const at = number(unixMs)
  return { name: text(name ?? ''), message: text(message ?? '', limits.value), at: at ? micros(at - start) : undefined, stack: stacks.add(stack) }
}

/** @param {any} all @param {Limits} limits @returns {Array<[string, string]>} */
function attributes (all, limits) {
  if (!object(all)) return []
  return Object.entries(all).slice(0, 60).map(([name, value]) => [text(name), text(typeof value === 'object' ? JSON.stringify(value) : value, limits.value)])
}

/** Each stack once, cut where it is longer than anyone reads. @param {number} chars */
function createStacks (chars) {
  /** @type {Map<string, number>} */
  const known = new Map()
  let cut = 0
  return {
    list: /** @type {string[]} */ ([]),
    /** @param {unknown} stack @returns {number | undefined} */
    add (stack) {
      if (typeof stack !== 'string' || stack === '') return undefined
      const kept = text(stack, chars)
      const index = known.get(kept) ?? this.list.push(kept) - 1
      if (!known.has(kept) && stack.length > chars) cut++
      known.set(kept, index)
      return index
    },
    told () {
      return cut === 0 ? [] : [`${plural(cut, 'stack')} longer than ${count(chars)} characters ${cut === 1 ? 'is' : 'are'} cut there.`]
    }
  }
}

/**
 * @param {unknown} list @param {number} most @param {string} what @param {(sentence: string) => void} tell
 * @returns {any[]}
 */
function few (list, most, what, tell) {
  const all = array(list).filter(object)
  if (all.length > most) tell(`Of ${count(all.length)} ${what} the first ${count(most)} are shown.`)
  return all.slice(0, most)
}

/** Evenly spread, both ends kept. @template T @param {T[]} list @param {number} most @returns {T[]} */
function even (list, most) {
  if (list.length <= most) return list
  return Array.from({ length: most }, (_, i) => list[Math.round(i * (list.length - 1) / (most - 1))])
}

/** @param {any} from @param {string[]} names @returns {Record<string, number>} */
function figures (from, names) {
  const known = names.map((name) => [name, number(from?.[name])]).filter(([, value]) => value !== undefined)
  return Object.fromEntries(known)
}

/** @param {unknown} value */
function text (value, most = NAME_CHARS) {
  const all = typeof value === 'string' ? value : String(value)
  if (all.length <= most) return all
  return `${all.slice(0, most)} … (${count(all.length - most)} more characters)`
}

/** @param {unknown} value @param {number} most */
function string (value, most) {
  return value === undefined || value === null || value === '' ? undefined : text(value, most)
}

/** @param {unknown} value @returns {number | undefined} */
function number (value) {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** Five digits: more than a screen can show. @param {number} value */
function round (value) {
  return Number(value.toPrecision(5))
}

/** @param {unknown} value @returns {value is any} */
function object (value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** @param {unknown} value @returns {any[]} */
function array (value) {
  return Array.isArray(value) ? value : []
}

/** @param {unknown} list @returns {string[]} */
function sentences (list) {
  return array(list).slice(0, 50).map((one) => text(one, 500))
}

/** Times since 1970 hold no more. @param {number} ms */
function micros (ms) {
  return Math.round(ms * 1000) / 1000
}

module.exports = { fit }
