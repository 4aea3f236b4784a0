'use strict'

// Function of the program or a library that returned a promise: `acquire` of a mutex, `connect` of a pool,
// `add` of a queue. Read from chains.

const { kindAt } = require('../core/kinds')
const { timeOf } = require('../core/record-ids')
const { CAUSE, CHAIN, ERA, FLAGS, TIME, findRecord } = require('../core/records')
const { source } = require('../core/source')
const { getOrAdd } = require('../group-by')
const capture = require('../stacks/capture')
const { isBuiltin, isProgram } = require('../stacks/frames')
const { mapFrame } = require('../stacks/source-maps')

const MAX_CLIMB = 32 // steps up a chain
const CHUNK = 256 // chains per piece of work

/** Words in names of functions that take a resource that must be returned. */
const TAKING = new Set([
  'acquire', 'lock', 'checkout', 'borrow', 'reserve', 'lease', 'obtain', 'connect', 'connection',
  'semaphore', 'mutex'
])
/** Words in names of functions that run given tasks, a few at a time. */
const RUNNING = new Set([
  'add', 'run', 'enqueue', 'schedule', 'limit', 'throttle', 'exclusive', 'exclusively', 'with'
])

/**
 * @typedef {import('../stacks/frames').Frame} Frame
 *
 * @typedef {object} Call a call of a function that returned a promise
 * @property {string} key function and file
 * @property {string} file
 * @property {string} at `acquire (/app/lock.js:10:12)`
 * @property {string | undefined} caller innermost frame of the program that called it
 * @property {string} path all frames that called it in that step; equal paths mean the same place
 * @property {'takes' | 'runs' | undefined} name what its name suggests it does
 * @property {boolean} isPlain its promise is settled through resolve functions, by any code that has them
 */

/** Calls of taking functions in all chains. Each chain is read once. */
const seen = {
  generation: -1,
  /** number of the next chain to read */
  next: 0,
  /** innermost calling frames, by function key @type {Map<string, Set<string>>} */
  callers: new Map()
}

/**
 * Returns the callers of taking functions seen so far. Yields between pieces of work.
 * @returns {Generator<void, Map<string, Set<string>>, void>} frames by function key
 */
function * seenCallers () {
  const { chains, firstChain } = capture.stats()
  if (seen.generation !== capture.generation) {
    Object.assign(seen, { generation: capture.generation, next: firstChain, callers: new Map() })
  }
  for (let chain = Math.max(seen.next, firstChain); chain < firstChain + chains; chain++) {
    if (chain % CHUNK === 0) yield
    const frames = framesAt(chain)
    const last = calledIn(frames)
    seen.next = chain + 1
    if (last === -1 || nameOf(frames[last]) !== 'takes' || isAwaited(chain)) continue
    const caller = frames.slice(last + 1).find(isProgram)
    if (caller === undefined) continue
    const key = keyOf(frames[last])
    getOrAdd(seen.callers, key, () => new Set()).add(caller.text)
  }
  return seen.callers
}

/** Whether a chain's newest step is not a promise made by a function. @param {number} chain */
function isAwaited (chain) {
  const kind = kindAt(source.chainAt(chain)?.kind ?? 0)
  return kind === undefined || !kind.promise || kind.awaited
}

/** @param {number} chain of a promise @returns {Call | undefined} undefined: Node's, or unknown */
function readCall (chain) {
  const frames = framesAt(chain)
  const last = calledIn(frames)
  if (last === -1) return undefined
  const key = keyOf(frames[last])
  const callers = callersOf(chain, frames.slice(last + 1), key)
  return {
    key,
    file: String(frames[last].fileName),
    at: textOf(frames[last]),
    caller: callers.length === 0 ? undefined : textOf(outerOf(callers, key)),
    path: pathOf(callers),
    name: nameOf(frames[last]),
    isPlain: isBuiltin(frames[0])
  }
}

/**
 * Returns the called function: the innermost one, or if that is in a library, the library's outermost.
 * @param {Frame[]} frames
 * @returns {number} index; -1 if it is Node's or has no name
 */
function calledIn (frames) {
  const first = frames.findIndex((frame) => !isBuiltin(frame))
  if (first === -1 || !isProgram(frames[first])) return -1
  const end = frames.findIndex(({ kind }, i) => i > first && kind === 'user')
  const last = frames[first].kind === 'module'
    ? frames.findLastIndex(({ kind }, i) => kind === 'module' && (end === -1 || i < end))
    : first
  return frames[last].functionName === undefined ? -1 : last
}

/**
 * Returns the nearest caller outside the function's file, else the nearest one.
 * @param {Frame[]} callers
 * @param {string} key of the function
 */
function outerOf (callers, key) {
  return callers.find(({ fileName }) => !key.endsWith(` ${fileName}`)) ?? callers[0]
}

/**
 * Returns the program's frames that called a function. After an `await`, they are further up the chain.
 * @param {number} chain
 * @param {Frame[]} outer frames of its newest step
 * @param {string} key of the function
 */
function callersOf (chain, outer, key) {
  let callers = outer.filter(isProgram)
  let step = chain
  for (let i = 0; callers.length === 0 && i < MAX_CLIMB; i++) {
    step = source.chainAt(step)?.parent ?? 0
    const frames = framesAt(step).filter((frame) => !isBuiltin(frame))
    if (frames.length === 0 || keyOf(frames[0]) !== key) break
    callers = frames.slice(1).filter(isProgram)
  }
  return callers
}

/**
 * Lists the calls of a function that a step's flow has completed, or in which the step was made.
 * @param {number} chain of the step
 * @param {string} key of the function
 * @param {Set<string>} places frames that continue with the resource; empty: the function runs given tasks
 * @returns {Array<{ caller: string, path: string }>}
 */
function passedCalls (chain, key, places) {
  const passed = []
  let step = places.size > 0 ? source.chainAt(chain)?.parent ?? 0 : chain
  for (let i = 0; step !== 0 && i < MAX_CLIMB; i++) {
    const parts = source.chainAt(step)
    if (kindAt(parts?.kind ?? 0)?.promise !== true) break
    const callers = passedIn(step, key, places)
    if (callers.length > 0) passed.push({ caller: textOf(outerOf(callers, key)), path: pathOf(callers) })
    step = parts?.parent ?? 0
  }
  return passed
}

/**
 * Returns the callers of a function, if the newest step of a chain continues inside or after its call.
 * @param {number} chain
 * @param {string} key
 * @param {Set<string>} places as of `passedCalls`
 * @returns {Frame[]} empty if it does not
 */
function passedIn (chain, key, places) {
  const frames = framesAt(chain)
  if (places.size > 0) return places.has(frames[0]?.text) ? frames.filter(isProgram) : []
  const index = frames.findLastIndex((frame) => !isBuiltin(frame) && keyOf(frame) === key)
  return index > 0 ? frames.slice(index + 1).filter(isProgram) : []
}

/**
 * Returns the time since which a step's flow has held a function's resource.
 * @param {number} ref of the step
 * @param {string} key of the function
 * @param {Set<string>} places as of `passedCalls`
 * @returns {number | undefined} ms of the clock; undefined if no longer recorded
 */
function heldSince (ref, key, places) {
  /** @type {number | undefined} */
  let since
  for (let step = ref, i = 0; i < MAX_CLIMB; i++) {
    const record = findRecord(step)
    if (record === undefined) return undefined
    const { words, offset } = record
    const isThere = passedIn(words[offset + CHAIN], key, places).length > 0
    if (isThere && places.size > 0) return since
    since = timeOf(words[offset + TIME], words[offset + FLAGS] >>> ERA)
    if (isThere) return since
    step = words[offset + CAUSE]
  }
  return undefined
}

/** @param {number} chain @returns {Frame[]} frames of its newest step */
function framesAt (chain) {
  return source.chainAt(chain)?.stack?.frames.filter(({ isAsync }) => !isAsync) ?? []
}

/** @param {Frame[]} callers */
const pathOf = (callers) => callers.map(({ text }) => text).join('\n')

/** @param {Frame} frame */
const textOf = (frame) => mapFrame(frame).text.replace(/^async /, '')

/** @param {Frame} frame */
const keyOf = ({ functionName, fileName }) => `${functionName} ${fileName}`

/** @param {Frame} frame @returns {Call['name']} */
function nameOf ({ functionName = '' }) {
  const method = functionName.replace(/ \[as .*$/, '').split(/[. ]/).at(-1) ?? ''
  const words = (method.match(/[A-Z]?[a-z]+|[A-Z]+/g) ?? []).map((word) => word.toLowerCase())
  if (words.some((word) => RUNNING.has(word))) return 'runs'
  return words.some((word) => TAKING.has(word)) ? 'takes' : undefined
}

module.exports = { heldSince, passedCalls, readCall, seenCallers }
