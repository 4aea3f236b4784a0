'use strict'

// Reads a profile made by another process. Its content is not trusted: values of the wrong type count as
// absent, texts and lists are bounded, and unknown properties are ignored.

const { amount, isRecord, list, parseJson, text } = require('./values')

/**
 * @typedef {import('../../lib/profile/profile').Profile} Profile
 * @typedef {import('../../lib/profile/path-tree').PathNode} PathNode
 */

const MAX_CHAINS = 5_000
const MAX_SAMPLES = 50_000
const MAX_NODES = 20_000
const MAX_DEPTH = 1_000 // of the tree; output code is recursive
const MAX_FRAMES = 1_000
const MAX_LACKS = 100
const MAX_CHARS = 4_000 // per text
const MAX_FIGURE = 1e11 // ms; in nanoseconds this fits into 63 bits
const MAX_UNIX_MS = 4e12
const kinds = new Set(['root', 'route', 'frame', 'ran', 'waited'])

/**
 * Returns a reader for objects, with one reader per property.
 * @template {Record<string, (value: unknown) => any>} S
 * @param {S} readers
 */
const recordOf = (readers) => (/** @type {unknown} */ value) => {
  const record = isRecord(value) ? value : {}
  const entries = Object.entries(readers).map(([key, read]) => [key, read(record[key])])
  return /** @type {{ [K in keyof S]: ReturnType<S[K]> }} */ (Object.fromEntries(entries))
}

/** @param {unknown} value @param {number} [max] @returns {number} 0 if it is not a valid number */
function figure (value, max = MAX_FIGURE) {
  const number = amount(value) ?? 0
  return number <= max ? number : 0
}

const ms = (/** @type {unknown} */ value) => figure(value)
const count = (/** @type {unknown} */ value) => Math.round(figure(value))
const word = (/** @type {unknown} */ value) => text(value, MAX_CHARS) ?? ''
const frames = (/** @type {unknown} */ value) => list(value, MAX_FRAMES).map(word)
const records = (/** @type {unknown} */ value, /** @type {number} */ max) => list(value, max).filter(isRecord)

const figuresOf = recordOf({ count, requests: count, ranMs: ms, waitedMs: ms, waits: count, cpuMs: ms })
const namesOf = recordOf({ frames, label: word, type: word, kind: word })
const profileOf = recordOf({
  pid: ms,
  threadId: ms,
  nodeVersion: word,
  startUnixMs: (value) => figure(value, MAX_UNIX_MS),
  seconds: ms,
  ranMs: ms,
  idleMs: ms,
  cpuSeconds: ms,
  sampleCount: count,
  chains: (value) => records(value, MAX_CHAINS).map((chain) => ({
    ...namesOf(chain),
    ...(typeof chain.route === 'string' ? { route: word(chain.route) } : {}),
    ...figuresOf(chain)
  })),
  otherChains: recordOf({ count, ranMs: ms, waitedMs: ms }),
  samples: (value) => records(value, MAX_SAMPLES).map(recordOf({ chain: count, frames, ms, count })),
  tree: (value) => nodeOf(isRecord(value) ? value : {}, 0, { nodes: 0 }),
  lacks: (value) => list(value, MAX_LACKS).map(word)
})

/**
 * @param {unknown} json
 * @returns {Profile | undefined} undefined if it is not a profile
 */
function parseProfile (json) {
  const profile = parseJson(String(json))
  return isRecord(profile?.tree) && Array.isArray(profile.chains) ? profileOf(profile) : undefined
}

/**
 * @param {Record<string, any>} node
 * @param {number} depth
 * @param {{ nodes: number }} total nodes read so far
 * @returns {PathNode}
 */
function nodeOf (node, depth, total) {
  total.nodes++
  const children = []
  if (depth < MAX_DEPTH) {
    for (const child of records(node.children, MAX_NODES)) {
      if (total.nodes >= MAX_NODES) break
      children.push(nodeOf(child, depth + 1, total))
    }
  }
  const kind = depth === 0 ? 'root' : kinds.has(node.kind) ? node.kind : 'frame'
  return { name: word(node.name), kind, ms: figure(node.ms), count: count(node.count), children }
}

module.exports = { parseProfile }
