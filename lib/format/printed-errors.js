'use strict'

// What Node prints of errors.
//
// Hops where people read them (errors: 'print'): `.stack` stays V8's, and util.inspect, by which console and
// the REPL print, appends the hops. It asks each value for a method inspect.custom (formatValue in
// lib/internal/util/inspect.js): errors inherit one, which is there for Node's inspect only. That method has
// inspect print the error once more, while its `stack` is the long one: no code of the program but other
// methods inspect.custom runs meanwhile. Where the program gives all errors such a method (Next.js), that one
// prints, and hops go behind the frames of its text. Node itself prints errors without that method:
// decorateFatal.
//
// An error that ends the process has colours and the line of source at the innermost frame of the program on
// a terminal. Node reads the stack a last time after the last callback of the program (ReportFatalException
// in src/node_errors.cc calls afterInspector in lib/internal/errors.js, which calls util.inspect). Only
// util.inspect, and only from then on, gets the text for a terminal: Node gets the plain one where it appends
// "Emitted 'error' event". A debugger would get none, since V8 calls no getter for it on Node 26: nothing is
// done while the inspector listens.

const { inspect, stripVTControlCharacters, types } = require('node:util')
const { isMainThread } = require('node:worker_threads')
const guard = require('../core/guard')
const { attempt } = require('../files')
const { captureText } = require('../stacks/formatter')
const { AT, HOP, hasHops } = require('../stacks/text-scan')
const { createCodeLines, linkFrame, paintHop, paintLines } = require('./paint')
const { fatalStyle } = require('./terminal')

/** of an error that ends a worker: Node copies the own properties of these for the parent thread */
const HOPS = '[longstack hops]'
const MAX_ERRORS = 20 // with the errors that are properties of others
const MAX_STACK = 200_000 // characters
const CALLERS = 8 // frames in which util.inspect has to be

/** errors that are printed now @type {Set<object>} */
const printing = new Set()
let isOn = false
/** the method that the program has given all errors, as Next.js does @type {unknown} */
let ofProgram

/** Returns the text of an error with its hops. @param {Error} error @returns {string | undefined} */
function longStackOf (error) {
  if (!isOn) return undefined
  try {
    const { stack } = error
    if (typeof stack !== 'string' || hasHops(stack)) return undefined
    const hops = passedHops(error) ?? require('../attribution/error-hops').hopsText(error)
    return typeof hops === 'string' && hops !== '' ? `${stack}\n${hops}` : undefined
  } catch {
    return undefined // a full stack; a formatter of the program's that throws
  }
}

/** @this {object} @returns {Function | undefined} */
function get () {
  try {
    const theirs = /** @type {Function | undefined} */ (ofProgram)
    if (printing.has(this)) return theirs
    if (!types.isNativeError(this) && passedHops(this) === undefined) return theirs
    if (!guard.run(() => isReadByInspect(get, 1))) return theirs
    return typeof theirs === 'function' ? inspectAsProgram : inspectError
  } catch {
    return undefined // a full stack
  }
}

/** Prints an error as the program does, with its hops. @this {any} @param {any[]} args */
function inspectAsProgram (...args) {
  const text = Reflect.apply(/** @type {Function} */ (ofProgram), this, args)
  if (typeof text !== 'string' || types.isProxy(this) || hasHops(text)) return text
  const stack = guard.run(() => longStackOf(this))
  const hops = stack?.slice(Number(this.stack?.length) + 1) ?? ''
  return hops === '' ? text : withHops(text, hops)
}

/** @param {string} line that may have colours */
const isFrame = (line) => stripVTControlCharacters(line).startsWith(AT)

/**
 * Puts hops behind the frames of a text, or behind its first line, and before the properties.
 * @param {string} text
 * @param {string} hops
 */
function withHops (text, hops) {
  const lines = text.split('\n')
  let end = lines.findIndex(isFrame)
  if (end === -1) end = 0
  else while (end + 1 < lines.length && isFrame(lines[end + 1])) end++
  const hasProperties = lines[end].endsWith(' {')
  const last = hasProperties ? lines[end].slice(0, -' {'.length) : lines[end]
  const printed = [...lines.slice(0, end), last, hops].join('\n') + (hasProperties ? ' {' : '')
  return [printed, ...lines.slice(end + 1)].join('\n')
}

/** @this {any} @param {number | null} depth @param {import('node:util').InspectOptions} options */
function inspectError (depth, options) {
  if (types.isProxy(this)) return this
  let restore = () => {}
  try {
    printing.add(this)
    restore = lengthen(this, guard.run(() => longStackOf(this)))
    const text = inspect(this, { ...options, depth })
    // Node indents what it makes of an object, not strings.
    return { [inspect.custom]: () => text }
  } finally {
    restore()
    printing.delete(this)
  }
}

function enable () {
  isOn = true
  if (Object.hasOwn(Error.prototype, inspect.custom)) return
  Reflect.defineProperty(Error.prototype, inspect.custom, {
    get,
    set (value) { // as if nothing was there
      if (this === Error.prototype) {
        ofProgram = value
        return
      }
      Reflect.defineProperty(this, inspect.custom, {
        value, writable: true, enumerable: true, configurable: true
      })
    },
    enumerable: false,
    configurable: true
  })
}

function disable () {
  isOn = false
  const present = Object.getOwnPropertyDescriptor(Error.prototype, inspect.custom)
  if (present?.get !== get) return
  Reflect.deleteProperty(Error.prototype, inspect.custom)
  if (ofProgram !== undefined) Reflect.set(Error.prototype, inspect.custom, ofProgram)
  ofProgram = undefined
}

/** Has the parent thread print the hops of an error that ends this one. @param {unknown} error */
function passToParent (error) {
  if (isMainThread || !isOn || !types.isNativeError(error)) return
  if (process.listenerCount('uncaughtException') > 0) return
  if (process.hasUncaughtExceptionCaptureCallback()) return
  for (const member of errorsIn(error)) {
    const value = longStackOf(member)?.slice(Number(member.stack?.length) + 1)
    if (value !== undefined) Reflect.defineProperty(member, HOPS, { value, configurable: true })
  }
}

/** Returns the hops that came with an error of a worker. @param {object} error */
function passedHops (error) {
  return types.isProxy(error) ? undefined : Object.getOwnPropertyDescriptor(error, HOPS)?.value
}

/**
 * Puts a text in the place of an error's stack, if that can be undone.
 * @param {Error} error
 * @param {string | undefined} text undefined: it stays
 * @returns {() => void} puts the stack back
 */
function lengthen (error, text) {
  const slot = Object.getOwnPropertyDescriptor(error, 'stack')
  const isKept = text === undefined || slot === undefined || slot.configurable === false
  if (isKept) return () => {}
  Reflect.defineProperty(error, 'stack', { value: text, enumerable: slot.enumerable, configurable: true })
  return () => { Reflect.defineProperty(error, 'stack', slot) }
}

/**
 * Has util.inspect print an error, and the errors that it has as properties, for a terminal. To be called
 * when Node is certain to print the error and to end the process. Leaves alone what it cannot change.
 * @param {unknown} error
 * @param {boolean} fromPromise
 */
function decorateFatal (error, fromPromise) {
  if (!isMainThread || !isError(error) || isInspected()) return
  const style = fatalStyle()
  if (style === undefined && !isOn) return
  const codeLines = style && createCodeLines(style)
  const isInspecting = () => isReadByInspect(isInspecting)
  for (const found of errorsIn(error)) {
    const hops = longStackOf(found)?.slice(found.stack?.length) ?? ''
    // Node throws the errors of workers again: they are none of V8's, and the arrow is at Node's own code.
    const hasArrow = found === error && types.isNativeError(found)
    const arrow = !hasArrow ? 'none' : fromPromise ? 'at frame' : 'at throw'
    replaceStack(found, isInspecting, (stack) => {
      const long = stack + hops
      return style && codeLines ? paintFatal(long, found, style, codeLines, arrow) : long
    })
  }
}

/** Whether Node's inspector listens: a Node may have none, or forbid it. */
const isInspected = () => attempt(() => require('node:inspector').url()) !== undefined

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
 * @param {number} [callers] the innermost ones
 */
function isReadByInspect (above, callers = CALLERS) {
  return captureText(above, callers).includes('(node:internal/util/inspect:')
}

/**
 * @param {string} stack
 * @param {Error} error
 * @param {import('./terminal').Style} style
 * @param {ReturnType<typeof createCodeLines>} codeLines
 * @param {'none' | 'at frame' | 'at throw'} arrow the line of source that Node prints above
 */
function paintFatal (stack, error, style, codeLines, arrow) {
  const message = Object.getOwnPropertyDescriptor(error, 'message')?.value
  const start = typeof message === 'string' ? stack.indexOf(message) + message.length : 0
  const lineStart = stack.indexOf('\n', start)
  if (lineStart === -1) return stack
  const painted = paintLines(stack.slice(lineStart + 1).split('\n'), style, codeLines, {
    paintText: (line, colours) => line.startsWith(HOP) ? paintHop(line, colours) : line,
    paintFrame: paintFatalFrame,
    hasCode: (code, index) => index > 0 || arrow === 'none' || !isArrowAt(code, arrow)
  })
  return stack.slice(0, lineStart + 1) + painted
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
function paintFatalFrame (line, frame, { colours, link }) {
  if (colours === undefined || frame.kind === 'core') return line
  const text = linkFrame(line.slice(AT.length), frame, link)
  return AT + (frame.kind === 'user' ? colours.bold(text) : colours.dim(text))
}

module.exports = { decorateFatal, disable, enable, passToParent }
