'use strict'

// Positions of generated code to positions of the source a person wrote. Under --enable-source-maps Node's own
// maps are used; else source-map-support, loaded only once a file is met that names a map. Broken, huge and
// missing maps leave the frame as it is, and no file is read twice for nothing.

const fs = require('node:fs')
const Module = require('node:module')
const path = require('node:path')
const { fileURLToPath } = require('node:url')
const { parseFrame } = require('./frames')

const LARGEST = 64 << 20 // bytes of a source or a map worth reading
const FILES = 5000 // remembered

/** @typedef {import('./frames').Frame} Frame */

/** Files that name a map which may be read. @type {Map<string, boolean>} */
let mapped = new Map()

/** @type {typeof import('source-map-support') | undefined} */
let support

/** @returns {boolean} Node maps stacks itself */
function nodeMaps () {
  return /** @type {any} */ (process).sourceMapsEnabled === true
}

/** @param {string} file @returns {boolean} */
function hasMap (file) {
  const known = mapped.get(file)
  if (known !== undefined) return known
  if (mapped.size >= FILES) mapped = new Map()
  let found = false
  try {
    found = looksMapped(file.startsWith('file:') ? fileURLToPath(file) : file)
  } catch {}
  mapped.set(file, found)
  return found
}

/** @param {string} file */
function looksMapped (file) {
  if (!path.isAbsolute(file) || fs.statSync(file).size > LARGEST) return false
  const source = fs.readFileSync(file, 'utf8')
  const at = source.lastIndexOf('sourceMappingURL=')
  if (at === -1) return false
  const url = source.slice(at + 'sourceMappingURL='.length).split(/[\s*'"]/, 1)[0]
  if (url.startsWith('data:')) return url.length <= LARGEST
  const map = url.startsWith('file:') ? fileURLToPath(url) : path.resolve(path.dirname(file), decodeURI(url))
  return fs.statSync(map).size <= LARGEST
}

/**
 * @param {string} file
 * @param {number} line from 1
 * @param {number} column from 1
 * @returns {{ source: string, line: number, column: number, name?: string } | undefined}
 */
function lookUp (file, line, column) {
  if (file.startsWith('node:')) return undefined
  try {
    if (nodeMaps()) {
      const entry = /** @type {any} */ (Module.findSourceMap(file)?.findEntry(line - 1, column - 1))
      if (typeof entry?.originalSource !== 'string') return undefined
      const source = entry.originalSource.startsWith('file:') ? fileURLToPath(entry.originalSource) : entry.originalSource
      return { source, line: entry.originalLine + 1, column: entry.originalColumn + 1 }
    }
    if (!hasMap(file)) return undefined
    support ??= /** @type {typeof import('source-map-support')} */ (require('source-map-support'))
    const position = support.mapSourcePosition({ source: file, line, column: column - 1 })
    if (position.source === file || position.line === null) return undefined
    return { source: position.source, line: position.line, column: position.column + 1 }
  } catch {
    mapped.set(file, false)
    return undefined
  }
}

/**
 * A frame at its original position, or the same frame.
 * @param {Frame} frame
 * @returns {Frame}
 */
function mapFrame (frame) {
  const { fileName, lineNumber, columnNumber } = frame
  if (fileName === undefined || lineNumber === undefined || columnNumber === undefined || frame.kind === 'core') return frame
  const position = lookUp(fileName, lineNumber, columnNumber)
  if (position === undefined) return frame
  const old = `${fileName}:${lineNumber}:${columnNumber}`
  const at = frame.text.lastIndexOf(old)
  const place = `${position.source}:${position.line}:${position.column}`
  return parseFrame(frame.text.slice(0, at) + place + frame.text.slice(at + old.length))
}

/**
 * The lines of an error's own call sites, mapped, where at least one has a map.
 * @param {NodeJS.CallSite[]} sites
 * @returns {string[] | undefined}
 */
function mapSites (sites) {
  if (nodeMaps()) return undefined
  let changed = false
  const lines = sites.map((site) => {
    const frame = parseFrame(String(site))
    const result = mapFrame(frame)
    if (result !== frame) changed = true
    return result.text
  })
  return changed ? lines : undefined
}

module.exports = { mapFrame, mapSites }
