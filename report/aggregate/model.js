'use strict'

// Builds the model of a report from span files: --json prints it, and all output is rendered from it. Its
// size is bounded: durations are kept as numbers, and of everything else only the worst few.

const { changesOf } = require('./changes')
const { digest } = require('./digest')
const { allOf, getOrCreate } = require('./lists')
const { ModelBuilder } = require('./model-builder')
const { readFiles } = require('../read/span-files')
const { RereadableSources } = require('../read/sources')

/**
 * @typedef {import('../read/span-line').Span} Span
 * @typedef {import('./digest').Digest} Digest
 *
 * @typedef {object} Model undefined properties are absent in JSON
 * @property {import('../read/span-files').FileReport[]} files
 * @property {{ fromUnixMs: number, toUnixMs: number } | undefined} span first start and last end of all spans
 * @property {string[]} notes sentences on how the figures were computed and what was omitted
 * @property {import('./routes').Route[]} routes servers first, then by total time
 * @property {import('./verdict').Finding[]} verdict worst first; empty if there is no definite problem
 * @property {import('./convoys').Convoy[]} convoys those with the most requests first
 * @property {import('./path-tree').PathNode} tree time of all requests, with a child per route
 * @property {import('./path-tree').PathNode} slowTree the same for the slowest 1 % of each route's requests
 * @property {import('./failures').Failure[]} failures most frequent first, at most 100
 * @property {import('./time-axis').Series | undefined} series over time; undefined if no request ended
 * @property {Digest[]} slowest requests, slowest first; any spans if there are no server spans
 * @property {import('./blockers').Blocker[]} blockers worst first, at most 100
 * @property {Digest[]} open spans still open when they were written, oldest first, at most 100
 * @property {number} openCount number of all open spans
 * @property {Record<string, Digest[]>} traces trees of the slowest requests, by trace id, each in order of
 *   start; empty unless requested
 * @property {Model} [compare] the other run; changes go from the model itself to this one
 * @property {import('./changes').Changes} [changes] differences, if two runs are compared
 * @property {string} blocked option `blocked` of its processes in words; empty without spans
 * @property {import('./limits').LimitCheck[]} [limits] results, if limits were set
 * @property {import('./verdict/death').OpenHandles[]} [handles] open in the processes of black boxes when
 *   these were last looked at, by opener
 * @property {Experiments} [experiments] predictions, if somebody asks for them
 *
 * @typedef {{ peers: string[], changes: import('./what-if').Resized[] }} Experiments peers: those that
 *   requests query; a change without figures could not be replayed
 *
 * @typedef {object} ModelOptions
 * @property {string[]} [compare] files of another run
 * @property {number} [slowest] number of slowest requests; default 20
 * @property {import('./what-if').PoolChange[]} [whatIf] changes to predict
 * @property {() => Array<{ pid: number, thread: number }>} [busyWorkers] worker threads that are too busy to
 *   say how much, once all is read
 * @property {boolean} [traces] collect their trees, and sums of sites over time that a page filters by
 * @property {(bytes: number, total: number | undefined) => void} [progress]
 * @property {import('../read/sources').Source} [source] supplies the bytes of an input that is not a file;
 *   without traces
 */

const MAX_TRACE_SPANS = 500
const MAX_SPANS = 3000 // in the traces of the slowest requests
const MAX_EXAMPLES = 40 // example traces in addition
const MAX_EXAMPLE_SPANS = 1500
const PREFIX = '{"traceId":"'
const HEAD_CHARS = PREFIX.length + 32 // start of a line written by longstack, with the trace id

/**
 * @param {string[]} names of files
 * @param {ModelOptions} [options]
 * @returns {Promise<Model>}
 */
async function createModel (names, options = {}) {
  const { compare, whatIf, ...others } = options
  const model = await modelOf(names, { ...others, whatIf })
  if (compare === undefined) return model
  model.compare = await modelOf(compare, others)
  model.changes = changesOf(model, model.compare)
  const thresholds = new Set([model.blocked, model.compare.blocked])
  if (thresholds.size > 1 && !thresholds.has('')) {
    model.notes.push('Blockers are not compared: the first run was recorded ' +
      `${model.blocked}, the second ${model.compare.blocked}.`)
  }
  return model
}

/**
 * @param {string[]} names
 * @param {ModelOptions} options
 * @returns {Promise<Model>}
 */
async function modelOf (names, { slowest = 20, traces = false, progress, source, whatIf, busyWorkers }) {
  const builder = new ModelBuilder(slowest, traces)
  /** @type {import('../read/span-files').Reading} */
  const reading = {
    span: (span, file) => builder.add(span, file),
    facts: (record) => builder.addFacts(record),
    progress,
    source,
    withOpen: source === undefined // the processes of a source go on
  }
  const sources = traces ? new RereadableSources(source) : undefined
  const files = await readFiles(names, { ...reading, source: sources?.first ?? source })
  for (const worker of busyWorkers?.() ?? []) builder.addBusyWorker(worker)
  const model = builder.build(files)
  if (whatIf !== undefined) model.experiments = builder.predict(whatIf)
  if (sources !== undefined) await gatherTraces(model, names, sources, builder.renames)
  return model
}

/**
 * Sets the traces of a model, and adds notes on missing spans: the trees of the slowest requests, and of
 * examples for failures and for nodes of the trees. Reads the files again, since a request's line comes after
 * those of its children.
 * @param {Model} model
 * @param {string[]} names of the files
 * @param {import('../read/sources').RereadableSources} sources
 * @param {import('./route-names').Renames} renames
 */
async function gatherTraces (model, names, sources, renames) {
  const ofSlowest = { spans: MAX_SPANS, ofTrace: MAX_TRACE_SPANS, omitted: 0 }
  const ofExamples = { spans: MAX_EXAMPLE_SPANS, ofTrace: Infinity, omitted: 0 }
  /** @type {Map<string, { tree: Map<string, Digest>, room: typeof ofSlowest }>} */
  const traces = new Map(model.slowest.map(({ traceId }) => [traceId, { tree: new Map(), room: ofSlowest }]))
  for (const traceId of examplesOf(model)) {
    getOrCreate(traces, traceId, () => ({ tree: new Map(), room: ofExamples }))
  }
  if (sources.isIncomplete) {
    model.notes.push('More than 32 MB came through a pipe: no trees of its slowest requests. Use a file.')
  }
  await readFiles(names, {
    source: sources.second,
    wants: (line) => !line.startsWith(PREFIX) || traces.has(line.slice(PREFIX.length, HEAD_CHARS)),
    span (span) {
      const trace = traces.get(span.traceId)
      if (trace === undefined) return
      const { tree, room } = trace
      const previous = tree.get(span.spanId)
      if (previous !== undefined && previous.end !== 'open') return
      if (previous === undefined && (room.spans === 0 || tree.size >= room.ofTrace)) {
        room.omitted++
        return
      }
      if (previous === undefined) room.spans--
      tree.set(span.spanId, digest(span))
    }
  })
  const { omitted } = ofSlowest
  if (omitted > 0) model.notes.push(`The trees of the slowest requests lack ${omitted} spans.`)
  for (const [traceId, { tree }] of traces) {
    if (tree.size === 0) continue
    model.traces[traceId] = [...tree.values()].sort((a, b) => a.startUnixMs - b.startUnixMs)
    for (const span of tree.values()) renames.apply(span)
  }
}

/**
 * Returns the traces behind the most frequent failures and the widest nodes of the trees.
 * @param {Model} model
 * @returns {string[]}
 */
function examplesOf ({ failures, tree, slowTree }) {
  const nodes = allOf(tree, slowTree).sort((a, b) => b.ms - a.ms)
  const ids = new Set(failures.slice(0, MAX_EXAMPLES / 4).map(({ traceId }) => traceId))
  for (const { traceIds = [] } of nodes) {
    for (const traceId of traceIds) if (ids.size < MAX_EXAMPLES) ids.add(traceId)
  }
  return [...ids]
}

module.exports = { createModel }
