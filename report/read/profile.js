'use strict'

// Reads a profile that another process has made. Its content is not trusted: a value of a wrong type counts
// as absent, texts and lists are bounded, and nothing else is taken over.

const { amount, isRecord } = require('./span-line')

/**
 * @typedef {import('../../lib/profile/profile').Profile} Profile
 * @typedef {import('../../lib/profile/path-tree').PathNode} PathNode
 */

const MAX_CHAINS = 5_000
const MAX_SAMPLES = 50_000
const MAX_NODES = 20_000
const MAX_DEPTH = 1_000 // of the tree: outputs are recursive
const MAX_FRAMES = 1_000
const MAX_LACKS = 100
const MAX_CHARS = 4_000 // of a text
const MAX_FIGURE = 1e11 // ms: nanoseconds of them fit into 63 bits
const MAX_UNIX_MS = 4e12
const kinds = new Set(['root', 'route', 'frame', 'ran', 'waited'])

/**
 * @param {unknown} json
 * @returns {Profile | undefined} undefined: it is no profile
 */
function parseProfile (json) {
  const read = parse(json)
  if (!isRecord(read) || !isRecord(read.tree) || !Array.isArray(read.chains)) return undefined
  return {
    pid: figure(read.pid),
    threadId: figure(read.threadId),
    nodeVersion: text(read.nodeVersion),
    startUnixMs: figure(read.startUnixMs, MAX_UNIX_MS),
    seconds: figure(read.seconds),
    ranMs: figure(read.ranMs),
    idleMs: figure(read.idleMs),
    cpuSeconds: figure(read.cpuSeconds),
    sampleCount: count(read.sampleCount),
    chains: records(read.chains, MAX_CHAINS).map(chainOf),
    otherChains: {
      count: count(read.otherChains?.count),
      ranMs: figure(read.otherChains?.ranMs),
      waitedMs: figure(read.otherChains?.waitedMs)
    },
    samples: records(read.samples, MAX_SAMPLES).map(sampleOf),
    tree: nodeOf(read.tree, 0, { nodes: 0 }),
    lacks: texts(read.lacks, MAX_LACKS)
  }
}

/** @param {unknown} json @returns {any} undefined if it is not JSON */
function parse (json) {
  try {
    return JSON.parse(String(json))
  } catch {
    return undefined
  }
}

/** @param {Record<string, any>} chain @returns {Profile['chains'][number]} */
function chainOf ({ frames, label, type, kind, route, ...figures }) {
  return {
    frames: texts(frames, MAX_FRAMES),
    label: text(label),
    type: text(type),
    kind: text(kind),
    ...(typeof route === 'string' ? { route: text(route) } : {}),
    count: count(figures.count),
    requests: count(figures.requests),
    ranMs: figure(figures.ranMs),
    waitedMs: figure(figures.waitedMs),
    waits: count(figures.waits),
    cpuMs: figure(figures.cpuMs)
  }
}

/** @param {Record<string, any>} sample @returns {Profile['samples'][number]} */
function sampleOf (sample) {
  return {
    chain: count(sample.chain),
    frames: texts(sample.frames, MAX_FRAMES),
    ms: figure(sample.ms),
    count: count(sample.count)
  }
}

/**
 * @param {Record<string, any>} node
 * @param {number} depth
 * @param {{ nodes: number }} total that were read
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
  return { name: text(node.name), kind, ms: figure(node.ms), count: count(node.count), children }
}

/** @param {unknown} value @param {number} [max] @returns {number} 0 where it is none */
function figure (value, max = MAX_FIGURE) {
  const number = amount(value) ?? 0
  return number <= max ? number : 0
}

/** @param {unknown} value */
function count (value) {
  return Math.round(figure(value))
}

/** @param {unknown} value @returns {string} empty where it is none */
function text (value) {
  return typeof value === 'string' ? value.slice(0, MAX_CHARS) : ''
}

/** @param {unknown} list @param {number} max */
function texts (list, max) {
  return Array.isArray(list) ? list.slice(0, max).map(text) : []
}

/** @param {unknown} list @param {number} max @returns {Array<Record<string, any>>} */
function records (list, max) {
  return Array.isArray(list) ? list.slice(0, max).filter(isRecord) : []
}

module.exports = { parseProfile }
