'use strict'

// Positions of generated code to positions of the source a person wrote. Under --enable-source-maps Node's own
// maps come first; else, and where Node has none, source-map-support, loaded only once a file is met that names a
// map. Code that never was on disk (ts-node, @babel/register) is known to the copy of source-map-support that its
// compiler installed; what is unknown there, too, the program's formatter is asked for (mapper.js). Broken, huge and
// missing maps leave the frame as it is, and no file is read twice for nothing.

const fs = require('node:fs')
const Module = require('node:module')
const path = require('node:path')
const { fileURLToPath, pathToFileURL } = require('node:url')
const { parseFrame } = require('./frames')
const { positionOf } = require('./program-mapper')
const { readSites } = require('./call-sites')
const { ensureHeadroom } = require('./stack-headroom')

const LARGEST = 64 << 20 // bytes of a source or a map worth reading
const FILES = 5000 // remembered
const LINES = 2000 // mapped ones remembered
const MAP_KB = 64 // room on the stack for reading files and maps
const AT = '    at ' // before a frame in a stack that V8 or Node formatted

/**
 * @typedef {import('./frames').Frame} Frame
 * @typedef {{ source: string, line: number, column: number }} Position
 *
 * @typedef {object} Support what is used of source-map-support
 * @property {(position: Position) => Position} mapSourcePosition
 * @property {(file: string) => { url: string, map: any } | null} retrieveSourceMap null where there is none
 */

/** Who can map a file; undefined for nobody. @type {Map<string, Support | undefined>} */
let known = new Map()

/** What source-map-support made of lines @type {Map<string, string>} */
let mappedLines = new Map()

/** What is asked for once, by file: see urlsIn. @type {Map<string, Map<string, string>>} */
let urls = new Map()

/** @type {Support | undefined} */
let support

/** @returns {boolean} Node maps stacks itself */
function nodeMaps () {
  return /** @type {any} */ (process).sourceMapsEnabled === true
}

/** @param {string} file a path or a file: URL @returns {Support | undefined} */
function supportFor (file) {
  const found = known.get(file)
  if (found !== undefined || known.has(file)) return found
  ensureHeadroom(MAP_KB)
  if (known.size >= FILES) known = new Map()
  known.set(file, undefined) // also where the next line throws
  const who = find(localOf(file))
  known.set(file, who)
  return who
}

/** @param {string} file a path or a file: URL */
function localOf (file) {
  return file.startsWith('file:') ? fileURLToPath(file) : file
}

/** @param {string} file */
function find (file) {
  if (!path.isAbsolute(file) || !readable(file)) return undefined
  if (namesMap(file)) {
    support ??= /** @type {Support} */ (require('source-map-support'))
    return support
  }
  return copies().find((copy) => copy.retrieveSourceMap(file) !== null)
}

/** A plain file of a bearable size; a directory or a pipe is none. @param {string} file */
function readable (file) {
  const stats = fs.statSync(file)
  return stats.isFile() && stats.size <= LARGEST
}

/** @param {string} file */
function namesMap (file) {
  const source = fs.readFileSync(file, 'utf8')
  const at = source.lastIndexOf('sourceMappingURL=')
  if (at === -1) return false
  const url = source.slice(at + 'sourceMappingURL='.length).split(/[\s*'"]/, 1)[0]
  if (url.startsWith('data:')) return true
  return readable(url.startsWith('file:') ? fileURLToPath(url) : path.resolve(path.dirname(file), decodeURI(url)))
}

/**
 * What a source is called. Sources in a map are URLs; source-map-support takes them for paths: "my%20file.ts" stays as
 * it is, and "webpack://app/a.ts" becomes "/dir/webpack:/app/a.ts".
 * @param {string} source as source-map-support tells it
 * @param {string} file
 * @param {Support} who
 */
function nameOf (source, file, who) {
  if (/[\\/][a-z][\w+.-]+:[\\/]/i.test(source)) {
    const url = urlsIn(file, who).get(source)
    if (url !== undefined) return url
  }
  // An escape may be part of a file's name: compilers do not escape at all. A slash is none in a name.
  if (!source.includes('%') || /%(2f|5c|00)/i.test(source) || fs.existsSync(source)) return source
  const own = commonFolder(source, file) // where the program is may have such names, too
  try {
    return source.slice(0, own) + decodeURIComponent(source.slice(own))
  } catch {
    return source
  }
}

/** How many characters of two paths are the same folders. @param {string} one @param {string} other */
function commonFolder (one, other) {
  let at = 0
  while (at < one.length && one[at] === other[at]) at++
  return Math.max(one.lastIndexOf('/', at - 1), one.lastIndexOf(path.sep, at - 1)) + 1
}

/** Sources that are whole URLs, by what source-map-support makes of them. @param {string} file @param {Support} who */
function urlsIn (file, who) {
  const found = urls.get(file)
  if (found !== undefined) return found
  if (urls.size >= FILES) urls = new Map()
  /** @type {Map<string, string>} */
  const made = new Map()
  urls.set(file, made)
  const { url: place = file, map: given } = who.retrieveSourceMap(file) ?? {}
  const map = typeof given === 'string' ? JSON.parse(given.replace(/^\)]}'[^\n]*\n/, '')) : given
  for (const { sources = [], sourceRoot } of map?.sections?.map((/** @type {any} */ section) => section.map) ?? [map ?? {}]) {
    for (const source of sources) {
      const full = sourceRoot && !isUrl(source) ? `${sourceRoot.replace(/\/?$/, '/')}${source}` : source
      if (isUrl(full)) made.set(path.resolve(path.dirname(place), full), plain(full))
    }
  }
  return made
}

/** @param {string} source */
function isUrl (source) {
  return /^[a-z][a-z\d+.-]+:/i.test(source)
}

/** Of a file its path. What is no valid URL stays as it is written. @param {string} url */
function plain (url) {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : new URL(url).href
  } catch {
    return url
  }
}

/** The copies of source-map-support that the program has loaded. @returns {Support[]} */
function copies () {
  return Object.keys(require.cache)
    .filter((file) => /[\\/]source-map-support[\\/]source-map-support\.js$/.test(file))
    .map((file) => require.cache[file]?.exports)
    .filter((copy) => typeof copy?.mapSourcePosition === 'function' && typeof copy.retrieveSourceMap === 'function')
}

/**
 * @param {string} file a path or a file: URL
 * @param {number} line from 1
 * @param {number} column from 1
 * @returns {Position | undefined}
 */
function lookUp (file, line, column) {
  if (nodeMaps()) {
    const entry = /** @type {any} */ (Module.findSourceMap(file)?.findEntry(line - 1, column - 1))
    if (typeof entry?.originalSource === 'string') {
      const { originalSource, originalLine, originalColumn } = entry
      const source = originalSource.startsWith('file:') ? plain(originalSource) : originalSource
      return { source, line: originalLine + 1, column: originalColumn + 1 }
    }
  }
  const who = supportFor(file)
  if (who === undefined) return undefined
  ensureHeadroom(MAP_KB)
  const module = file.startsWith('file:')
  const local = localOf(file)
  try {
    const position = who.mapSourcePosition({ source: local, line, column: column - 1 })
    if (typeof position.line !== 'number' || (position.source === local && position.line === line)) return undefined
    const name = nameOf(position.source, local, who)
    const source = module && path.isAbsolute(name) ? pathToFileURL(name).href : name
    return { source, line: position.line, column: position.column + 1 }
  } catch {
    known.set(file, undefined) // broken: not again
    return undefined
  }
}

/**
 * The line of a frame with its original position.
 * @param {string} line
 * @param {Frame} frame
 * @returns {string | undefined} undefined where there is no map
 */
function mapLine (line, { fileName, lineNumber, columnNumber, kind }) {
  if (fileName === undefined || lineNumber === undefined || columnNumber === undefined || kind === 'core') return undefined
  const nodes = nodeMaps()
  if (!nodes) {
    const mapped = mappedLines.get(line)
    if (mapped !== undefined) return mapped
  }
  try {
    const isKnown = !nodes && known.get(fileName) === undefined && known.has(fileName) // the rule: it has no map
    const position = isKnown ? undefined : lookUp(fileName, lineNumber, columnNumber)
    const moved = position ?? (nodes ? undefined : positionOf(fileName, lineNumber, columnNumber))
    if (moved === undefined) return undefined
    const { source, line: sourceLine, column } = moved
    const old = `${fileName}:${lineNumber}:${columnNumber}`
    const at = line.lastIndexOf(old)
    const mapped = `${line.slice(0, at)}${source}:${sourceLine}:${column}${line.slice(at + old.length)}`
    if (!nodes && position !== undefined) remember(line, mapped)
    return mapped
  } catch {
    return undefined // no room, or a file that cannot be read
  }
}

/** @param {string} line @param {string} mapped */
function remember (line, mapped) {
  if (mappedLines.size >= LINES) mappedLines = new Map()
  mappedLines.set(line, mapped)
}

/**
 * A frame at its original position, or the same frame.
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
 * Returns the text of an error's stack with its frames mapped, where Node formatted it and does not map itself.
 * @param {string} stack
 * @param {boolean} internals longstack's own frames are shown
 */
function mapText (stack, internals) {
  const lines = []
  for (const line of stack.split('\n')) {
    const frame = line.startsWith(AT) ? parseFrame(line.slice(AT.length)) : undefined
    if (frame !== undefined && frame.kind === 'own' && !internals) continue
    const mapped = frame === undefined || nodeMaps() ? undefined : mapLine(line.slice(AT.length), frame)
    lines.push(mapped === undefined ? line : `${AT}${mapped}`)
  }
  return lines.join('\n')
}

module.exports = { mapFrame, mapSites, mapText, nodeMaps }
