'use strict'

// Stacks, parsed from the text that V8 prints. All stacks share one Frame per recurring frame, and equal
// stacks share one Stack: programs that keep loading code (test runners) have many stacks made of mostly the
// same frames.

const path = require('node:path')
const {
  AT, afterLast, frameLines, namesInModules, numberStart, splitFrames, withoutAlias
} = require('./text-scan')

const MAX_FRAMES = 1500 // cached by text, per half of the map
const MAX_LINE = 1000 // characters of a cached line

/**
 * @typedef {object} Frame shared by all users of its line: never changed
 * @property {string} text the line as V8 prints it, without "    at "
 * @property {string | undefined} functionName
 * @property {string | undefined} fileName a path, a file: URL, a node: module, or undefined for built-in code
 * @property {number | undefined} lineNumber from 1
 * @property {number | undefined} columnNumber from 1
 * @property {'user' | 'module' | 'core' | 'own'} kind `module`: below node_modules; `own`: longstack itself
 * @property {boolean} isAsync an awaiting function known to V8
 */

const lib = path.dirname(__dirname)
const own = `${lib}${path.sep}`
const ownIndex = `${path.dirname(lib)}${path.sep}index.js`

/**
 * A map that, when full, evicts the entries not used since it was last full: recurring entries stay.
 * @template T
 */
class RecentMap {
  /** @type {Map<string, T>} */
  #recent = new Map()
  /** @type {Map<string, T>} */
  #older = new Map()
  #weight = 0
  #olderWeight = 0
  #maxWeight

  /** @param {number} maxWeight of one half: the recently used entries */
  constructor (maxWeight) {
    this.#maxWeight = maxWeight
  }

  get weight () { return this.#weight + this.#olderWeight }

  /** @param {string} key @param {number} [weight] as in `set` @returns {T | undefined} */
  get (key, weight = 1) {
    const value = this.#recent.get(key)
    if (value !== undefined) return value
    const older = this.#older.get(key)
    if (older !== undefined) this.set(key, older, weight)
    return older
  }

  /** @param {string} key @param {T} value @param {number} [weight] */
  set (key, value, weight = 1) {
    if (this.#weight + weight > this.#maxWeight) {
      this.#older = this.#recent
      this.#recent = new Map()
      this.#olderWeight = this.#weight
      this.#weight = 0
    }
    this.#weight += weight
    this.#recent.set(key, value)
  }
}

/** @type {RecentMap<Frame>} */
const framesByLine = new RecentMap(MAX_FRAMES)

/**
 * Parses a frame, or returns the cached one for the same line.
 * @param {string} line a frame's line without "    at "
 * @returns {Frame}
 */
function parseFrame (line) {
  let frame = framesByLine.get(line)
  if (frame !== undefined) return frame
  if (line.length > MAX_LINE) return parse(line)
  line = ` ${line}`.slice(1) // a copy: a slice keeps its whole text (V8's SlicedString, src/objects/string.h)
  frame = parse(line)
  framesByLine.set(line, frame)
  return frame
}

/**
 * Parses a line of a stack.
 * @param {string} line
 * @returns {Frame | undefined} undefined if it is no frame
 */
function frameIn (line) {
  return line.startsWith(AT) ? parseFrame(line.slice(AT.length)) : undefined
}

/** Formats a frame as V8 does. @param {Frame} frame */
const lineOf = ({ text }) => `${AT}${text}`

/**
 * @param {string} line
 * @returns {Frame}
 */
function parse (line) {
  const isAsync = line.startsWith('async ')
  let location = isAsync ? line.slice(6) : line
  let functionName
  const open = openingBracket(location)
  if (open > 0) {
    functionName = location.slice(0, open - 1)
    location = location.slice(open + 1, -1)
  }
  // Eval'd code has the position of the eval: "eval at f (file:1:2), <anonymous>:3:4".
  const columnStart = numberStart(location, location.length)
  const lineStart = columnStart === -1 ? -1 : numberStart(location, columnStart - 1)
  const fileName = lineStart === -1 ? undefined : location.slice(0, lineStart - 1)
  const kind = kindOf(fileName)
  if (functionName !== undefined && isProgram({ kind })) {
    functionName = withoutReceiver(functionName)
    const text = functionName === undefined ? location : `${functionName} (${location})`
    line = isAsync ? `async ${text}` : text
  }
  return {
    text: line,
    functionName,
    fileName,
    lineNumber: lineStart === -1 ? undefined : Number(location.slice(lineStart, columnStart - 1)),
    columnNumber: lineStart === -1 ? undefined : Number(location.slice(columnStart)),
    kind,
    isAsync
  }
}

/**
 * "Timeout.warmUp [as _onTimeout]" -> "warmUp". V8's additions to a function's name describe the receiver of
 * the call, not the code, and V8 omits them once it has optimized the function.
 * @param {string} name
 */
function withoutReceiver (name) {
  if (name === 'Object.<anonymous>') return name // top level of a module
  const bare = withoutAlias(name)
  const isConstructor = bare.startsWith('new ')
  const last = bare.slice(Math.max(isConstructor ? 4 : 0, bare.lastIndexOf('.') + 1))
  // An anonymous function called as a property: Node stores timer callbacks in these properties.
  if (isConstructor) return `new ${last}`
  return last === '<anonymous>' || last === '_onTimeout' || last === '_onImmediate' ? undefined : last
}

/**
 * Returns the index of the bracket around the location, or -1. It matches the last bracket, unless a
 * directory name contains an unpaired bracket.
 * @param {string} text
 */
function openingBracket (text) {
  if (!text.endsWith(')')) return -1
  const start = startOfLastBrackets(text)
  if (start !== -1 && startsLocation(text, start + 1)) return start
  for (let i = text.indexOf(' ('); i !== -1; i = text.indexOf(' (', i + 1)) {
    if (startsLocation(text, i + 2)) return i + 1
  }
  return start
}

/** @param {string} text ends with a bracket @returns {number} index of the matching bracket, or -1 */
function startOfLastBrackets (text) {
  let depth = 0
  for (let i = text.length - 1; i > 0; i--) {
    const code = text.charCodeAt(i)
    if (code === 41) depth++
    else if (code === 40 && --depth === 0) return text.charCodeAt(i - 1) === 32 ? i : -1
  }
  return -1
}

/**
 * Whether an absolute path, a file: URL or eval'd code starts there.
 * @param {string} text
 * @param {number} start
 */
function startsLocation (text, start) {
  const location = text.slice(start)
  return path.isAbsolute(location) || location.startsWith('file:') || location.startsWith('eval at ')
}

/** @param {string | undefined} fileName */
function kindOf (fileName) {
  if (fileName === undefined || fileName.startsWith('node:') || fileName === '<anonymous>') return 'core'
  if (isOwn(fileName)) return 'own'
  return namesInModules(fileName) === undefined ? 'user' : 'module'
}

/** @param {Pick<Frame, 'kind'>} frame */
const isProgram = ({ kind }) => kind === 'user' || kind === 'module'

/** @param {Frame} frame */
const isCore = ({ kind }) => kind === 'core'

/** Whether a frame is a JavaScript built-in such as Promise.then. @param {Frame} frame */
const isBuiltin = ({ fileName, lineNumber }) => fileName === undefined && lineNumber === undefined

const SCOPE = 'runInAsyncScope'

/** Whether a frame enters an async scope: frames below it run in another context. @param {Frame} frame */
const isScope = ({ kind, functionName = '' }) => kind === 'core' && afterLast(functionName, '.') === SCOPE

/** Whether a file belongs to longstack itself. @param {string} fileName */
function isOwn (fileName) {
  return fileName.startsWith(own) || fileName === ownIndex
}

/** Whether a frame is kept in a stack: Node's hook calls are on every stack. @param {Frame} frame */
function isNotHook (frame) {
  return frame.fileName !== 'node:internal/async_hooks' && frame.fileName !== 'node:internal/promise_hooks'
}

/** One captured stack, shared by all contexts with that stack. */
class Stack {
  /** @param {string | Frame[]} content text of joinFrames, newest first, or the frames */
  constructor (content) {
    /** @type {Frame[]} */
    this.frames = typeof content === 'string' ? framesOf(content) : content
    /** its number (numbered-stacks.js), or 0 */
    this.id = 0
    /** whether it has a frame of the program */
    this.program = this.frames.some(isProgram)
    /** another numbered stack with the same hash @type {Stack | undefined} */
    this.next = undefined
  }
}

/** @param {string} text @returns {Frame[]} */
function framesOf (text) {
  return text === '' ? [] : splitFrames(text).map(parseFrame).filter(isNotHook)
}

/**
 * Returns all frames in the text of an error's stack, newest first, including awaiting functions.
 * @param {string} text
 */
const readFrames = (text) => framesOf(frameLines(text, true))

module.exports = {
  RecentMap, Stack, frameIn, isBuiltin, isCore, isOwn, isProgram, isScope, lineOf, parseFrame, readFrames
}
