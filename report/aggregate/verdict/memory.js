'use strict'

// Finds what filled the memory of a process: the function whose objects the heap kept, and the route that
// allocated most Buffers.

const { amount, isRecord, list, text } = require('../../read/values')
const { functionOf, isOwn } = require('../frames')
const { siteTextsOf } = require('../sites')

const MAX_PLACES = 10
const MAX_FRAMES = 20
const [MAX_FRAME_CHARS, MAX_NAME_CHARS] = [500, 300]
const MIN_BYTES = 3e6 // some twelve samples
const MIN_SHARE = 0.5 // of all that is known
const MIN_FILLED = 0.7 // of a limit: memory is filling
const MAX_ROUTES = 3 // a function that more routes run says nothing about one

/**
 * @typedef {import('../model').Model} Model
 *
 * @typedef {object} Held
 * @property {Array<{ bytes: number, frames: string[] }>} growth samples of the heap that were still held, by
 *   the function of the program that allocated them, largest first; frames innermost first
 * @property {number} sampled bytes of all of them
 * @property {Array<{ request: string, bytes: number, at: string | undefined }>} buffers allocated outside of
 *   the heap, by route, largest first
 * @property {number} allocated bytes of all of them, and of code outside of requests
 *
 * @typedef {object} Holder figures of a finding
 * @property {number | undefined} heldBytes
 * @property {number | undefined} heldShare from 0 to 1
 * @property {string | undefined} heldAt
 * @property {string | undefined} heldBy routes
 */

/** @type {Holder} */
const UNKNOWN = { heldBytes: undefined, heldShare: undefined, heldAt: undefined, heldBy: undefined }

/** @param {Record<string, unknown>} record @returns {Held} */
function heldOf (record) {
  const records = (/** @type {string} */ name) => list(record[name], MAX_PLACES).filter(isRecord)
  const growth = records('growth').map(({ bytes, frames }) => ({
    bytes: amount(bytes) ?? 0,
    frames: list(frames, MAX_FRAMES).flatMap((frame) => text(frame, MAX_FRAME_CHARS) ?? [])
  }))
  const buffers = records('buffers').flatMap((one) => {
    const request = text(one.request, MAX_NAME_CHARS)
    return request === undefined ? [] : [{ request, bytes: amount(one.bytes) ?? 0, at: siteTextsOf(one).at }]
  })
  return { growth, sampled: amount(record.sampled) ?? 0, buffers, allocated: amount(record.allocated) ?? 0 }
}

/** @param {string[]} frames innermost first @returns {string} that of the innermost named function */
const namedFrame = (frames) => frames.find((frame) => isOwn(frame) && frame.includes(' (')) ??
  frames.find(isOwn) ?? frames[0]

/**
 * Returns which function made most of what the heap kept, and the routes that run it or its nearest caller
 * that only few routes run.
 * @param {Held} held
 * @param {Model} model
 * @returns {Holder}
 */
function holderOfHeap ({ growth: [largest], sampled }, model) {
  if (largest === undefined || largest.frames.length === 0) return UNKNOWN
  const heldShare = largest.bytes / sampled
  if (largest.bytes < MIN_BYTES || !(heldShare >= MIN_SHARE)) return UNKNOWN
  return {
    heldBytes: sampled,
    heldShare: Math.min(1, heldShare),
    heldAt: namedFrame(largest.frames),
    heldBy: routesWith(largest.frames, model)
  }
}

/** @param {string[]} frames innermost first @param {Model} model */
function routesWith (frames, { routes, tree }) {
  const names = new Set(routes.filter(({ kind }) => kind === 'SERVER').map(({ name }) => name))
  const known = tree.children.filter(({ name }) => names.has(name)).map((route) =>
    ({ name: route.name, functions: functionsIn(route) }))
  for (const frame of frames) {
    const running = known.filter(({ functions }) => functions.has(functionOf(frame))).map(({ name }) => name)
    if (running.length > 0) return running.length <= MAX_ROUTES ? running.join(', ') : undefined
  }
  return undefined
}

/** @param {import('../path-tree').PathNode} node @returns {Set<string>} */
function functionsIn ({ children }) {
  const own = children.filter(({ kind }) => kind === 'frame').map(({ name }) => functionOf(name))
  return new Set([...own, ...children.flatMap((child) => [...functionsIn(child)])])
}

/**
 * Returns which route allocated most outside of the heap, and the function that made objects on the heap for
 * it, which were still held.
 * @param {Held} held
 * @param {Model} model
 * @returns {Holder}
 */
function holderOfBuffers ({ buffers: [largest], allocated: all, growth }, model) {
  if (largest === undefined || largest.bytes < Math.max(MIN_BYTES, all * MIN_SHARE)) return UNKNOWN
  const { request, bytes, at: frame } = largest
  const made = growth.find(({ frames }) => routesWith(frames, model) === request)
  const heldAt = made === undefined ? frame : namedFrame(made.frames)
  return { heldBytes: all, heldShare: bytes / all, heldAt, heldBy: request }
}

module.exports = { MIN_FILLED, UNKNOWN, heldOf, holderOfBuffers, holderOfHeap }
