'use strict'

// Errors as Node prints them.
//
// Hops in printed errors (errors: 'print'): `.stack` stays V8's, and util.inspect, which console and the REPL
// use, appends the hops. It looks up the method inspect.custom of each value (formatValue in
// lib/internal/util/inspect.js). Errors inherit one that is visible only to Node's inspect. That method calls
// inspect again while the error's `stack` is the long one: of the program's code, only other inspect.custom
// methods run meanwhile. If the program gives all errors such a method (Next.js), that method prints, and the
// hops follow the frames of its text. Node prints fatal errors without that method: see decorateFatal.
//
// On a terminal, a fatal error has colours and the source line of the program's innermost frame. Node reads
// the stack a last time after the last callback of the program (ReportFatalException in src/node_errors.cc
// calls afterInspector in lib/internal/errors.js, which calls util.inspect). Only util.inspect, and only from
// then on, gets the text for a terminal; Node gets the plain text when it appends "Emitted 'error' event". A
// debugger would get no stack, since V8 calls no getter for it on Node 26: nothing is done while the
// inspector listens.

const { inspect, stripVTControlCharacters, types } = require('node:util')
const { isMainThread } = require('node:worker_threads')
const guard = require('../core/guard')
const { attempt } = require('../files')
const { captureText } = require('../stacks/formatter')
const { AT, HOP, hasHops } = require('../stacks/text-scan')
const { createCodeLines, linkFrame, paintHop, paintLines } = require('./paint')
const { fatalStyle } = require('./terminal')

/** property of an error that ends a worker: Node copies own properties of such errors to the parent thread */
const HOPS = '[longstack hops]'
const MAX_ERRORS = 20 // including errors that are properties of others
const MAX_STACK = 200_000 // characters
const CALLERS = 8 // innermost frames searched for util.inspect

/** errors being printed @type {Set<object>} */
const printing = new Set()
let isOn = false
/** inspect.custom method that the program set for all errors, like Next.js @type {unknown} */
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
    return undefined // the stack is full, or a formatter of the program threw
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
    return undefined // the stack is full
  }
}

/** Prints an error with the program's method, and adds its hops. @this {any} @param {any[]} args */
function inspectAsProgram (...args) {
  const text = Reflect.apply(/** @type {Function} */ (ofProgram), this, args)
  if (typeof text !== 'string' || types.isProxy(this) || hasHops(text)) return text
  const stack = guard.run(() => longStackOf(this))
  const hops = stack?.slice(Number(this.stack?.length) + 1) ?? ''
  return hops === '' ? text : withHops(text, hops)
}

/** @param {string} line possibly with colours */
const isFrame = (line) => stripVTControlCharacters(line).startsWith(AT)

/**
 * Inserts hops after the frames of a text, or after its first line if there are none, before the properties.
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
    // Node indents its result for an object, but not strings.
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
    set (value) { // as if the property did not exist
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

/** Lets the parent thread print the hops of an error that ends this thread. @param {unknown} error */
function passToParent (error) {
  if (isMainThread || !isOn || !types.isNativeError(error)) return
  if (process.listenerCount('uncaughtException') > 0) return
  if (process.hasUncaughtExceptionCaptureCallback()) return
  for (const member of errorsIn(error)) {
    const value = longStackOf(member)?.slice(Number(member.stack?.length) + 1)
    if (value !== undefined) Reflect.defineProperty(member, HOPS, { value, configurable: true })
  }
}

/** Returns the hops passed with an error of a worker. @param {object} error */
function passedHops (error) {
  return types.isProxy(error) ? undefined : Object.getOwnPropertyDescriptor(error, HOPS)?.value
}

/**
 * Replaces an error's stack, if that can be undone.
 * @param {Error} error
 * @param {string | undefined} text undefined: no change
 * @returns {() => void} restores the stack
 */
function lengthen (error, text) {
  const slot = Object.getOwnPropertyDescriptor(error, 'stack')
  const isKept = text === undefined || slot === undefined || slot.configurable === false
  if (isKept) return () => {}
  Reflect.defineProperty(error, 'stack', { value: text, enumerable: slot.enumerable, configurable: true })
  return () => { Reflect.defineProperty(error, 'stack', slot) }
}

/**
 * Makes util.inspect print an error, and the errors among its properties, for a terminal. Call this only when
 * Node is certain to print the error and to end the process. Errors that cannot be changed are left alone.
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
    // Node rethrows errors of workers: they are not V8's own errors, and the arrow points at Node's code.
    const hasArrow = found === error && types.isNativeError(found)
    const arrow = !hasArrow ? 'none' : fromPromise ? 'at frame' : 'at throw'
    replaceStack(found, isInspecting, (stack) => {
      const long = stack + hops
      return style && codeLines ? paintFatal(long, found, style, codeLines, arrow) : long
    })
  }
}

/** Whether Node's inspector listens: Node may be built without it, or forbid it. */
const isInspected = () => attempt(() => require('node:inspector').url()) !== undefined

/** Whether util.inspect treats a value as an error. @param {unknown} value @returns {value is Error} */
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
 * @param {number} [callers] number of innermost callers to check
 */
function isReadByInspect (above, callers = CALLERS) {
  return captureText(above, callers).includes('(node:internal/util/inspect:')
}

/**
 * @param {string} stack
 * @param {Error} error
 * @param {import('./terminal').Style} style
 * @param {ReturnType<typeof createCodeLines>} codeLines
 * @param {'none' | 'at frame' | 'at throw'} arrow position of the source line that Node prints above
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
 * Whether Node's own arrow is at the innermost frame, if that is the program's. For a rejection, the arrow is
 * where the error was created; for a thrown error, where it was thrown. Both are the same unless the line
 * only creates the error.
 * @param {string[]} code
 * @param {'at frame' | 'at throw'} arrow
 */
function isArrowAt ([line = ''], arrow) {
  return arrow === 'at frame' || /\bthrow\b/.test(line) || !/\bnew\b|Error\(/.test(line)
}

/**
 * Node dims its own frames (formatError in lib/internal/util/inspect.js). It recognizes a frame by the start
 * of its line.
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
