'use strict'

// Processes that died without an orderly end, and what is wrong with living ones, from their black boxes.

const { amount, isRecord, list, text } = require('../../read/values')
const { MIN_FILLED, UNKNOWN, heldOf, holderOfBuffers, holderOfHeap } = require('./memory')
const { sum } = require('../lists')
const { siteTextsOf } = require('../sites')

const MAX_DEATHS = 1000
const MAX_NAME_CHARS = 300
const MAX_OPENERS = 20
const MIN_FULL = 0.85 // of the heap, or of the memory of its container
const MIN_COLLECTIONS = 2 // full ones: V8 collects again before it gives up
const MAX_COLLECTED_MS = 10_000 // since the last one
const MIN_STUCK_MS = 1000

/**
 * @typedef {Omit<import('../../read/box-file').Death, keyof import('./memory').Held>
 *   & { at: string | undefined, held: import('./memory').Held, handles: OpenHandles[] }} KnownDeath
 *
 * @typedef {object} OpenHandles of one opener
 * @property {number} pid
 * @property {number} thread 0: the main thread
 * @property {string} noun
 * @property {string} at empty: of further openers
 * @property {number} count
 * @property {number} [keeping] of count, those that keep the process alive; undefined if it has died
 * @property {number} [agoMs] age of the count; likewise
 */

class DeathFacts {
  /** @type {KnownDeath[]} */
  deaths = []

  /** @param {import('../../read/span-line').Span} record */
  add ({ attributes }) {
    const [death] = list(attributes['longstack.death'], 1).filter(isRecord)
    if (death === undefined || this.deaths.length === MAX_DEATHS) return
    const inside = text(death.inside, MAX_NAME_CHARS)
    const number = (/** @type {string} */ name) => amount(death[name]) ?? 0
    const lives = death.lives === true
    const [pid, thread] = [number('pid'), number('thread')]
    const ofLiving = lives ? { agoMs: number('countedMs') } : {}
    const handles = list(death.handles, MAX_OPENERS).filter(isRecord).flatMap((handle) => {
      const [noun, at] = [text(handle.noun, MAX_NAME_CHARS), text(handle.at, MAX_NAME_CHARS)]
      const [count, keeping] = [amount(handle.count), amount(handle.keeping)]
      return noun === undefined || at === undefined || count === undefined
        ? []
        : [{ pid, thread, noun, at, count, ...(lives && { keeping, ...ofLiving }) }]
    })
    const others = number('open') - sum(handles, ({ count }) => count)
    if (others > 0) handles.push({ pid, thread, noun: 'other', at: '', count: others, ...ofLiving })
    this.deaths.push({
      lives,
      pid,
      thread,
      at: inside ?? siteTextsOf(death).at,
      inside,
      request: text(death.request, MAX_NAME_CHARS),
      residentLimit: amount(death.residentLimit) || undefined,
      unixMs: number('unixMs'),
      runningMs: amount(death.runningMs),
      chain: number('chain'),
      requests: number('requests'),
      used: number('used'),
      limit: number('limit'),
      collections: number('collections'),
      collectedMs: number('collectedMs'),
      resident: number('resident'),
      held: heldOf(death),
      handles
    })
  }
}

/** @param {KnownDeath} death */
const isHeapFull = ({ used, limit, collections, collectedMs }) => limit > 0 && used >= limit * MIN_FULL &&
  collections >= MIN_COLLECTIONS && collectedMs < MAX_COLLECTED_MS

/** @param {KnownDeath} death @returns {'heap' | 'memory' | 'stuck' | 'unknown'} what is wrong */
function causeOf (death) {
  const { lives, resident, residentLimit = Infinity, runningMs = 0 } = death
  const full = lives ? MIN_FILLED : MIN_FULL
  if (lives && runningMs >= MIN_STUCK_MS) return 'stuck'
  if (!lives && isHeapFull(death)) return 'heap'
  if (resident > 0 && resident >= residentLimit * full) return 'memory'
  return runningMs >= MIN_STUCK_MS ? 'stuck' : 'unknown'
}

const MAX_BUFFERS_HEAP = 0.5 // of the memory: if the heap has more, it is the heap that fills it

/**
 * @param {KnownDeath} death
 * @param {import('../model').Model} model
 * @returns {import('./memory').Holder & { kind?: 'heap' | 'buffers' }} of what filled memory, if it was full
 */
function holderOf (death, model) {
  const cause = causeOf(death)
  if (cause !== 'heap' && cause !== 'memory') return UNKNOWN
  if (cause === 'heap' || death.used >= death.resident * MAX_BUFFERS_HEAP) {
    return { ...holderOfHeap(death.held, model), kind: 'heap' }
  }
  return { ...holderOfBuffers(death.held, model), kind: 'buffers' }
}

/**
 * Reports each process that died, and each living one that is stuck or short of memory, by what its main
 * thread did: what a worker does rarely ends a process.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function death ({ model, death: { deaths } }) {
  const certain = deaths.filter((one) => one.thread === 0 && !(one.lives && causeOf(one) === 'unknown'))
  return certain.map((one) => {
    const { at: frame, pid, request, requests, inside, unixMs, runningMs } = one
    const { lives, collectedMs, used, limit, resident, residentLimit } = one
    const { kind, ...holder } = holderOf(one, model)
    const figures = {
      pid,
      unixMs,
      runningMs,
      requests,
      used,
      limit,
      collectedMs,
      resident: resident === 0 ? undefined : resident,
      residentLimit,
      cause: causeOf(one),
      ...holder
    }
    const details = { request, isInside: inside !== undefined, kind }
    const rule = !lives ? 'death' : figures.cause === 'stuck' ? 'stuck' : 'filling'
    return { rule, at: frame, lostMs: 0, share: 0, figures, details }
  })
}

module.exports = { DeathFacts, death }
