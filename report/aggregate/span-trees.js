'use strict'

// Gathers the trees of the slowest requests, and of examples for failures and for where the time went, in a
// second reading of the files: a request's line comes after those of its children.

const { digest } = require('./digest')
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
  let count = 0
  let exampleCount = 0
  let omitted = 0
  if (sources.isIncomplete) {
    model.notes.push('More than 32 MB came through a pipe: no trees of its slowest requests. Use a file.')
  }
  await readFiles(names, {
    source: sources.second,
    wants: (line) => !line.startsWith(PREFIX) || trees.has(traceIdOf(line)),
    span (span) {
      const tree = trees.get(span.traceId)
      if (tree === undefined) return
      const previous = tree.get(span.spanId)
      if (previous !== undefined) {
        if (previous.end === 'open') tree.set(span.spanId, digest(span))
      } else if (!slowest.has(span.traceId)) {
        if (exampleCount++ < MAX_EXAMPLE_SPANS) tree.set(span.spanId, digest(span))
      } else if (tree.size < MAX_TRACE_SPANS && count < MAX_SPANS) {
        tree.set(span.spanId, digest(span))
        count++
      } else {
        omitted++
      }
    }
  })
  if (omitted > 0) model.notes.push(`The trees of the slowest requests lack ${omitted} spans.`)
  const traces = [...trees].filter(([, tree]) => tree.size > 0)
  for (const [, tree] of traces) for (const span of tree.values()) renames.apply(span)
  model.traces = Object.fromEntries(traces.map(([id, tree]) => [id, byStart([...tree.values()])]))
}

/**
 * Returns the traces behind the most frequent failures and the widest nodes of the trees.
 * @param {import('./model').Model} model
 * @returns {string[]}
 */
function examplesOf ({ failures, tree, slowTree }) {
  const nodes = [tree, slowTree]
  for (const { children } of nodes) nodes.push(...children)
  nodes.sort((a, b) => b.ms - a.ms)
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

/** @param {Digest[]} spans */
function byStart (spans) {
  return spans.sort((a, b) => a.startUnixMs - b.startUnixMs)
}

module.exports = { gatherTraces }
