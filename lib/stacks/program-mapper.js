'use strict'

// Maps positions of hops with the program's own formatter. Jest, Vitest, tsx and others keep the source maps
// of their compiled code private, so only their formatter can map it. longstack calls a formatter, with a
// synthetic call site, if it has mapped an error's frames or is known to map: an error may have no frame in a
// compiled file. Only Node calls any other formatter.

const { frameIn, parseFrame } = require('./frames')
const { readSites } = require('./call-sites')
const { AT } = require('./text-scan')

const MAX_POSITIONS = 2000 // cached
const FRESH_MS = 5000 // lifetime of cached positions: files are recompiled

/**
 * @typedef {import('./frames').Frame} Frame
 * @typedef {{ source: string, line: number, column: number }} Position
 */

/** formatters that have mapped, or are known to map @type {WeakSet<Function>} */
const mappers = new WeakSet()
/**
 * the mapper that formatted last; weak because its realm may be collected
 * @type {WeakRef<Function> | undefined}
 */
let present
/** mapped positions; undefined if unchanged @type {Map<string, Position | undefined>} */
let positions = new Map()
let freshUntil = 0
/** changes when another formatter maps, or none does any longer */
let version = 0

/**
 * Notes whether a formatter mapped call sites.
 * @param {Function} formatter
 * @param {NodeJS.CallSite[]} sites
 * @param {string} text
 */
function observeFormatter (formatter, sites, text) {
  try {
    if (!mappers.has(formatter)) {
      if (!isMapped(readSites(sites).frames, text)) return forget()
      mappers.add(formatter)
    }
    usePositionsOf(formatter)
  } catch {} // no room on the stack
}

/** @param {Function} formatter */
function usePositionsOf (formatter) {
  const time = performance.now()
  const isPresent = present?.deref() === formatter
  if (isPresent && time < freshUntil) return
  positions = new Map()
  freshUntil = time + FRESH_MS
  if (isPresent) return
  version++
  present = new WeakRef(formatter)
}

/**
 * Notes whether the formatter in force is known to map: that of source-map-support or Vite's module runner,
 * by the function both call; that of Jest 30 (packages/jest-source-map/src/SourceMapSupport.ts); or Babel's,
 * which passes frames on to the previous one (packages/babel-core/src/errors/rewrite-stack-trace.ts).
 * @param {Function} formatter
 */
function noteInstalled (formatter) {
  const name = Object.getOwnPropertyDescriptor(formatter, 'name')?.value
  const isKnown = ['bound formatStackTrace', 'stackTraceRewriter'].includes(name) ||
    /\bwrapCallSite\(/.test(Function.prototype.toString.call(formatter))
  if (!isKnown) return
  mappers.add(formatter)
  usePositionsOf(formatter)
}

/** Whether a text has the same frames at other positions. @param {Frame[]} frames @param {string} text */
function isMapped (frames, text) {
  const mapped = text.split('\n').map(frameIn).filter((frame) => frame !== undefined)
  if (mapped.length !== frames.length) return false
  let isMoved = false
  for (const [i, { fileName, lineNumber, columnNumber }] of mapped.entries()) {
    const frame = frames[i]
    if ((lineNumber === undefined) !== (frame.lineNumber === undefined)) return false
    if (frame.kind === 'core' && fileName !== frame.fileName) return false
    isMoved ||= fileName !== frame.fileName
    isMoved ||= lineNumber !== frame.lineNumber || columnNumber !== frame.columnNumber
  }
  return isMoved
}

/**
 * The part of a call site that formatters need. Its methods are on the prototype: formatters copy them from
 * there.
 */
class MappedSite {
  /** @param {string} file @param {number} line @param {number} column */
  constructor (file, line, column) {
    this.file = file
    this.line = line
    this.column = column
  }

  getFileName () { return this.file }
  getScriptNameOrSourceURL () { return this.file }
  getLineNumber () { return this.line }
  getColumnNumber () { return this.column }
  getEnclosingLineNumber () { return this.line }
  getEnclosingColumnNumber () { return this.column }
  toString () { return `${this.file}:${this.line}:${this.column}` }
}

/** Return values of a call site's other methods. @type {Array<[methods: string, answer: unknown]>} */
const answers = [
  ['getFunctionName getTypeName getMethodName getPromiseIndex', null],
  ['getEvalOrigin getThis getFunction', undefined],
  ['isNative isEval isConstructor isAsync isPromiseAll', false],
  ['isToplevel', true],
  ['getPosition', 0]
]
for (const [methods, answer] of answers) {
  const method = { value: () => answer, writable: true, enumerable: false, configurable: true }
  for (const name of methods.split(' ')) Object.defineProperty(MappedSite.prototype, name, method)
}

/**
 * Returns the position that the program's formatter prints for a position in compiled code.
 * @param {string} file
 * @param {number} line from 1
 * @param {number} column from 1
 * @returns {Position | undefined} undefined if it is unchanged, or no formatter maps
 */
function positionOf (file, line, column) {
  const formatter = present?.deref()
  if (formatter === undefined) return undefined
  const key = `${file}:${line}:${column}`
  if (positions.has(key)) return positions.get(key)
  if (positions.size >= MAX_POSITIONS) positions = new Map()
  positions.set(key, undefined) // holds even if the formatter throws
  const error = { name: 'Error', message: '', stack: '' }
  const text = formatter.call(Error, error, [new MappedSite(file, line, column)])
  if (typeof text !== 'string') return undefined
  const printed = text.slice(text.lastIndexOf(`\n${AT}`) + 1 + AT.length)
  const { fileName, lineNumber, columnNumber } = parseFrame(printed)
  if (fileName === undefined || lineNumber === undefined || columnNumber === undefined) return undefined
  if (fileName === file && lineNumber === line && columnNumber === column) return undefined
  const position = { source: fileName, line: lineNumber, column: columnNumber }
  positions.set(key, position)
  return position
}

/** Notes that another formatter is in force, or none. */
function forget () {
  if (present === undefined) return
  present = undefined
  version++
}

/** Returns a number that changes whenever mapped positions may change. */
const versionOfMaps = () => version

module.exports = { forget, noteInstalled, observeFormatter, positionOf, versionOfMaps }
