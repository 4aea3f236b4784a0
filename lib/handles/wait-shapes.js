'use strict'

// Purpose of a pending promise, read from its chain: the continuation of an async function, a `then`, an
// element of Promise.all, or the step by which a promise follows another one. No record links a waiting
// function to the promise it will settle, but their chains do: an async function's promise is made at its
// entry, and its first await lies in the same function, with the same callers, in the same step. So promises
// and waits are put into classes: a wait of a class settles a promise of that class.

const { source } = require('../core/source')
const { kindAt } = require('../core/kinds')
const { FIRST_CHAIN } = require('../core/records')
const { getOrAdd } = require('../group-by')
const { isBuiltin, isProgram } = require('../stacks/frames')

// Kinds of shapes.
const NONE = 0 // not a promise, or a wait of Node itself
const PLAIN = 1 // a promise that waits for no other
const AWAIT = 2 // an async function continues
const THEN = 3 // then, catch or finally
const ELEMENT = 4 // an element of Promise.all and the like
const JOB = 5 // a promise follows another one: NewPromiseResolveThenableJob of ECMA-262

const NO_CLASS = 0
const MAX_CLIMB = 64 // awaits of one function up to its first one
const MAX_COLUMN = 1 << 20

/** Files in which Node's loop calls the program. */
const baseFiles = new Set(['node:internal/process/task_queues', 'node:internal/timers'])

/**
 * @typedef {import('../core/source').ChainParts} ChainParts
 * @typedef {import('../stacks/frames').Frame} Frame
 *
 * @typedef {object} Shape
 * @property {number} kind
 * @property {number} settles class of the promise that it settles when it continues; NO_CLASS: itself
 * @property {number} settledBy PLAIN: class of the wait that settles it
 * @property {number} position PLAIN with a function innermost: its position in the file; else -1
 * @property {number} follower JOB: chain of the promise that follows another one; else 0
 */

/** @type {Shape} */
const NO_SHAPE = { kind: NONE, settles: NO_CLASS, settledBy: NO_CLASS, position: -1, follower: 0 }

class WaitShapes {
  /** by chain number @type {Map<number, Shape>} */
  #shapes = new Map()
  /** @type {Map<string, number>} */
  #classes = new Map()

  get size () { return this.#shapes.size }

  /** Returns the shape of the newest step of a chain. @param {number} chain @returns {Shape} */
  of (chain) {
    return getOrAdd(this.#shapes, chain, () => this.#read(chain))
  }

  /**
   * Returns the class that a wait settles if the step that made it has another chain than its own chain says,
   * as in a loop, whose chain is that of an earlier step.
   * @param {number} chain
   * @param {number} parent chain of the step that made it
   */
  settlesIn (chain, parent) {
    const frames = framesOf(source.chainAt(chain))
    return this.#classSettledBy(frames, parent, this.of(chain).kind)
  }

  /** @param {number} chain @returns {Shape} */
  #read (chain) {
    if (chain < FIRST_CHAIN) return NO_SHAPE
    const parts = source.chainAt(chain)
    const kind = parts && kindAt(parts.kind)
    if (parts === undefined || kind === undefined || !kind.promise) return NO_SHAPE
    const frames = framesOf(parts)
    if (!kind.awaited) return this.#readPlain(frames, parts.parent)
    const waitKind = kindOfWait(frames)
    const maker = waitKind === JOB ? framesOf(source.chainAt(parts.parent)) : frames
    if (isOfNode(maker)) return NO_SHAPE
    const settles = this.#classSettledBy(frames, parts.parent, waitKind)
    return { ...NO_SHAPE, kind: waitKind, settles, follower: waitKind === JOB ? parts.parent : 0 }
  }

  /** @param {Frame[]} frames @param {number} parent @returns {Shape} */
  #readPlain (frames, parent) {
    const [first] = frames
    if (first === undefined) return { ...NO_SHAPE, kind: PLAIN }
    const isOfFunction = !isBuiltin(first)
    const key = isOfFunction ? functionKey(frames, parent) : builtinKey(frames, parent)
    const position = isOfFunction ? positionOf(first) : -1
    return { ...NO_SHAPE, kind: PLAIN, settledBy: this.#classOf(key), position }
  }

  /** @param {Frame[]} frames @param {number} parent @param {number} kind @returns {number} */
  #classSettledBy (frames, parent, kind) {
    if (kind === ELEMENT) return this.#classOf(builtinKey(frames.slice(1), parent))
    if (kind !== AWAIT || frames.length === 0) return NO_CLASS
    const [first, firstParent] = firstAwait(frames, parent)
    const caller = first[1]
    const isGenerator = caller !== undefined && isBuiltin(caller) && isNext(caller)
    const key = isGenerator ? builtinKey(first.slice(1), firstParent) : functionKey(first, firstParent)
    return this.#classOf(key)
  }

  /** @param {string} key @returns {number} */
  #classOf (key) {
    return getOrAdd(this.#classes, key, () => this.#classes.size + 1)
  }
}

/**
 * Returns the program's frames of a stack, and those it called.
 * @param {ChainParts | undefined} parts
 * @returns {Frame[]}
 */
function framesOf (parts) {
  const frames = parts?.stack?.frames
  if (frames === undefined) return []
  let end = frames.length
  while (end > 0 && (frames[end - 1].isAsync || baseFiles.has(String(frames[end - 1].fileName)))) end--
  return end === frames.length ? frames : frames.slice(0, end)
}

/** @param {Frame[]} frames @returns {number} */
function kindOfWait (frames) {
  const [first, second] = frames
  if (first === undefined) return AWAIT
  if (!isBuiltin(first)) return AWAIT
  if (second === undefined) return JOB
  return isBuiltin(second) && isCombinator(second) ? ELEMENT : THEN
}

/**
 * Returns the frames of a function's first await, and the chain of the step that called the function. After
 * an await, the function is alone on the stack.
 * @param {Frame[]} frames of an await
 * @param {number} parent
 * @returns {[Frame[], number]}
 */
function firstAwait (frames, parent) {
  for (let i = 0; i < MAX_CLIMB && frames.length === 1; i++) {
    const parts = source.chainAt(parent)
    const kind = parts && kindAt(parts.kind)
    if (parts === undefined || kind === undefined || !kind.awaited) break
    const earlier = framesOf(parts)
    if (earlier.length === 0 || !isSameFunction(earlier[0], frames[0])) break
    frames = earlier
    parent = parts.parent
  }
  return [frames, parent]
}

/** @param {Frame} frame @param {Frame} other */
function isSameFunction (frame, other) {
  return frame.fileName === other.fileName && frame.functionName === other.functionName
}

/** @param {Frame} frame @returns {number} increasing along the file */
function positionOf ({ lineNumber = 0, columnNumber = 0 }) {
  return lineNumber * MAX_COLUMN + columnNumber
}

/** Whether the innermost non-builtin function is Node's. @param {Frame[]} frames */
function isOfNode (frames) {
  const innermost = frames.find((frame) => !isBuiltin(frame))
  return innermost !== undefined && !isProgram(innermost)
}

/** @param {Frame} frame builtin */
const isNext = ({ functionName = '' }) => /\.(next|return|throw)$/.test(functionName)

/** @param {Frame} frame builtin */
const isCombinator = ({ functionName = '' }) => /\.(all|allSettled|any|race)$/.test(functionName)

/** @param {Frame[]} frames @param {number} parent */
const builtinKey = (frames, parent) => `${parent} ${frames.map(({ text }) => text).join('\n')}`

/** @param {Frame[]} frames @param {number} parent */
function functionKey ([first, ...callers], parent) {
  return `${parent} ${first.functionName} ${first.fileName}\n${callers.map(({ text }) => text).join('\n')}`
}

module.exports = { ELEMENT, JOB, NONE, NO_CLASS, PLAIN, WaitShapes }
