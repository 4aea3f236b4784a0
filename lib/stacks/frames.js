'use strict'

// Stacks as text, exactly as V8 prints them, and the same read as data. The text is the identity of a stack:
// equal text is one Stack. Frames are parsed when they are first needed.

const path = require('node:path')
const { isDigitCode, insideModules, withoutAlias } = require('./text-scan')

const MAX_FRAMES = 2000 // remembered by their text
const MAX_LINE = 1000 // characters of a line that is remembered
const MAX_STACKS = 200 // remembered by a reader
const MAX_STACK = 8000 // characters of a stack that is remembered
const STACK_BYTES = 120 // about, of an entry in a table, without its text

/**
 * @typedef {object} Frame shared by all that have its line: never changed
 * @property {string} text the line as V8 prints it, without "    at "
 * @property {string | undefined} functionName
 * @property {string | undefined} fileName a path, a file: URL, a node: module, or undefined for built-in code
 * @property {number | undefined} lineNumber from 1
 * @property {number | undefined} columnNumber from 1
 * @property {'user' | 'module' | 'core' | 'own'} kind `module`: below node_modules; `own`: longstack itself
 * @property {boolean} isAsync an awaiting function that V8 knows
 */

const lib = path.dirname(__dirname)
const own = `${lib}${path.sep}`
const ownIndex = `${path.dirname(lib)}${path.sep}index.js`

/** @type {Map<string, Frame>} */
let framesByLine = new Map()

/**
 * Parses a frame, or returns the one that was parsed from the same line before.
 * @param {string} line a frame's line without "    at "
 * @returns {Frame}
 */
function parseFrame (line) {
  let frame = framesByLine.get(line)
  if (frame !== undefined) return frame
  if (line.length > MAX_LINE) return parse(line)
  line = ` ${line}`.slice(1) // a copy: a slice keeps its whole text (V8's SlicedString, src/objects/string.h)
  frame = parse(line)
  if (framesByLine.size >= MAX_FRAMES) framesByLine = new Map()
  framesByLine.set(line, frame)
  return frame
}

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
  // In eval'd code the position is that of the eval: "eval at f (file:1:2), <anonymous>:3:4".
  const columnStart = numberStart(location, location.length)
  const lineStart = columnStart === -1 ? -1 : numberStart(location, columnStart - 1)
  const fileName = lineStart === -1 ? undefined : location.slice(0, lineStart - 1)
  const kind = kindOf(fileName)
  if (functionName !== undefined && (kind === 'user' || kind === 'module')) {
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
 * Returns the start of the number before `end` that follows a colon, or -1.
 * @param {string} text
 * @param {number} end
 */
function numberStart (text, end) {
  let start = end
  while (start > 0 && isDigitCode(text.charCodeAt(start - 1))) start--
  return start < end && start > 0 && text[start - 1] === ':' ? start : -1
}

/**
 * "Timeout.warmUp [as _onTimeout]" -> "warmUp". What V8 puts around a function's name describes the object on
 * which it was called, not the code, and V8 leaves it out once it has optimized the function.
 * @param {string} name
 */
function withoutReceiver (name) {
  if (name === 'Object.<anonymous>') return name // the top of a module
  const bare = withoutAlias(name)
  const isConstructor = bare.startsWith('new ')
  const last = bare.slice(Math.max(isConstructor ? 4 : 0, bare.lastIndexOf('.') + 1))
  // A function without a name, called as a property: Node stores the callbacks of timers in these.
  if (isConstructor) return `new ${last}`
  return last === '<anonymous>' || last === '_onTimeout' || last === '_onImmediate' ? undefined : last
}

/** Returns the index of the bracket that the last one closes, or -1. @param {string} text */
function openingBracket (text) {
  if (!text.endsWith(')')) return -1
  let depth = 0
  for (let i = text.length - 1; i > 0; i--) {
    const code = text.charCodeAt(i)
    if (code === 41) depth++
    else if (code === 40 && --depth === 0) return text.charCodeAt(i - 1) === 32 ? i : -1
  }
  return -1
}

/** @param {string | undefined} fileName */
function kindOf (fileName) {
  if (fileName === undefined || fileName.startsWith('node:') || fileName === '<anonymous>') return 'core'
  if (isOwn(fileName)) return 'own'
  return insideModules(fileName) === -1 ? 'user' : 'module'
}

/** Whether a file is one of longstack itself. @param {string} fileName */
function isOwn (fileName) {
  return fileName.startsWith(own) || fileName === ownIndex
}

/** Whether a frame belongs to a stack: Node's calls of hooks are on all of them. @param {Frame} frame */
function isNotHook (frame) {
  return frame.fileName !== 'node:internal/async_hooks' && frame.fileName !== 'node:internal/promise_hooks'
}

/** One captured stack, shared by every context that has it. */
class Stack {
  /** @param {string} text lines without "    at ", newest first */
  constructor (text) {
    this.text = text
    /** its number, see numbered-stacks.js; 0: none */
    this.id = 0
    /** @type {Frame[] | undefined} */
    this.parsed = undefined
    /** @type {boolean | undefined} */
    this.hasProgramFrame = undefined
  }

  /** Whether some frame is the program's. */
  get program () {
    this.hasProgramFrame ??= this.frames.some((frame) => frame.kind === 'user' || frame.kind === 'module')
    return this.hasProgramFrame
  }

  /** @returns {Frame[]} */
  get frames () {
    this.parsed ??= this.text === '' ? [] : this.text.split('\n').map(parseFrame).filter(isNotHook)
    return this.parsed
  }
}

/**
 * Creates a table in which equal stacks are one. Past its budget it starts again: sharing is lost, no stack
 * is.
 */
function createStackTable () {
  /** @type {Map<string, Stack>} */
  let table = new Map()
  let bytes = 0

  return {
    /** @param {string} text @param {number} budget in bytes @returns {Stack} */
    intern (text, budget) {
      let stack = table.get(text)
      if (stack !== undefined) return stack
      if (bytes > budget) {
        table = new Map()
        bytes = 0
      }
      stack = new Stack(text)
      table.set(text, stack)
      bytes += text.length + STACK_BYTES
      return stack
    },
    size: () => table.size,
    bytes: () => bytes
  }
}

/**
 * Returns the lines of frames in the text of an error's stack.
 * @param {string} text
 * @param {boolean} isWithAwaiting also the functions that V8 knows to await the running one
 */
function frameLines (text, isWithAwaiting) {
  const lines = []
  for (const line of text.split('\n')) {
    if (!line.startsWith('    at ')) continue
    if (isWithAwaiting || !line.startsWith('async ', 7)) lines.push(line.slice(7))
  }
  return lines.join('\n')
}

/** Creates a reader that remembers the frames of stacks: most recur. */
function createStackReader () {
  /** @type {Map<string, Frame[]>} */
  let framesByText = new Map()

  /**
   * Returns all frames in the text of an error's stack, newest first, those of awaiting functions included.
   * @param {string} text
   * @returns {Frame[]} shared: never changed
   */
  return (text) => {
    let frames = framesByText.get(text)
    if (frames !== undefined) return frames
    frames = new Stack(frameLines(text, true)).frames
    if (text.length <= MAX_STACK) {
      if (framesByText.size >= MAX_STACKS) framesByText = new Map()
      framesByText.set(text, frames)
    }
    return frames
  }
}

module.exports = { Stack, parseFrame, createStackReader, createStackTable, frameLines, isOwn }
