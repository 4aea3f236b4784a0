'use strict'

// A formatter of the program's that maps frames, as test runners set one: Jest, Vitest, tsx and others keep
// the maps of what they compile to themselves, so that only their formatter has them. One that has mapped the
// frames of an error is called for the positions of hops, with a call site made for that; so is one that is
// known to map, for the error may have no frame in a file that was compiled. Any other is called by Node
// alone.

const { frameIn, parseFrame } = require('./frames')
const { readSites } = require('./call-sites')
const { AT } = require('./text-scan')

const MAX_POSITIONS = 2000 // remembered
const FRESH_MS = 5000 // remembered for that long: files are compiled again

/**
 * @typedef {import('./frames').Frame} Frame
 * @typedef {{ source: string, line: number, column: number }} Position
 */

/** those that have mapped, or are known to map @type {WeakSet<Function>} */
const mappers = new WeakSet()
/**
 * the one that formatted last; weak, for it may be of a realm that goes
 * @type {WeakRef<Function> | undefined}
 */
let present
/** what it made of positions; undefined: the same @type {Map<string, Position | undefined>} */
let positions = new Map()
let freshUntil = 0
/** changes when another formatter maps, or none any more */
let version = 0

/**
 * Notes what a formatter made of call sites.
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
 * Notes whether a formatter that is in force is one that maps: that of source-map-support or of Vite's module
 * runner, by the function that both call, that of Jest 30 (packages/jest-source-map/src/SourceMapSupport.ts),
 * or Babel's, which passes frames on to the one before it
 * (packages/babel-core/src/errors/rewrite-stack-trace.ts).
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

/** Whether a text has these frames with other positions. @param {Frame[]} frames @param {string} text */
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
 * A call site as far as formatters need one. Its methods are on the prototype: formatters copy them from
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

/** What the other methods of a call site return. @type {Array<[methods: string, answer: unknown]>} */
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
 * Returns the position that the program's formatter prints for another.
 * @param {string} file
 * @param {number} line from 1
 * @param {number} column from 1
 * @returns {Position | undefined} undefined where it prints the same, or no formatter maps
 */
function positionOf (file, line, column) {
  const formatter = present?.deref()
  if (formatter === undefined) return undefined
  const key = `${file}:${line}:${column}`
  if (positions.has(key)) return positions.get(key)
  if (positions.size >= MAX_POSITIONS) positions = new Map()
  positions.set(key, undefined) // also where the next line throws
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

/** Returns a number that changes when positions may be other ones. */
const versionOfMaps = () => version

module.exports = { forget, noteInstalled, observeFormatter, positionOf, versionOfMaps }
