'use strict'

// Files in, one model of the whole report out: what --json prints, and what every view is made from. Bounded, however
// much is read: durations are kept as numbers, all else is the worst few.

const { createBlockers } = require('./blockers')
const { delayersOf, digest } = require('./digest')
const { Ids, Top } = require('./numbers')
const { readFiles } = require('../read/span-files')
const { createRoutes } = require('./routes')
const { createTwice } = require('../read/sources')
const { gatherTraces } = require('./span-trees')

/**
 * @typedef {import('../read/span-line').Span} Span
 * @typedef {import('./digest').Digest} Digest
 *
 * @typedef {object} Model undefined properties are absent in JSON
 * @property {import('../read/span-files').FileReport[]} files
 * @property {{ fromUnixMs: number, toUnixMs: number } | undefined} span first start and last end of all spans
 * @property {string[]} notes sentences on what the figures are made of, and on what was left out
 * @property {import('./routes').Route[]} routes servers first, then by the number of spans
 * @property {Digest[]} slowest requests, the slowest first; of all spans where none is a server's
 * @property {import('./blockers').Blocker[]} blockers worst first, at most 100
 * @property {Digest[]} open spans that had not ended when they were written, oldest first, at most 100
 * @property {number} openCount all of them
 * @property {Record<string, Digest[]>} traces the trees of the slowest requests, by trace id, each by start; only where asked for
 * @property {Model} [compare] the other run; a change is from the model itself to this one
 *
 * @typedef {object} Wish
 * @property {string[]} [compare] files of another run
 * @property {number} [slowest] how many of the slowest requests; default 20
 * @property {boolean} [traces] their trees are wanted
 * @property {(bytes: number, of: number | undefined) => void} [progress]
 */

const BLOCKERS = 100
const OPEN = 100
const HELD = 64 << 20 // characters of open spans held until their end is read

/**
 * @param {string[]} names of files
 * @param {Wish} [wish]
 * @returns {Promise<Model>}
 */
async function createModel (names, wish = {}) {
  const { compare, ...rest } = wish
  const model = await modelOf(names, rest)
  if (compare !== undefined) model.compare = await modelOf(compare, rest)
  return model
}

/** @param {string[]} names @param {Wish} wish @returns {Promise<Model>} */
async function modelOf (names, { slowest = 20, traces = false, progress }) {
  const adding = createAdding(slowest)
  if (!traces) return adding.model(await readFiles(names, { span: adding.add, progress }))
  const sources = createTwice()
  const model = adding.model(await readFiles(names, { span: adding.add, progress, source: sources.first }))
  await gatherTraces(model, names, sources)
  return model
}

/** @param {number} most of the slowest */
function createAdding (most) {
  const routes = createRoutes()
  const blockers = createBlockers()
  const seen = new Ids()
  /** @type {Map<string, Span>} */
  const open = new Map()
  let held = 0
  const requests = new Top(most)
  const others = new Top(most)
  const range = { from: Infinity, to: -Infinity }
  const counts = { twice: 0, sampled: 0, crowd: 0 }
  const copies = new Map()

  /** @param {Span} span */
  function ended (span) {
    if (span.weight !== 1) counts.sampled++
    if (span.blocked) return blockers.run(span)
    routes.add(span)
    blockers.named(span.spanId, span.name)
    if (span.attributes['longstack.delayed_by'] !== undefined) blockers.delayed(delayersOf(span.attributes), span.weight)
    const top = span.kind === 'SERVER' ? requests : others
    if (top.takes(span.ms)) top.add(span.ms, digest(span))
  }

  /** @param {Span} span */
  function hold (span) {
    const id = idOf(span)
    const size = held + span.size - (open.get(id)?.size ?? 0)
    if (size > HELD) {
      counts.crowd++
    } else {
      held = size
      open.set(id, span)
    }
  }

  /** @param {Span} span that ended */
  function release (span) {
    const id = idOf(span)
    held -= open.get(id)?.size ?? 0
    open.delete(id)
  }

  /** @param {Span} span @param {import('../read/span-files').FileReport} file */
  function twice (span, file) {
    counts.twice++
    copies.set(file, (copies.get(file) ?? 0) + 1)
  }

  /** Those that no later line ended. */
  function stillOpen () {
    for (const span of open.values()) {
      if (span.blocked) blockers.run(span)
      else {
        routes.open(span)
        blockers.named(span.spanId, span.name)
        blockers.delayed(delayersOf(span.attributes), span.weight)
      }
    }
    return [...open.values()].sort((a, b) => a.startMs - b.startMs)
  }

  return {
    /** @param {Span} span @param {import('../read/span-files').FileReport} file */
    add (span, file) {
      range.from = Math.min(range.from, span.startMs)
      range.to = Math.max(range.to, span.startMs + span.ms)
      const [high, low] = hashOf(span)
      if (span.open) {
        if (!seen.has(high, low)) hold(span)
      } else if (seen.add(high, low)) {
        if (open.size > 0) release(span)
        ended(span)
      } else {
        twice(span, file)
      }
    },

    /** @param {import('../read/span-files').FileReport[]} files @returns {Model} */
    model (files) {
      const pending = stillOpen()
      const span = range.from <= range.to ? { fromUnixMs: range.from, toUnixMs: range.to } : undefined
      const seconds = span !== undefined && range.to > range.from ? (range.to - range.from) / 1000 : undefined
      for (const [file, count] of copies) file.problems.push(copied(count))
      const best = requests.items().length > 0 ? requests : others
      const list = blockers.list()
      return {
        files,
        span,
        notes: notesOf({ ...counts, others: routes.others(), blockers: blockers.left(), open: pending.length }),
        routes: routes.list(seconds),
        slowest: best.items(),
        blockers: list.slice(0, BLOCKERS),
        open: pending.slice(0, OPEN).map(digest),
        openCount: pending.length,
        traces: {}
      }
    }
  }
}

/** @param {number} count */
function copied (count) {
  return count === 1
    ? 'one span had been read before, and is counted once'
    : `${count} spans had been read before, and are counted once: the same run, or a part of it, is in there twice`
}

/** @param {Record<'sampled' | 'crowd' | 'others' | 'blockers' | 'open', number>} counts */
function notesOf ({ sampled, crowd, others, blockers, open }) {
  const notes = []
  if (sampled > 0) {
    notes.push(`${sampled} lines come from a sample and stand for more spans each: counts, rates, errors and quartiles are estimates for all of them.`)
  }
  if (others > 0) notes.push(`There are more than 2000 names: ${others} spans with further ones are added up as "(other names)".`)
  if (open > OPEN) notes.push(`Of ${open} open spans the ${OPEN} oldest are listed.`)
  if (crowd > 0) notes.push(`${crowd} lines of open spans are left out: there are more than can be held.`)
  if (blockers > 0) notes.push(`${blockers} delays are left out of the table of those who held others up, which has room for 2000.`)
  return notes
}

/** @param {Span} span */
function idOf ({ traceId, spanId }) {
  return `${traceId} ${spanId}`
}

/** 64 bits of both ids. @param {Span} span @returns {[number, number]} */
function hashOf ({ traceId, spanId }) {
  return [
    parseInt(spanId.slice(0, 8), 16) ^ parseInt(traceId.slice(0, 8), 16) ^ parseInt(traceId.slice(16, 24), 16),
    parseInt(spanId.slice(8), 16) ^ parseInt(traceId.slice(8, 16), 16) ^ Math.imul(parseInt(traceId.slice(24), 16), 0x9e3779b1)
  ]
}

module.exports = { createModel }
