'use strict'

// Makes the model of a report from files of spans: --json prints it, every output is rendered from it. It is
// bounded, however much is read: durations are kept as numbers, of all else only the worst few.

const { changesOf } = require('./changes')
const { ModelBuilder } = require('./model-builder')
const { readFiles } = require('../read/span-files')
const { RereadableSources } = require('../read/sources')
const { gatherTraces } = require('./span-trees')

/**
 * @typedef {import('../read/span-line').Span} Span
 * @typedef {import('./digest').Digest} Digest
 *
 * @typedef {object} Model undefined properties are absent in JSON
 * @property {import('../read/span-files').FileReport[]} files
 * @property {{ fromUnixMs: number, toUnixMs: number } | undefined} span first start and last end of all spans
 * @property {string[]} notes sentences on how the figures were made, and on what was omitted
 * @property {import('./routes').Route[]} routes servers first, then by their total time
 * @property {import('./verdict').Finding[]} verdict worst first; empty if no fault is certain
 * @property {import('./path-tree').PathNode} tree where the time of all requests went; a child for each route
 * @property {import('./path-tree').PathNode} slowTree the same of the slowest 1 % of each route's requests
 * @property {import('./failures').Failure[]} failures most frequent first, at most 100
 * @property {import('./series').Series | undefined} series along time; undefined if no request ended
 * @property {Digest[]} slowest requests, the slowest first; of all spans if none is a server's
 * @property {import('./blockers').Blocker[]} blockers worst first, at most 100
 * @property {Digest[]} open spans that had not ended when they were written, oldest first, at most 100
 * @property {number} openCount all of them
 * @property {Record<string, Digest[]>} traces the trees of the slowest requests, by trace id, each by start;
 *   empty if not asked for
 * @property {Model} [compare] the other run; a change is from the model itself to this one
 * @property {import('./changes').Changes} [changes] what changed, if two runs are compared
 * @property {import('./limits').LimitCheck[]} [limits] what was checked, if limits were set
 *
 * @typedef {object} ModelOptions
 * @property {string[]} [compare] files of another run
 * @property {number} [slowest] how many of the slowest requests; default 20
 * @property {boolean} [traces] gather their trees, and what a page filters by: sums of sites along time
 * @property {(bytes: number, total: number | undefined) => void} [progress]
 */

/**
 * @param {string[]} names of files
 * @param {ModelOptions} [options]
 * @returns {Promise<Model>}
 */
async function createModel (names, options = {}) {
  const { compare, ...others } = options
  const model = await modelOf(names, others)
  if (compare === undefined) return model
  model.compare = await modelOf(compare, others)
  model.changes = changesOf(model, model.compare)
  return model
}

/**
 * @param {string[]} names
 * @param {ModelOptions} options
 * @returns {Promise<Model>}
 */
async function modelOf (names, { slowest = 20, traces = false, progress }) {
  const builder = new ModelBuilder(slowest, traces)
  /** @type {import('../read/span-files').Reading} */
  const reading = {
    span: (span, file) => builder.add(span, file),
    intervals: (record) => builder.addIntervals(record),
    progress
  }
  if (!traces) return builder.build(await readFiles(names, reading))
  const sources = new RereadableSources()
  const model = builder.build(await readFiles(names, { ...reading, source: sources.first }))
  await gatherTraces(model, names, sources, builder.renames)
  return model
}

module.exports = { createModel }
