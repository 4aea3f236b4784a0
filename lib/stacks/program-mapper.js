'use strict'

// A formatter of the program's that maps frames, as test runners set one: Jest, Vitest, tsx and others keep the maps of what
// they compile to themselves, so that only their formatter knows them. One that was seen to map the frames of an error is
// asked for the positions of hops, with a call site made for that. What was never seen to map is called by Node alone.

const { parseFrame } = require('./frames')
const { readSites } = require('./call-sites')

const LINES = 2000 // remembered
const FRESH_MS = 5000 // what it made of a line holds for that long: files are compiled anew

/**
 * @typedef {import('./frames').Frame} Frame
 * @typedef {{ source: string, line: number, column: number }} Position
 */

/** those seen to map @type {WeakSet<Function>} */
const mappers = new WeakSet()
/** that which formatted last @type {Function | undefined} */
let present
/** what it made of positions @type {Map<string, Position | undefined>} */
let known = new Map()
let freshUntil = 0
/** another formatter maps, or none any more */
let version = 0

/**
 * Notes what a formatter made of call sites.
 * @param {Function} formatter
 * @param {NodeJS.CallSite[]} sites
 * @param {string} text
 */
function observeFormatter (formatter, sites, text) {
  const isMapper = mappers.has(formatter)
  if (!isMapper) {
    if (!maps(readSites(sites).frames, text)) return forget()
    mappers.add(formatter)
  }
  const now = performance.now()
  if (formatter === present && now < freshUntil) return
  known = new Map()
  if (formatter !== present) version++
  present = formatter
  freshUntil = now + FRESH_MS
}

/** Are these the frames with other positions? @param {Frame[]} frames @param {string} text */
function maps (frames, text) {
  const lines = text.split('\n').filter((line) => line.startsWith('    at '))
  if (lines.length !== frames.length) return false
  let moved = false
  for (let i = 0; i < lines.length; i++) {
    const { fileName, lineNumber, columnNumber } = parseFrame(lines[i].slice('    at '.length))
    const frame = frames[i]
    if ((lineNumber === undefined) !== (frame.lineNumber === undefined)) return false
    if (frame.kind === 'core' && fileName !== frame.fileName) return false
    moved ||= fileName !== frame.fileName || lineNumber !== frame.lineNumber || columnNumber !== frame.columnNumber
  }
  return moved
}

/** A call site as far as a formatter needs one. Its methods are those of a prototype: formatters copy them from there. */
class Site {
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
  getPosition () { return 0 }
  getFunctionName () { return null }
  getTypeName () { return null }
  getMethodName () { return null }
  getEvalOrigin () { return undefined }
  getThis () { return undefined }
  getFunction () { return undefined }
  getPromiseIndex () { return null }
  isNative () { return false }
  isToplevel () { return true }
  isEval () { return false }
  isConstructor () { return false }
  isAsync () { return false }
  isPromiseAll () { return false }
  toString () { return `${this.file}:${this.line}:${this.column}` }
}

/**
 * Returns where the program's formatter says that a position comes from.
 * @param {string} file
 * @param {number} line from 1
 * @param {number} column from 1
 * @returns {Position | undefined} undefined where it says the same, or nobody maps
 */
function positionOf (file, line, column) {
  if (present === undefined) return undefined
  const place = `${file}:${line}:${column}`
  if (known.has(place)) return known.get(place)
  if (known.size >= LINES) known = new Map()
  known.set(place, undefined) // also where the next line throws
  const text = present.call(Error, { name: 'Error', message: '', stack: '' }, [new Site(file, line, column)])
  const frame = typeof text === 'string' ? parseFrame(text.slice(text.lastIndexOf('\n    at ') + '\n    at '.length)) : undefined
  if (frame?.fileName === undefined || frame.lineNumber === undefined || frame.columnNumber === undefined) return undefined
  if (frame.fileName === file && frame.lineNumber === line && frame.columnNumber === column) return undefined
  const position = { source: frame.fileName, line: frame.lineNumber, column: frame.columnNumber }
  known.set(place, position)
  return position
}

/** Another formatter is in force, or none. */
function forget () {
  if (present === undefined) return
  present = undefined
  version++
}

/** Another number once positions may be other ones. */
const versionOfMaps = () => version

module.exports = { forget, observeFormatter, positionOf, versionOfMaps }
