'use strict'

// Of which function of the program or of a library a promise is: `acquire` of a mutex, `connect` of a pool,
// `add` of a queue. Read from chains.

const { kindAt } = require('../core/kinds')
const { source } = require('../core/source')
const { mapFrame } = require('../stacks/source-maps')

const MAX_CLIMB = 32 // steps up a chain

/** Words in names of functions that take what others have to give back. */
const TAKING = new Set([
  'acquire', 'lock', 'checkout', 'borrow', 'reserve', 'lease', 'obtain', 'connect', 'connection',
  'semaphore', 'mutex'
])
/** The same of functions that run what they are given, a few at a time. */
const RUNNING = new Set([
  'add', 'run', 'enqueue', 'schedule', 'limit', 'throttle', 'exclusive', 'exclusively', 'with'
])

/**
 * @typedef {import('../stacks/frames').Frame} Frame
 *
 * @typedef {object} Call of a function that returned a promise
 * @property {string} key function and file
 * @property {string} file
 * @property {string} at `acquire (/app/lock.js:10:12)`
 * @property {string | undefined} caller the innermost frame of the program that called it
 * @property {string} path all frames that called it in that step: of equal ones it was the same place
 * @property {'takes' | 'runs' | undefined} name what its name says that it does
 * @property {boolean} isPlain its promise is settled by whoever was given the functions to do so
 */

class Calls {
  /** by chain @type {Map<number, Call | undefined>} */
  #calls = new Map()

  /** @param {number} chain of a promise @returns {Call | undefined} undefined: it is Node's, or not known */
  of (chain) {
    if (this.#calls.has(chain)) return this.#calls.get(chain)
    const call = readCall(chain)
    this.#calls.set(chain, call)
    return call
  }
}

/** @param {number} chain @returns {Call | undefined} */
function readCall (chain) {
  const frames = framesAt(chain)
  const first = frames.findIndex((frame) => !isBuiltin(frame))
  if (first === -1 || !isOfProgram(frames[first])) return undefined
  const last = lastOfLibrary(frames, first)
  const { functionName } = frames[last]
  if (functionName === undefined) return undefined
  const key = keyOf(frames[last])
  const callers = callersOf(chain, frames.slice(last + 1), key)
  return {
    key,
    file: String(frames[last].fileName),
    at: textOf(frames[last]),
    caller: callers.length === 0 ? undefined : textOf(outerOf(callers, frames[last])),
    path: pathOf(callers),
    name: nameOf(frames[last]),
    isPlain: first > 0
  }
}

/**
 * Returns the outermost of the frames of a library that were called, where a library was.
 * @param {Frame[]} frames
 * @param {number} first index of the innermost
 */
function lastOfLibrary (frames, first) {
  if (frames[first].kind !== 'module') return first
  const end = frames.findIndex(({ kind }, i) => i > first && kind === 'user')
  return frames.findLastIndex(({ kind }, i) => kind === 'module' && (end === -1 || i < end))
}

/**
 * Returns the nearest caller outside of its file, else the nearest.
 * @param {Frame[]} callers
 * @param {Frame} called
 */
function outerOf (callers, called) {
  return callers.find(({ fileName }) => fileName !== called.fileName) ?? callers[0]
}

/**
 * Returns the frames of the program that called a function. Behind an `await` they are further up the chain.
 * @param {number} chain
 * @param {Frame[]} outer frames of its newest step
 * @param {string} key of the function
 */
function callersOf (chain, outer, key) {
  let callers = outer.filter(isOfProgram)
  let step = chain
  for (let i = 0; callers.length === 0 && i < MAX_CLIMB; i++) {
    step = source.chainAt(step)?.parent ?? 0
    const frames = framesAt(step).filter((frame) => !isBuiltin(frame))
    if (frames.length === 0 || keyOf(frames[0]) !== key) break
    callers = frames.slice(1).filter(isOfProgram)
  }
  return callers
}

/**
 * Lists the calls of a function that a step has behind it, or in which it was made.
 * @param {number} chain of the step
 * @param {string} key of the function
 * @param {Set<string>} places frames that go on with what it gave; none: it runs what it is given
 * @returns {Array<{ caller: string, path: string }>}
 */
function passedCalls (chain, key, places) {
  const passed = []
  let step = places.size > 0 ? source.chainAt(chain)?.parent ?? 0 : chain
  for (let i = 0; step !== 0 && i < MAX_CLIMB; i++) {
    const parts = source.chainAt(step)
    if (kindAt(parts?.kind ?? 0)?.promise !== true) break
    const frames = framesAt(step)
    const index = frames.findLastIndex((frame) => !isBuiltin(frame) && keyOf(frame) === key)
    const isPassed = places.size > 0 ? places.has(frames[0]?.text) : index > 0
    const callers = isPassed ? frames.slice(places.size > 0 ? 0 : index + 1).filter(isOfProgram) : []
    if (callers.length > 0) {
      passed.push({ caller: textOf(outerOf(callers, frames[Math.max(0, index)])), path: pathOf(callers) })
    }
    step = parts?.parent ?? 0
  }
  return passed
}

/** @param {number} chain @returns {Frame[]} of its newest step */
function framesAt (chain) {
  return source.chainAt(chain)?.stack?.frames.filter(({ isAsync }) => !isAsync) ?? []
}

/** @param {Frame[]} callers */
const pathOf = (callers) => callers.map(({ text }) => text).join('\n')

/** @param {Frame} frame */
const textOf = (frame) => mapFrame(frame).text.replace(/^async /, '')

/** @param {Frame} frame */
const isBuiltin = ({ fileName, lineNumber }) => fileName === undefined && lineNumber === undefined

/** @param {Frame} frame */
const isOfProgram = ({ kind }) => kind === 'user' || kind === 'module'

/** @param {Frame} frame */
const keyOf = ({ functionName, fileName }) => `${functionName} ${fileName}`

/** @param {Frame} frame @returns {Call['name']} */
function nameOf ({ functionName = '' }) {
  const method = functionName.replace(/ \[as .*$/, '').split(/[. ]/).at(-1) ?? ''
  const words = (method.match(/[A-Z]?[a-z]+|[A-Z]+/g) ?? []).map((word) => word.toLowerCase())
  if (words.some((word) => RUNNING.has(word))) return 'runs'
  return words.some((word) => TAKING.has(word)) ? 'takes' : undefined
}

module.exports = { Calls, passedCalls }
