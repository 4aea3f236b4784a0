'use strict'

// The trees of the slowest requests: a request's line comes after those of its children, so only a second reading
// knows whose children are wanted.

const { digest } = require('./digest')
const { readFiles } = require('../read/span-files')

/** @typedef {import('./digest').Digest} Digest */

const SPANS = 500 // of a trace
const ALL = 3000
const PREFIX = '{"traceId":"'

/**
 * @param {import('./model').Model} model gets its traces, and notes on what is not there
 * @param {string[]} names of the files
 * @param {ReturnType<typeof import('../read/sources').createTwice>} sources
 */
async function gatherTraces (model, names, sources) {
  /** @type {Map<string, Map<string, Digest>>} */
  const trees = new Map(model.slowest.map(({ traceId }) => [traceId, new Map()]))
  const counts = { all: 0, left: 0 }
  if (sources.lost()) model.notes.push('More than 32 MB came through a pipe: the trees of its slowest requests are not known. Give a file instead.')
  await readFiles(names, {
    source: sources.second,
    wants: (line) => !line.startsWith(PREFIX) || trees.has(line.slice(PREFIX.length, PREFIX.length + 32)),
    span (span) {
      const tree = trees.get(span.traceId)
      if (tree === undefined) return
      const before = tree.get(span.spanId)
      if (before !== undefined && before.end !== 'open') return
      if (before === undefined && (tree.size === SPANS || counts.all === ALL)) counts.left++
      else tree.set(span.spanId, digest(span))
      if (before === undefined) counts.all++
    }
  })
  if (counts.left > 0) model.notes.push(`The trees of the slowest requests are not complete: ${counts.left} spans of theirs are left out.`)
  model.traces = Object.fromEntries([...trees].filter(([, tree]) => tree.size > 0).map(([id, tree]) => [id, [...tree.values()].sort((a, b) => a.startUnixMs - b.startUnixMs)]))
}

module.exports = { gatherTraces }
