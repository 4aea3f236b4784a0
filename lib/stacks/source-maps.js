'use strict'

// Maps positions of generated code to positions of the source. With --enable-source-maps Node's own maps come
// first; else the map that a file on disk names is read, and for what none has (ts-node, @babel/register) the
// program's formatter is called (program-mapper.js). Broken, huge and missing maps leave the frame as it is,
// and no file is read twice in vain.

const fs = require('node:fs')
const Module = require('node:module')
const path = require('node:path')
const { fileURLToPath, pathToFileURL } = require('node:url')
const { stateOf } = require('../files')
const { parseFrame } = require('./frames')
const { positionOf } = require('./program-mapper')
const { readSites } = require('./call-sites')
const { ensureHeadroom } = require('./stack-headroom')
const { settings } = require('../settings')

const MAX_BYTES = 64 << 20 // of a source or a map that is read
const MAX_FILES = 5000 // remembered
const MAX_LINES = 2000 // mapped ones remembered
const MAP_KB = 64 // stack needed to read files and maps
const MAPPING = 'sourceMappingURL='
const VERSION = 3
const VLQ = /^[\w+/,;]*$/
const AT = '    at ' // before a frame in a stack that V8 or Node formatted

/**
 * @typedef {import('./frames').Frame} Frame
 * @typedef {{ source: string, line: number, column: number }} Position
 *
 * @typedef {object} SourceMap what is used of module.SourceMap
 * @property {any} payload
 * @property {(line: number, column: number) => object} findEntry of a position from 0
 */

/**
 * Maps of files, whose sources have the names that frames get; undefined: none
 * @type {Map<string, SourceMap | undefined>}
 */
let maps = new Map()

/** Lines as a map of a file mapped them @type {Map<string, string>} */
let mappedLines = new Map()

/** Files that were mapped, by the source that was found @type {Map<string, string>} */
let generatedFiles = new Map()

/** @returns {boolean} whether Node maps stacks itself */
const nodeMaps = () => /** @type {any} */ (process).sourceMapsEnabled === true

/** @param {string} file a path or a file: URL @returns {SourceMap | undefined} */
function mapOf (file) {
  const map = maps.get(file)
  if (map !== undefined || maps.has(file)) return map
  ensureHeadroom(MAP_KB)
  if (maps.size >= MAX_FILES) maps = new Map()
  try {
    maps.set(file, readMap(file.startsWith('file:') ? fileURLToPath(file) : file))
  } catch { // no such file, which may be a name of the program's, or a broken map: not again
    maps.set(file, undefined) // V8 runs this for no termination, after which it is tried again
  }
  return maps.get(file)
}

/** @param {string} file @returns {SourceMap | undefined} @throws where it has none that can be used */
function readMap (file) {
  if (!path.isAbsolute(file)) return undefined
  const code = readFile(file)
  const start = code.lastIndexOf(MAPPING)
  if (start === -1) return undefined
  const url = code.slice(start + MAPPING.length).split(/[\s*'"]/, 1)[0]
  const isInline = url.startsWith('data:')
  let mapFile = file
  if (url.startsWith('file:')) mapFile = fileURLToPath(url)
  else if (!isInline) mapFile = path.resolve(path.dirname(file), decodeURI(url))
  const inlined = isInline ? Buffer.from(url.slice(url.indexOf(',') + 1), 'base64').toString() : undefined
  const payload = JSON.parse((inlined ?? readFile(mapFile)).replace(/^\)]}'[^\n]*\n/, ''))
  if (payload.version !== VERSION) return undefined
  let lastLine = 0
  for (const { map, offset } of payload.sections ?? [{ map: payload, offset: { line: 0 } }]) {
    if (!VLQ.test(map.mappings) || offset.line < lastLine) return undefined
    lastLine = offset.line
    const rename = (/** @type {string} */ source) => nameOf(source, map.sourceRoot, mapFile)
    map.sources = map.sources.map(rename)
    map.sourceRoot = ''
  }
  return new Module.SourceMap(payload)
}

/** @param {string} file @throws where it is no file, but a directory or pipe, or too large */
function readFile (file) {
  const stats = stateOf(file)
  if (!stats.isFile() || stats.size > MAX_BYTES) throw new Error('cannot be read')
  return fs.readFileSync(file, 'utf8')
}

/**
 * Returns the name of a source as frames have it: sources in a map are URLs, whole ones or relative to it.
 * @param {string} source
 * @param {string} root of the map; maybe empty
 * @param {string} mapFile
 */
function nameOf (source, root, mapFile) {
  const url = root && !isUrl(source) ? `${root.replace(/\/?$/, '/')}${source}` : source
  if (isUrl(url)) return normalize(url)
  const directory = path.dirname(mapFile)
  const name = path.resolve(directory, url)
  // An escape may be part of a file's name, for compilers do not escape at all; an escaped slash is not.
  if (!url.includes('%') || /%(2f|5c|00)/i.test(url) || fs.existsSync(name)) return name
  try {
    return path.resolve(directory, decodeURIComponent(url))
  } catch {
    return name
  }
}

/** @param {string} source */
function isUrl (source) {
  return /^[a-z][a-z\d+.-]+:/i.test(source)
}

/**
 * Returns the path of a file: URL, other URLs as URL prints them, and what is no valid URL unchanged.
 * @param {string} url
 */
function normalize (url) {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : new URL(url).href
  } catch {
    return url
  }
}

/**
 * @param {string} file a path or a file: URL
 * @param {number} line from 1
 * @param {number} column from 1
 * @returns {Position | undefined}
 */
function lookUp (file, line, column) {
  const nodeMap = nodeMaps() ? Module.findSourceMap(file) : undefined
  const isUrlOfFile = file.startsWith('file:')
  return positionIn(nodeMap, line, column, false) ?? positionIn(mapOf(file), line, column, isUrlOfFile)
}

/**
 * @param {SourceMap | undefined} map
 * @param {number} line from 1
 * @param {number} column from 1
 * @param {boolean} isUrlOfFile frames get the URL of a source
 * @returns {Position | undefined}
 */
function positionIn (map, line, column, isUrlOfFile) {
  const entry = /** @type {any} */ (map?.findEntry(line - 1, column - 1))
  if (typeof entry?.originalSource !== 'string' || entry.generatedLine !== line - 1) return undefined
  const name = isUrl(entry.originalSource) ? normalize(entry.originalSource) : entry.originalSource
  const source = isUrlOfFile && path.isAbsolute(name) ? pathToFileURL(name).href : name
  return { source, line: entry.originalLine + 1, column: entry.originalColumn + 1 }
}

/**
 * Returns the text of a source that a frame was mapped to.
 * @param {string} source a path or a URL, as frames name it
 * @returns {string | undefined} undefined where no map holds it
 */
function contentOf (source) {
  const file = generatedFiles.get(source)
  const map = file === undefined ? undefined : nodeMaps() ? Module.findSourceMap(file) : mapOf(file)
  const { sections = [{ map: map?.payload }] } = /** @type {any} */ (map?.payload ?? {})
  const name = normalize(source)
  for (const { map: { sources = [], sourcesContent = [] } = {} } of sections) {
    const index = sources.findIndex((/** @type {string} */ other) => normalize(other) === name)
    const content = sourcesContent?.[index]
    if (typeof content === 'string') return content
  }
  return undefined
}

/** Whether frames were mapped to a source. @param {string} source as frames name it */
const isMapped = (source) => generatedFiles.has(source)

/**
 * Returns the line of a frame with its original position.
 * @param {string} line
 * @param {Frame} frame
 * @returns {string | undefined} undefined where there is no map
 */
function mapLine (line, { fileName, lineNumber, columnNumber, kind }) {
  if (kind === 'core' || fileName === undefined) return undefined
  if (lineNumber === undefined || columnNumber === undefined) return undefined
  const isMappedByNode = nodeMaps()
  if (!isMappedByNode) {
    const mapped = mappedLines.get(line)
    if (mapped !== undefined) return mapped
  }
  try {
    const read = lookUp(fileName, lineNumber, columnNumber)
    const position = read ?? (isMappedByNode ? undefined : positionOf(fileName, lineNumber, columnNumber))
    if (position === undefined) return undefined
    const { source, line: sourceLine, column } = position
    const old = `${fileName}:${lineNumber}:${columnNumber}`
    const start = line.lastIndexOf(old)
    const mapped = `${line.slice(0, start)}${source}:${sourceLine}:${column}${line.slice(start + old.length)}`
    if (generatedFiles.size >= MAX_FILES) generatedFiles = new Map()
    generatedFiles.set(source, fileName)
    if (read !== undefined && !isMappedByNode) {
      if (mappedLines.size >= MAX_LINES) mappedLines = new Map()
      mappedLines.set(line, mapped)
    }
    return mapped
  } catch {
    return undefined // no room, or a file that cannot be read
  }
}

/**
 * Returns a frame at its original position, or the same frame.
 * @param {Frame} frame
 * @returns {Frame}
 */
function mapFrame (frame) {
  const line = mapLine(frame.text, frame)
  return line === undefined ? frame : parseFrame(line)
}

/**
 * Returns the lines of an error's own call sites, mapped where there is a map.
 * @param {NodeJS.CallSite[]} sites
 * @returns {string[]}
 */
function mapSites (sites) {
  const { lines, frames } = readSites(sites)
  return lines.map((line, i) => mapLine(line, frames[i]) ?? line)
}

/**
 * Returns the text of an error's stack with its frames mapped, where Node formatted it and does not map
 * itself.
 * @param {string} stack
 */
function mapText (stack) {
  const lines = []
  for (const line of stack.split('\n')) {
    const frame = line.startsWith(AT) ? parseFrame(line.slice(AT.length)) : undefined
    if (frame !== undefined && frame.kind === 'own' && !settings.options.internals) continue
    const isMappable = frame !== undefined && !nodeMaps()
    const mapped = isMappable ? mapLine(line.slice(AT.length), frame) : undefined
    lines.push(mapped === undefined ? line : `${AT}${mapped}`)
  }
  return lines.join('\n')
}

module.exports = { contentOf, isMapped, mapFrame, mapSites, mapText, nodeMaps }
