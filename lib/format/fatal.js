'use strict'

// What Node prints on a terminal of an error that ends the process: hops in colour, and the line of source at
// the innermost frame of the program. Node reads the stack a last time after the last callback of the program
// (ReportFatalException in src/node_errors.cc calls afterInspector in lib/internal/errors.js, which calls
// util.inspect). Only util.inspect, and only from then on, gets the text for a terminal: Node gets the plain
// one where it appends "Emitted 'error' event". A debugger would get none, since V8 calls no getter for it on
// Node 26: nothing is done while the inspector listens.

const { types } = require('node:util')
const { isMainThread } = require('node:worker_threads')
const { captureInto } = require('../stacks/trace-limit')
const { parseFrame } = require('../stacks/frames')
const { createCodeLines } = require('./code-lines')
const { AT, HOP, linkFrame, paintHop } = require('./paint')
const { fatalStyle } = require('./terminal')

const MAX_ERRORS = 20 // with the errors that are properties of others
const MAX_STACK = 200_000 // characters
const CALLERS = 8 // frames in which util.inspect has to be

/** @typedef {(error: Error) => string | undefined} LongStackOf */

/**
 * Has util.inspect print an error, and the errors that it has as properties, for a terminal. To be called
 * when Node is certain to print the error and to end the process. Leaves alone what it cannot change.
 * @param {unknown} error
 * @param {boolean} fromPromise
 * @param {(holder: any) => string} withPlainFormat reads a `stack` with V8's plain format in force
 * @param {LongStackOf} [longStackOf] where `stack` has no hops, and what is printed is to have them
 */
function decorateFatal (error, fromPromise, withPlainFormat, longStackOf) {
  if (!isMainThread || !isError(error) || isInspected()) return
  const style = fatalStyle()
  if (style === undefined && longStackOf === undefined) return
  const codeLines = style && createCodeLines(style)
  const isInspecting = () => isReadByInspect(isInspecting, withPlainFormat)
  for (const found of errorsIn(error)) {
    const hops = longStackOf?.(found)?.slice(found.stack?.length) ?? ''
    // Node throws the errors of workers again: they are none of V8's, and the arrow is at Node's own code.
    const hasArrow = found === error && types.isNativeError(found)
    const arrow = !hasArrow ? 'none' : fromPromise ? 'at frame' : 'at throw'
    replaceStack(found, isInspecting, (stack) => {
      const long = stack + hops
      return style && codeLines ? paintStack(long, found, style, codeLines, arrow) : long
    })
  }
}

/** Whether Node's inspector listens. */
function isInspected () {
  try {
    return require('node:inspector').url() !== undefined
  } catch {
    return false // this Node has none, or forbids it
  }
}

/** Whether util.inspect takes a value for an error. @param {unknown} value @returns {value is Error} */
function isError (value) {
  return types.isNativeError(value) || (!types.isProxy(value) && value instanceof Error)
}

/**
 * Lists an error and those that util.inspect prints with it.
 * @param {Error} error
 */
function errorsIn (error) {
  /** @type {Set<Error>} */
  const errors = new Set([error])
  for (const found of errors) {
    for (const [name, { value, enumerable }] of Object.entries(Object.getOwnPropertyDescriptors(found))) {
      if (!enumerable && name !== 'cause' && name !== 'errors') continue
      const values = Array.isArray(value) && !types.isProxy(value) ? value.slice(0, MAX_ERRORS) : [value]
      for (const item of values) {
        if (isError(item) && errors.size < MAX_ERRORS) errors.add(item)
      }
    }
  }
  return errors
}

/**
 * @param {Error} error
 * @param {() => boolean} isInspecting
 * @param {(stack: string) => string} paintText
 */
function replaceStack (error, isInspecting, paintText) {
  const isReadOnly = Object.getOwnPropertyDescriptor(error, 'stack')?.writable === false
  let stack = /** @type {unknown} */ (error.stack)
  let painted = ''
  if (typeof stack !== 'string') return
  paint()

  function paint () {
    painted = ''
    if (typeof stack === 'string' && stack.length <= MAX_STACK) painted = paintText(stack)
  }

  /** @param {unknown} value */
  function setStack (value) {
    stack = value
    paint()
  }

  Reflect.defineProperty(error, 'stack', {
    get: () => painted !== '' && isInspecting() ? painted : stack,
    set: isReadOnly ? undefined : setStack,
    enumerable: Object.prototype.propertyIsEnumerable.call(error, 'stack'),
    configurable: true
  })
}

/**
 * Whether util.inspect is among the callers.
 * @param {Function} above
 * @param {(holder: any) => string} withPlainFormat
 * @param {number} [callers] the innermost ones
 */
function isReadByInspect (above, withPlainFormat, callers = CALLERS) {
  const holder = /** @type {any} */ ({ __proto__: null })
  captureInto(holder, above, callers)
  return String(withPlainFormat(holder)).includes('(node:internal/util/inspect:')
}

/**
 * @param {string} stack
 * @param {Error} error
 * @param {import('./terminal').Style} style
 * @param {ReturnType<typeof createCodeLines>} codeLines
 * @param {'none' | 'at frame' | 'at throw'} arrow the line of source that Node prints above
 */
function paintStack (stack, error, style, codeLines, arrow) {
  const message = Object.getOwnPropertyDescriptor(error, 'message')?.value
  const start = typeof message === 'string' ? stack.indexOf(message) + message.length : 0
  const [head, ...lines] = stack.slice(start).split('\n')
  const painted = [stack.slice(0, start) + head]
  let isFirst = true
  let needsCode = true
  for (const line of lines) {
    if (!line.startsWith(AT)) {
      isFirst = false
      painted.push(style.colours !== undefined && line.startsWith(HOP) ? paintHop(line, style.colours) : line)
      continue
    }
    const frame = parseFrame(line.slice(AT.length))
    painted.push(paintFrame(line, frame, style))
    if (needsCode && frame.kind === 'user') {
      needsCode = false
      const code = codeLines(frame)
      if (!isFirst || arrow === 'none' || !isArrowAt(code, arrow)) painted.push(...code)
    }
    isFirst = false
  }
  return painted.join('\n')
}

/**
 * Whether Node's own arrow is at the innermost frame, if that is the program's. For a rejection it is the
 * place where the error was made; for a thrown one the place where it was thrown, which is the same unless
 * the line does no more than make it.
 * @param {string[]} code
 * @param {'at frame' | 'at throw'} arrow
 */
function isArrowAt ([line = ''], arrow) {
  return arrow === 'at frame' || /\bthrow\b/.test(line) || !/\bnew\b|Error\(/.test(line)
}

/**
 * Node dims its own frames (formatError in lib/internal/util/inspect.js). It finds a frame by how its line
 * starts.
 * @param {string} line
 * @param {import('../stacks/frames').Frame} frame
 * @param {import('./terminal').Style} style
 */
function paintFrame (line, frame, { colours, link }) {
  if (colours === undefined || frame.kind === 'core') return line
  const text = linkFrame(line.slice(AT.length), frame, link)
  return AT + (frame.kind === 'user' ? colours.bold(text) : colours.dim(text))
}

module.exports = { decorateFatal, errorsIn, isReadByInspect }
