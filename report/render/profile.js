'use strict'

// Renders a profile as text: where the loop ran, with the CPU samples there, and where callbacks waited. For
// tools that only know stacks, also renders collapsed stacks and pprof's format (profile.proto of
// github.com/google/pprof). A stack holds the frames and hop labels of a chain, followed further inside by
// the frames of CPU samples. Profiles come from another process and are not trusted.

const { gzipSync } = require('node:zlib')
const { clean } = require('../../lib/text')
const { parseFrame } = require('../aggregate/frames')
const { Sums, getOrCreate, partOf, sum } = require('../aggregate/lists')
const { columns, counted, noColours, percent, time, word } = require('./text-parts')
const { treeLines } = require('./tree')
const { glued, wrap } = require('./wrap')

/**
 * @typedef {import('../../lib/profile/profile').Profile} Profile
 * @typedef {import('../../lib/profile/profile').ProfileChain} ProfileChain
 * @typedef {import('../../lib/profile/path-tree').PathNode} PathNode
 * @typedef {import('./text-parts').Colours} Colours
 *
 * @typedef {object} Stack
 * @property {string[]} frames innermost first
 * @property {ProfileChain} chain
 * @property {number} count callbacks; 0 for CPU samples
 * @property {number} ranMs
 * @property {number} waitedMs
 * @property {number} cpuMs
 */

const MAX_ROUTES = 10
const MIN_SHARE = 0.02 // share of the whole that a line of a tree needs
const titles = /** @type {const} */ ([['ran', 'Where it ran'], ['waited', 'Where it waited']])
const LABEL = /^── (.*) ──$/s
const MAX_CHARS = 1000 // per name
const NS = 1e6 // per ms
const SAMPLE_NS = 4e6 // interval between CPU samples
/**
 * Values of a sample with their units. Tools show the first one; `go tool pprof` -sample_index selects by
 * name.
 */
const types = [['wall', 'nanoseconds'], ['ran', 'nanoseconds'], ['waited', 'nanoseconds'], ['count', 'count'],
  ['cpu', 'nanoseconds']]

/** Values that collapsed stacks can show, by name. @satisfies {Record<string, (stack: Stack) => number>} */
const values = {
  ran: ({ ranMs }) => ranMs,
  waited: ({ waitedMs }) => waitedMs,
  cpu: ({ cpuMs }) => cpuMs
}

/**
 * Lists the stacks of a profile: one per chain, and one per stack of CPU samples.
 * @param {Profile} profile
 * @returns {Generator<Stack>}
 */
function * stacksOf ({ chains, samples }) {
  for (const chain of chains) {
    const { count, ranMs, waitedMs } = chain
    const frames = chain.frames.length === 0 ? [chain.label] : chain.frames.map(nameOf)
    yield { frames, chain, count, ranMs, waitedMs, cpuMs: 0 }
  }
  for (const { chain: index, frames, ms } of samples) {
    const chain = chains[index]
    if (chain === undefined) continue
    const inner = [...frames, chain.label, ...chain.frames.map(nameOf)]
    yield { frames: inner, chain, count: 0, ranMs: 0, waitedMs: 0, cpuMs: ms }
  }
}

/** Returns the name of a frame or hop label. @param {string} frame */
function nameOf (frame) {
  return (LABEL.exec(frame)?.[1] ?? frame).slice(0, MAX_CHARS)
}

/**
 * @param {Profile} profile
 * @param {keyof typeof values} [value] value to show
 * @returns {string} a line per stack: frames from the outermost inwards, then µs; stacks with 0 µs are left
 *   out
 */
function collapsed (profile, value = 'ran') {
  /** @type {Sums<string>} */
  const sums = new Sums()
  for (const stack of stacksOf(profile)) {
    const line = [...stack.frames].reverse().map((name) => clean(name).replaceAll(';', '?')).join(';')
    sums.add(line, values[value](stack))
  }
  return [...sums].map(([line, ms]) => [line, Math.round(ms * 1000)]).filter(([, count]) => Number(count) > 0)
    .map(([line, count]) => `${line} ${count}\n`).join('')
}

/** @param {Profile} profile @returns {Buffer} gzip */
function pprof (profile) {
  const format = require('pprof-format')
  const strings = new format.StringTable()
  const text = (/** @type {string} */ value) => strings.dedup(value)
  const functions = numbered((/** @type {number} */ id, /** @type {[string, string]} */ [name, file]) =>
    new format.Function({ id, name: text(name), filename: text(file) }))
  const locations = numbered((/** @type {number} */ id, /** @type {string} */ frame) => {
    const { name, file, line } = placeOf(frame)
    const lines = [new format.Line({ functionId: functions.idOf([name, file]), line })]
    return new format.Location({ id, line: lines })
  })
  const label = (/** @type {string} */ key, /** @type {string | undefined} */ value) => value === undefined
    ? []
    : [new format.Label({ key: text(key), str: text(value) })]
  const sample = [...stacksOf(profile)].map(({ frames, chain, count, ranMs, waitedMs, cpuMs }) => {
    const value = [ranMs + waitedMs, ranMs, waitedMs].map((ms) => Math.round(ms * NS))
    return new format.Sample({
      locationId: frames.map(locations.idOf),
      value: [...value, count, Math.round(cpuMs * NS)],
      label: [...label('route', chain.route), ...label('kind', chain.kind), ...label('hop', chain.label)]
    })
  })
  const valueType = ([type, unit] = types[0]) => new format.ValueType({ type: text(type), unit: text(unit) })
  return gzipSync(new format.Profile({
    sampleType: types.map((type) => valueType(type)),
    sample,
    location: locations.items,
    function: functions.items,
    stringTable: strings,
    timeNanos: BigInt(Math.round(profile.startUnixMs)) * BigInt(NS),
    durationNanos: Math.round(profile.seconds * 1e9),
    periodType: valueType(['cpu', 'nanoseconds']),
    period: SAMPLE_NS,
    defaultSampleType: text('wall')
  }).encode())
}

/**
 * Creates one numbered item per distinct value.
 * @template V, T
 * @param {(id: number, value: V) => T} create
 */
function numbered (create) {
  /** @type {Map<string, number>} */
  const ids = new Map()
  /** @type {T[]} */
  const items = []
  const idOf = (/** @type {V} */ value) =>
    getOrCreate(ids, JSON.stringify(value), () => items.push(create(items.length + 1, value)))
  return { items, idOf }
}

/**
 * Splits a frame into its parts; a label has no file.
 * @param {string} frame
 * @returns {{ name: string, file: string, line: number }}
 */
function placeOf (frame) {
  const place = parseFrame(frame)
  if (place === undefined || place.start === '') return { name: frame, file: '', line: 0 }
  const { start, path: file, line } = place
  const functionName = start.slice(0, -2)
  // Tools aggregate by name, but each anonymous function is a different one
  const isAnonymous = functionName === '<anonymous>'
  const name = isAnonymous ? `<anonymous> ${file.replace(/^.*[/\\]/s, '')}:${line}` : functionName
  return { name, file, line: Number(line) }
}

/**
 * @param {Profile} profile
 * @param {{ colours?: Colours, width?: number }} [options]
 * @returns {string}
 */
function profileText (profile, { colours = noColours, width = 80 } = {}) {
  const { tree, lacks } = profile
  const parts = [head(profile, colours, width)]
  for (const [kind, title] of titles) {
    const part = partOf(tree, kind, ({ kind, count }, children) =>
      kind === 'route' ? count : sum(children, (child) => child.count))
    if (part === undefined || part.ms === 0) continue
    parts.push([colours.bold(title), ...treeLines(part, { colours, width, minShare: MIN_SHARE })])
  }
  const routes = routeRows(profile)
  if (routes.length > 1) parts.push([colours.bold('By route'), ...columns(routes)])
  if (lacks.length > 0) parts.push(lacks.flatMap((sentence) => wrap(word(sentence, 1000), width)))
  return `${parts.map((lines) => lines.join('\n')).join('\n\n')}\n`
}

/** @param {Profile} profile @param {Colours} colours @param {number} width */
function head (profile, colours, width) {
  const { pid, threadId, nodeVersion, seconds, ranMs, chains, sampleCount } = profile
  const thread = threadId === 0 ? '' : `, worker ${threadId}`
  const title = colours.bold(glued(`Process ${pid}${thread}`))
  const callbacks = sum(chains, ({ count }) => count)
  const samples = sampleCount === 0 ? '' : `; ${glued(counted(sampleCount, 'CPU sample'))}`
  const share = percent(ranMs / (seconds * 1000))
  const duration = glued(time(seconds * 1000))
  const ran = glued(`${time(ranMs)} (${share})`)
  return wrap(`${title}, Node ${word(nodeVersion)}: ${duration}, of which its event loop ran ${ran}; ` +
    `${glued(counted(callbacks, 'callback'))} of ${glued(counted(chains.length, 'chain'))}${samples}.`, width)
}

/** @param {Profile} profile @returns {string[][]} */
function routeRows ({ tree }) {
  const routes = tree.children.filter(({ kind }) => kind === 'route').slice(0, MAX_ROUTES)
  const rows = routes.map((route) => {
    const ran = partOf(route, 'ran')?.ms ?? 0
    const waited = partOf(route, 'waited')?.ms ?? 0
    return [word(route.name), String(route.count), time(ran), time(waited)]
  })
  return [['', 'requests', 'ran', 'waited'], ...rows]
}

module.exports = { collapsed, pprof, profileText }
