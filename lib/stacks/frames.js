'use strict'

// Stacks as text, exactly as V8 prints them, and the same read as data. The text is the identity of a stack:
// equal text is one Stack. Frames are read from it only when somebody asks.

const path = require('node:path')
const { isDigitCode, insideModules, withoutAlias } = require('./text-scan')

const LINES = 2000 // frames remembered by their text
const LONGEST = 1000 // letters of a line worth remembering
const TEXTS = 200 // whole stacks remembered by a reader
const LONGEST_TEXT = 8000 // letters of one

/**
 * @typedef {object} Frame shared by all who have its line: never changed
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
let known = new Map()

/**
 * Reads a frame, or returns the one that was read from the same line before.
 * @param {string} line a frame's line without "    at "
 * @returns {Frame}
 */
function parseFrame (line) {
  let frame = known.get(line)
  if (frame !== undefined) return frame
  if (line.length > LONGEST) return read(line)
  line = ` ${line}`.slice(1) // a copy: a part keeps its whole text (V8's SlicedString, src/objects/string.h)
  frame = read(line)
  if (known.size >= LINES) known = new Map()
  known.set(line, frame)
  return frame
}

/**
 * @param {string} line
 * @returns {Frame}
 */
function read (line) {
  let rest = line
  const isAsync = rest.startsWith('async ')
  if (isAsync) rest = rest.slice(6)
  let functionName
  const open = openingBracket(rest)
  if (open > 0) {
    functionName = rest.slice(0, open - 1)
    rest = rest.slice(open + 1, -1)
  }
  // In eval'd code the position is that of the eval: "eval at f (file:1:2), <anonymous>:3:4".
  const columnStart = numberStart(rest, rest.length)
  const lineStart = columnStart === -1 ? -1 : numberStart(rest, columnStart - 1)
  const fileName = lineStart === -1 ? undefined : rest.slice(0, lineStart - 1)
  const kind = kindOf(fileName)
  if (functionName !== undefined && (kind === 'user' || kind === 'module')) {
    functionName = withoutReceiver(functionName)
    line = `${isAsync ? 'async ' : ''}${functionName === undefined ? rest : `${functionName} (${rest})`}`
  }
  return {
    text: line,
    functionName,
    fileName,
    lineNumber: lineStart === -1 ? undefined : Number(rest.slice(lineStart, columnStart - 1)),
    columnNumber: lineStart === -1 ? undefined : Number(rest.slice(columnStart)),
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
 * "Timeout.warmUp [as _onTimeout]" -> "warmUp". What V8 puts around a function's name tells of the object on which it
 * was called in that moment, not of the code, and V8 leaves it out once it has optimized the function.
 * @param {string} name
 */
function withoutReceiver (name) {
  if (name === 'Object.<anonymous>') return name // the top of a module
  const bare = withoutAlias(name)
  const made = bare.startsWith('new ')
  const last = bare.slice(Math.max(made ? 4 : 0, bare.lastIndexOf('.') + 1))
  // A function without a name, called as a property: Node keeps the callbacks of timers in these.
  if (!made && (last === '<anonymous>' || last === '_onTimeout' || last === '_onImmediate')) return undefined
  return made ? `new ${last}` : last
}

/** Finds the bracket that the last one closes. @param {string} text */
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

/** Is it a file of longstack itself? @param {string} fileName */
function isOwn (fileName) {
  return fileName.startsWith(own) || fileName === ownIndex
}

/** Node's calls of hooks are on every stack and part of none. @param {Frame} frame */
function notHooks (frame) {
  return frame.fileName !== 'node:internal/async_hooks' && frame.fileName !== 'node:internal/promise_hooks'
}

/** One captured stack, shared by every context that has it. */
class Stack {
  /** @param {string} text lines without "    at ", newest first */
  constructor (text) {
    this.text = text
    /** by which the native engine knows it; 0: it does not */
    this.id = 0
    /** @type {Frame[] | undefined} */
    this.read = undefined
    /** @type {boolean | undefined} */
    this.ofProgram = undefined
  }

  /** Some frame is the program's. */
  get program () {
    this.ofProgram ??= this.frames.some((frame) => frame.kind === 'user' || frame.kind === 'module')
    return this.ofProgram
  }

  /** @returns {Frame[]} */
  get frames () {
    this.read ??= this.text === '' ? [] : this.text.split('\n').map(parseFrame).filter(notHooks)
    return this.read
  }
}

/** The table in which equal stacks are one. Past its budget it starts anew: sharing is lost, no stack is. */
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
      bytes += text.length + 120
      return stack
    },
    size: () => table.size,
    bytes: () => bytes
  }
}

/**
 * The lines of frames in the text of an error's stack.
 * @param {string} text
 * @param {boolean} awaiting also the functions that V8 knows to await the running one
 */
function frameLines (text, awaiting) {
  const lines = []
  for (const line of text.split('\n')) {
    if (line.startsWith('    at ') && (awaiting || !line.startsWith('async ', 7))) lines.push(line.slice(7))
  }
  return lines.join('\n')
}

/** Remembers the frames of stacks that come again and again. */
function createStackReader () {
  /** @type {Map<string, Frame[]>} */
  let read = new Map()

  /**
   * Returns all frames in the text of an error's stack, newest first, those of awaiting functions included.
   * @param {string} text
   * @returns {Frame[]} shared: never changed
   */
  return (text) => {
    let frames = read.get(text)
    if (frames !== undefined) return frames
    frames = new Stack(frameLines(text, true)).frames
    if (text.length <= LONGEST_TEXT) {
      if (read.size >= TEXTS) read = new Map()
      read.set(text, frames)
    }
    return frames
  }
}

module.exports = { Stack, parseFrame, createStackReader, createStackTable, frameLines, isOwn }
