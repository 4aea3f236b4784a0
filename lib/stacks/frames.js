'use strict'

// Stacks as text, exactly as V8 prints them, and the same read as data. The text is the identity of a stack:
// equal text is one Stack. Frames are read from it only when somebody asks.

const path = require('node:path')

/**
 * @typedef {object} Frame
 * @property {string} text the line as V8 prints it, without "    at "
 * @property {string | undefined} functionName
 * @property {string | undefined} fileName a path, a file: URL, a node: module, or undefined for built-in code
 * @property {number | undefined} lineNumber from 1
 * @property {number | undefined} columnNumber from 1
 * @property {'user' | 'module' | 'core' | 'own'} kind `module`: below node_modules; `own`: longstack itself
 * @property {boolean} isAsync an awaiting function that V8 knows
 */

const own = path.resolve(__dirname, '..') + path.sep
const ownIndex = path.resolve(__dirname, '..', '..', 'index.js')

const location = /^(.*):(\d+):(\d+)$/s

/**
 * @param {string} line a frame's line without "    at "
 * @returns {Frame}
 */
function parseFrame (line) {
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
  const place = location.exec(rest)
  const fileName = place === null ? undefined : place[1]
  const kind = kindOf(fileName)
  if (functionName !== undefined && (kind === 'user' || kind === 'module')) {
    functionName = withoutReceiver(functionName)
    line = `${isAsync ? 'async ' : ''}${functionName === undefined ? rest : `${functionName} (${rest})`}`
  }
  return {
    text: line,
    functionName,
    fileName,
    lineNumber: place === null ? undefined : Number(place[2]),
    columnNumber: place === null ? undefined : Number(place[3]),
    kind,
    isAsync
  }
}

/**
 * "Timeout.warmUp [as _onTimeout]" → "warmUp". What V8 puts around a function's name tells of the object on which it
 * was called in that moment, not of the code, and V8 leaves it out once it has optimized the function.
 * @param {string} name
 */
function withoutReceiver (name) {
  if (name === 'Object.<anonymous>') return name // the top of a module
  const bare = name.replace(/ \[as [^\]]*\]$/, '')
  const made = bare.startsWith('new ')
  const last = (made ? bare.slice(4) : bare).replace(/^.*\./, '')
  // A function without a name, called as a property: Node keeps the callbacks of timers in these.
  if (/^(<anonymous>|_onTimeout|_onImmediate)$/.test(last) && !made) return undefined
  return made ? `new ${last}` : last
}

/** Finds the bracket that the last one closes. @param {string} text */
function openingBracket (text) {
  if (!text.endsWith(')')) return -1
  let depth = 0
  for (let i = text.length - 1; i > 0; i--) {
    const letter = text[i]
    if (letter === ')') depth++
    else if (letter === '(' && --depth === 0) return text[i - 1] === ' ' ? i : -1
  }
  return -1
}

/** @param {string | undefined} fileName */
function kindOf (fileName) {
  if (fileName === undefined || fileName.startsWith('node:') || fileName === '<anonymous>') return 'core'
  if (isOwn(fileName)) return 'own'
  return /[\\/]node_modules[\\/]/.test(fileName) ? 'module' : 'user'
}

/** Is it a file of longstack itself? @param {string} fileName */
function isOwn (fileName) {
  return fileName.startsWith(own) || fileName === ownIndex
}

/** Node's calls of hooks are on every stack and part of none. @param {Frame} frame */
function notHooks (frame) {
  return frame.fileName !== 'node:internal/async_hooks'
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

module.exports = { Stack, parseFrame, createStackTable, frameLines, isOwn }
