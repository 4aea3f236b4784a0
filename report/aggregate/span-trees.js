'use strict'

// Gathers the trees of the slowest requests, and of examples for failures and for where the time went, in a
// second reading of the files: a request's line comes after those of its children.

const { digest } = require('./digest')
const { allOf } = require('./tree-nodes')
const { readFiles } = require('../read/span-files')

/** @typedef {import('./digest').Digest} Digest */

const MAX_TRACE_SPANS = 500
const MAX_SPANS = 3000 // of the traces of the slowest requests
const MAX_EXAMPLES = 40 // other traces
const MAX_EXAMPLE_SPANS = 1500
const PREFIX = '{"traceId":"'
const TRACE_ID_CHARS = 32

/**
 * Sets the traces of a model, and adds notes on what they lack.
 * @param {import('./model').Model} model
 * @param {string[]} names of the files
 * @param {import('../read/sources').RereadableSources} sources
 * @param {import('./route-names').Renames} renames
 */
async function gatherTraces (model, names, sources, renames) {
  /** @type {Map<string, Map<string, Digest>>} */
  const trees = new Map(model.slowest.map(({ traceId }) => [traceId, new Map()]))
  const slowest = new Set(trees.keys())
  for (const traceId of examplesOf(model)) if (!slowest.has(traceId)) trees.set(traceId, new Map())
  let [count, exampleCount, omitted] = [0, 0, 0]
  if (sources.isIncomplete) {
    model.notes.push('More than 32 MB came through a pipe: no trees of its slowest requests. Use a file.')
  }
  await readFiles(names, {
    source: sources.second,
    wants: (line) => !line.startsWith(PREFIX) || trees.has(traceIdOf(line)),
    span (span) {
      const tree = trees.get(span.traceId)
      const previous = tree?.get(span.spanId)
      if (tree === undefined || (previous !== undefined && previous.end !== 'open')) return
      const isExample = !slowest.has(span.traceId)
      const isFull = isExample
        ? exampleCount >= MAX_EXAMPLE_SPANS
        : tree.size >= MAX_TRACE_SPANS || count >= MAX_SPANS
      if (previous !== undefined || !isFull) tree.set(span.spanId, digest(span))
      else if (!isExample) omitted++
      if (previous !== undefined || isFull) return
      if (isExample) exampleCount++
      else count++
    }
  })
  if (omitted > 0) model.notes.push(`The trees of the slowest requests lack ${omitted} spans.`)
  for (const [traceId, tree] of trees) {
    if (tree.size === 0) continue
    model.traces[traceId] = [...tree.values()].sort((a, b) => a.startUnixMs - b.startUnixMs)
    for (const span of tree.values()) renames.apply(span)
  }
}

/**
 * Returns the traces behind the most frequent failures and the widest nodes of the trees.
 * @param {import('./model').Model} model
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

/** @param {string} line of longstack's, which begins with PREFIX */
function traceIdOf (line) {
  return line.slice(PREFIX.length, PREFIX.length + TRACE_ID_CHARS)
}

module.exports = { gatherTraces }
