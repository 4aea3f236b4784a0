'use strict'

// The result of a profile as data: chains with their figures, worst first, CPU samples by chain and stack,
// and both as one tree. Chains with the same text (only a step internal to Node differs) are merged.

const { fileURLToPath } = require('node:url')
const { requestTypes } = require('../core/kinds')
const chainTexts = require('../format/chain-texts')
const { getOrAdd, newMap } = require('../group-by')
const { parseFrame } = require('../stacks/frames')
const { mapFrame } = require('../stacks/source-maps')
const { subsystemOf } = require('../subsystems')
const { createTree } = require('./path-tree')

const MAX_CHAINS = 2_000
const MAX_SAMPLES = 20_000
const OWN = '(longstack)'
/** Types that wait for incoming events, such as connections: their wait does not count. */
const listeningTypes = new Set((
  'TCPSERVERWRAP PIPESERVERWRAP SIGNALWRAP UDPWRAP MESSAGEPORT FSEVENTWRAP STATWATCHER TTYWRAP').split(' '))

/**
 * @typedef {object} ProfileChain the runs and waits of one chain, for one route
 * @property {string[]} frames of the program, innermost first; each outer hop begins with its label:
 *   `── setTimeout(100) ──`
 * @property {string} label of the newest hop, the operation that was waited for: `await`, `fs.readFile`
 * @property {string} type its provider name in Node
 * @property {string} kind its subsystem: `TCP`, `PROMISE`
 * @property {string} [route] of the request that it ran for, `GET /users/:id`
 * @property {number} count callbacks that ran
 * @property {number} requests that began in it
 * @property {number} ranMs
 * @property {number} waitedMs total time from the end of the registering callback until the run
 * @property {number} waits callbacks with a known wait: those that run once, and the first run of others
 * @property {number} cpuMs by the samples
 *
 * @typedef {object} ProfileSample CPU samples of one stack in one chain
 * @property {number} chain index in `chains`
 * @property {string[]} frames innermost first, with the position of the function's start
 * @property {number} ms
 * @property {number} count
 *
 * @typedef {import('./path-tree').PathNode} PathNode
 *
 * @typedef {object} Profile
 * @property {number} pid
 * @property {number} threadId 0 for the main thread
 * @property {string} nodeVersion
 * @property {number} startUnixMs
 * @property {number} seconds duration
 * @property {number} ranMs time that the event loop ran code
 * @property {number} idleMs time that it waited in the poll phase
 * @property {number} cpuSeconds of the whole process, including its other threads
 * @property {number} sampleCount CPU samples; 0 if there are none
 * @property {ProfileChain[]} chains most time first
 * @property {{ count: number, ranMs: number, waitedMs: number }} otherChains sums of the chains past 2,000
 * @property {ProfileSample[]} samples most time first
 * @property {PathNode} tree
 * @property {string[]} lacks limits of the profile under the options in force, as sentences
 *
 * @typedef {{ label: string, type: string, lines: string[] }} DescribedHop
 */

/**
 * @param {object} recorded
 * @param {number} recorded.startUnixMs
 * @param {number} recorded.seconds
 * @param {number} recorded.cpuSeconds
 * @param {import('./totals').Totals} recorded.totals
 * @param {import('./cpu-samples').CpuTotals | undefined} recorded.cpu
 * @param {string[]} recorded.lacks
 * @returns {Profile}
 */
function createProfile ({ startUnixMs, seconds, cpuSeconds, totals, cpu, lacks }) {
  const { chains, chainsBySlot } = mergeChains(totals)
  const stacks = cpu === undefined ? [] : mergeStacks(cpu, chainsBySlot)
  for (const { chain, ms } of stacks) chain.cpuMs += ms
  chains.sort((a, b) => timeOf(b) - timeOf(a))
  const kept = chains.slice(0, MAX_CHAINS)
  const indexes = new Map(kept.map((chain, index) => [chain, index]))
  const samples = stacks.filter(({ chain }) => indexes.has(chain)).slice(0, MAX_SAMPLES)
  return {
    pid: process.pid,
    threadId: require('node:worker_threads').threadId,
    nodeVersion: process.version,
    startUnixMs,
    seconds,
    ranMs: chains.reduce((sum, { ranMs }) => sum + ranMs, 0),
    idleMs: totals.idleMs,
    cpuSeconds,
    sampleCount: cpu?.sampleCount ?? 0,
    chains: kept.map(publicChain),
    otherChains: addUp(chains.slice(MAX_CHAINS)),
    samples: samples.map(({ chain, ...rest }) => ({ chain: Number(indexes.get(chain)), ...rest })),
    tree: createTree(kept, samples),
    lacks
  }
}

/**
 * @typedef {ProfileChain & { path: import('./path-tree').Path }} PathChain
 * @typedef {{ chain: PathChain, frames: string[], ms: number, count: number }} ChainStack
 */

/** @param {ProfileChain} chain */
const timeOf = ({ ranMs, waitedMs }) => ranMs + waitedMs

/** @param {PathChain} chain @returns {ProfileChain} */
const publicChain = ({ path, ...chain }) => chain

/** @param {ProfileChain[]} chains */
function addUp (chains) {
  const sum = { count: 0, ranMs: 0, waitedMs: 0 }
  for (const { count, ranMs, waitedMs } of chains) {
    sum.count += count
    sum.ranMs += ranMs
    sum.waitedMs += waitedMs
  }
  return sum
}

/** Describes the chains, and merges those with the same text. @param {import('./totals').Totals} totals */
function mergeChains (totals) {
  /** @type {Map<string, PathChain>} */
  const chainsByText = new Map()
  /** @type {PathChain[]} */
  const chainsBySlot = []
  for (const { chain: number, route, count, requests, ranMs, waitedMs, waits } of totals.list) {
    const { hops, type } = chainTexts.describeChain(number)
    const described = describeChain(hops, route)
    const text = [route, described.label, described.type, ...described.frames].join('\n')
    const chain = getOrAdd(chainsByText, text, () =>
      ({ ...described, requests: 0, count: 0, ranMs: 0, waitedMs: 0, waits: 0, cpuMs: 0 }))
    chainsBySlot.push(chain)
    chain.count += count
    chain.requests += requests
    chain.ranMs += ranMs
    if (listeningTypes.has(type)) continue
    chain.waitedMs += waitedMs
    chain.waits += waits
  }
  return { chains: [...chainsByText.values()], chainsBySlot }
}

/**
 * @param {DescribedHop[]} hops newest first
 * @param {string | undefined} route
 */
function describeChain (hops, route) {
  const [newest] = hops
  const frames = newest.lines.map(frameOfLine)
  const path = []
  let isOutside = false // beyond the request
  for (const [index, { label, type, lines }] of hops.entries()) {
    const name = !isOutside && requestTypes.has(type) ? route ?? label : label
    if (index > 0) frames.push(`── ${name} ──`, ...lines.map(frameOfLine))
    isOutside ||= route !== undefined && requestTypes.has(type)
    if (!isOutside) path.push(name, ...lines.map(frameOfLine))
  }
  const { type } = newest
  const label = route !== undefined && requestTypes.has(type) ? route : newest.label
  const kind = subsystemOf(type) ?? type
  return {
    frames,
    label,
    type,
    kind,
    ...(route === undefined ? {} : { route }),
    path: { route, label, names: path.reverse() }
  }
}

/** @param {string} line as hops print it @returns {string} `load (/app/pool.js:34:9)` */
function frameOfLine (line) {
  const text = line.trim().replace(/^at (?:async )?/, '').replace(/file:\/\/\/.*?(?=:\d+:\d+\)?$)/, pathOf)
  return text.endsWith(')') || text.startsWith('...') ? text : `<anonymous> (${text})`
}

/**
 * @param {import('./cpu-samples').CpuTotals} cpu
 * @param {PathChain[]} chainsBySlot
 * @returns {ChainStack[]} most time first
 */
function mergeStacks (cpu, chainsBySlot) {
  const described = cpu.frames.map(describeFrame)
  /** @type {Map<PathChain, Map<string, ChainStack>>} */
  const stacksByChain = new Map()
  /** @type {ChainStack[]} */
  const merged = []
  for (const { slot, stack, ms, count } of cpu.totals.values()) {
    const chain = chainsBySlot[slot]
    const frames = textsOf(cpu.framesOf(stack).map((number) => described[number]))
    const entry = getOrAdd(getOrAdd(stacksByChain, chain, newMap), frames.join('\n'), () => {
      const added = { chain, frames, ms: 0, count: 0 }
      merged.push(added)
      return added
    })
    entry.ms += ms
    entry.count += count
  }
  return merged.sort((a, b) => b.ms - a.ms)
}

/**
 * Returns the frames of a stack as text, in the format of hops. longstack's own become one frame. Frames by
 * which Node calls the program are left out; all others of Node stay, since they show where the CPU went.
 * @param {Array<{ text: string, kind: string }>} frames innermost first
 */
function textsOf (frames) {
  let end = frames.length
  while (end > 1 && frames[end - 1].kind === 'core' && frames[end - 2].kind !== 'builtin') end--
  return frames.slice(0, end).map(({ text }) => text)
    .filter((text, index, texts) => text !== OWN || texts[index - 1] !== OWN)
}

/** @param {import('./cpu-samples').CallFrame} frame */
function describeFrame ({ functionName, url, lineNumber, columnNumber }) {
  const name = functionName === '' ? '<anonymous>' : functionName
  if (url === '') return { text: name, kind: 'builtin' }
  const line = `${name} (${pathOf(url)}:${lineNumber + 1}:${columnNumber + 1})`
  const frame = parseFrame(line)
  if (frame.kind === 'own') return { text: OWN, kind: 'own' }
  if (frame.kind === 'core') return { text: line, kind: 'core' }
  const { text } = mapFrame(frame)
  return { text: text.endsWith(')') ? text : `<anonymous> (${text})`, kind: frame.kind }
}

/** @param {string} url @returns {string} */
function pathOf (url) {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : url
  } catch {
    return url
  }
}

module.exports = { createProfile }
