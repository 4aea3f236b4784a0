'use strict'

// Maps positions in generated code to the source. With --enable-source-maps Node's own maps come first;
// otherwise longstack's own source-map-support, loaded with the first file that names a map. Code that was
// never on disk (ts-node, @babel/register) is mapped by the copy that its compiler installed, and as a last
// resort by the program's formatter (program-mapper.js). Frames stay unchanged if a map is broken, huge or
// missing, or if it leads to a source that a package does not ship. No file is read again after a failure.

const fs = require('node:fs')
const Module = require('node:module')
const path = require('node:path')
const { fileURLToPath, pathToFileURL } = require('node:url')
const { attempt, stateOf } = require('../files')
const { settings } = require('../settings')
const { RecentMap, frameIn, parseFrame } = require('./frames')
const { positionOf } = require('./program-mapper')
const { readSites } = require('./call-sites')
const { ensureHeadroom } = require('./stack-headroom')
const { AT, namesInModules } = require('./text-scan')

const MAX_BYTES = 64 << 20 // of a source or map to read
const MAX_FILES = 5000 // cached
const MAX_LINES = 1000 // recently mapped lines to cache
const MAP_KB = 64 // stack needed to read files and maps
const MAPPING = 'sourceMappingURL='
const INLINE = 'inline' // a map inside the file

/**
 * @typedef {import('./frames').Frame} Frame
 * @typedef {{ source: string, line: number, column: number }} Position
 *
 * @typedef {object} Support the part of source-map-support in use
 * @property {(position: Position) => Position} mapSourcePosition
 * @property {(file: string) => { url: string, map: any } | null} retrieveSourceMap null if there is none
 *
 * @typedef {object} Source that a map names
 * @property {string | undefined} url undefined if a path names it
 * @property {boolean} hasContent its text is inside the map
 * @property {string | undefined} file with this text, if a URL names the source
 */

/** Mappers by file; undefined if nothing maps it @type {Map<string, Support | undefined>} */
let supports = new Map()

/** Lines as source-map-support mapped them @type {RecentMap<string>} */
const mappedLines = new RecentMap(MAX_LINES)

/** Generated files by the source they were mapped to @type {RecentMap<string>} */
const generatedFiles = new RecentMap(MAX_FILES)

/** Sources by file: see sourcesIn. @type {RecentMap<Map<string, Source>>} */
const sourcesByFile = new RecentMap(MAX_FILES)

/** Whether a source can be read, by the generated file and the source's name @type {RecentMap<boolean>} */
const readable = new RecentMap(MAX_FILES)

/** @type {Support | undefined} */
let ownSupport

/** @returns {boolean} whether Node maps stacks itself */
const nodeMaps = () => /** @type {any} */ (process).sourceMapsEnabled === true

/** @param {string} file a path or a file: URL @returns {Support | undefined} */
function supportFor (file) {
  const support = supports.get(file)
  if (support !== undefined || supports.has(file)) return support
  ensureHeadroom(MAP_KB)
  if (supports.size >= MAX_FILES) supports = new Map()
  // The program may have invented the name: no file is cached as undefined, unless V8 terminates this code
  supports.set(file, attempt(() => find(pathOf(file))))
  return supports.get(file)
}

/** @param {string} file a path or a file: URL */
function pathOf (file) {
  return file.startsWith('file:') ? fileURLToPath(file) : file
}

/** @param {string} file @returns {Support | undefined} */
function find (file) {
  if (!path.isAbsolute(file) || !isReadable(file)) return undefined
  const map = findMap(file)
  if (map === INLINE || map?.isLiteral) {
    ownSupport ??= /** @type {Support} */ (require('source-map-support'))
    return ownSupport
  }
  if (map !== undefined) return createReader(file, map.path)
  return copies().find((copy) => copy.retrieveSourceMap(file) !== null)
}

/** Whether a path is a file (no directory or pipe) that is not too large. @param {string} file */
function isReadable (file) {
  const stats = stateOf(file)
  return stats.isFile() && stats.size <= MAX_BYTES
}

/**
 * Finds the map that a file names.
 * @param {string} file
 * @returns {typeof INLINE | { path: string, isLiteral: boolean } | undefined} isLiteral: the URL is the path
 */
function findMap (file) {
  const source = fs.readFileSync(file, 'utf8')
  const start = source.lastIndexOf(MAPPING)
  if (start === -1) return undefined
  const url = source.slice(start + MAPPING.length).split(/[\s*'"]/, 1)[0]
  if (url.startsWith('data:')) return INLINE
  const directory = path.dirname(file)
  const literal = path.resolve(directory, url)
  if (attempt(() => isReadable(literal))) return { path: literal, isLiteral: true }
  const isUrlOfFile = url.startsWith('file:')
  const decoded = isUrlOfFile ? fileURLToPath(url) : path.resolve(directory, decodeURIComponent(url))
  return isReadable(decoded) ? { path: decoded, isLiteral: false } : undefined
}

/**
 * Creates a reader for a map with escapes in its URL (Turbopack), which source-map-support treats as part of
 * the file name.
 * @param {string} file
 * @param {string} mapFile
 * @returns {Support}
 */
function createReader (file, mapFile) {
  const map = JSON.parse(textOfMap(fs.readFileSync(mapFile, 'utf8')))
  const reader = new Module.SourceMap(map)
  return {
    retrieveSourceMap: (name) => name === file ? { url: mapFile, map } : null,
    mapSourcePosition (position) {
      const entry = /** @type {any} */ (reader.findEntry(position.line - 1, position.column))
      if (typeof entry?.originalSource !== 'string') return position
      const source = path.resolve(path.dirname(mapFile), entry.originalSource)
      return { source, line: entry.originalLine + 1, column: entry.originalColumn }
    }
  }
}

/**
 * Returns the name of a source. Sources in a map are URLs, but source-map-support treats them as paths:
 * "my%20file.ts" stays unchanged, and "webpack://app/a.ts" becomes "/dir/webpack:/app/a.ts".
 * @param {string} source as source-map-support returns it
 * @param {string} file
 * @param {Support} support
 */
function nameOf (source, file, support) {
  if (/[\\/][a-z][\w+.-]+:[\\/]/i.test(source)) {
    const known = sourcesIn(file, support.retrieveSourceMap(file)).get(source)
    if (known?.url !== undefined) return known.file ?? known.url
  }
  // An escape may be part of a file name, since compilers do not escape at all; an escaped slash may not.
  if (!source.includes('%') || /%(2f|5c|00)/i.test(source) || fs.existsSync(source)) return source
  const common = commonLength(source, file) // the program's directory may contain escapes, too
  return attempt(() => source.slice(0, common) + decodeURIComponent(source.slice(common))) ?? source
}

/**
 * Returns the length of the directory prefix that two paths share.
 * @param {string} first
 * @param {string} second
 */
function commonLength (first, second) {
  let end = 0
  while (end < first.length && first[end] === second[end]) end++
  return Math.max(first.lastIndexOf('/', end - 1), first.lastIndexOf(path.sep, end - 1)) + 1
}

/**
 * Returns the sources in a file's map, keyed by the paths that source-map-support turns them into.
 * @param {string} file
 * @param {{ url?: string, map: any } | null} found
 */
function sourcesIn (file, found) {
  const remembered = sourcesByFile.get(file)
  if (remembered !== undefined) return remembered
  const named = /** @type {Map<string, Source>} */ (new Map())
  const { url: mapUrl = file, map } = found ?? {}
  for (const { sources = [], sourceRoot, sourcesContent = [] } of partsOf(map)) {
    for (const [i, source] of sources.entries()) {
      const full = sourceRoot && !isUrl(source) ? `${sourceRoot.replace(/\/?$/, '/')}${source}` : source
      const url = isUrl(full) ? normalize(full) : undefined
      const content = sourcesContent?.[i]
      const hasContent = typeof content === 'string' && !isVirtual(url)
      const found = url === undefined || !hasContent ? undefined : fileOf(url, pathOf(file), content)
      const entry = { url, hasContent, file: found }
      named.set(path.resolve(path.dirname(pathOf(mapUrl)), full), entry)
      if (url !== undefined) named.set(url, entry)
    }
  }
  sourcesByFile.set(file, named) // only when complete: V8 may terminate this code, see guard.js
  return named
}

/** Whether a URL names no file: a loader made `webpack://app/?481d`. @param {string} [url] */
const isVirtual = (url) => url !== undefined && /\/\?[^/]*$/.test(url)

/**
 * Finds the file of a source named by a URL. webpack names sources relative to the program's directory,
 * `webpack://app/./src/a.ts`. That directory is above the generated file, and the same text proves the match.
 * @param {string} url
 * @param {string} generated
 * @param {string} content
 * @returns {string | undefined} undefined if no file has this text
 */
function fileOf (url, generated, content) {
  const name = /^[a-z][\w+.-]*:\/\/[^/]*(\/[^?]+)/i.exec(url)?.[1]
  if (name === undefined || namesInModules(name) !== undefined) return undefined // a package's source
  const local = attempt(() => decodeURIComponent(name)) ?? name
  for (let directory = generated; directory !== path.dirname(directory);) {
    directory = path.dirname(directory)
    const file = path.join(directory, local)
    if (attempt(() => isReadable(file) && fs.readFileSync(file, 'utf8') === content)) return file
  }
}

/**
 * Whether a source can be read: it is on disk, or inside the map of code outside packages. Packages ship maps
 * to sources that they leave out: such links are dead, while the generated line exists.
 * @param {string} source
 * @param {string} file
 * @param {() => { url?: string, map: any } | null} findMap
 */
function isAvailable (source, file, findMap) {
  const key = `${file}\n${source}`
  const remembered = readable.get(key)
  if (remembered !== undefined) return remembered
  const local = attempt(() => pathOf(source)) ?? source
  const isOnDisk = path.isAbsolute(local) && fs.existsSync(local)
  const isThere = isOnDisk || namesInModules(file) !== undefined
    ? isOnDisk
    : attempt(() => sourcesIn(file, findMap()).get(source)?.hasContent) === true
  readable.set(key, isThere)
  return isThere
}

/** Removes the prefix that a server adds to keep scripts from running a map. @param {string} content */
const textOfMap = (content) => content.replace(/^\)]}'[^\n]*\n/, '')

/**
 * Reads a map.
 * @param {any} content its text, or the parsed text
 * @returns {any[]} its parts, each with sources
 */
function partsOf (content) {
  const map = typeof content === 'string' ? JSON.parse(textOfMap(content)) : content
  return map?.sections?.map((/** @type {any} */ section) => section?.map ?? {}) ?? [map ?? {}]
}

/** Returns the parts of the map that led to a source. @param {string} source of a mapped frame */
function mapsTo (source) {
  const file = generatedFiles.get(source)
  if (file === undefined) return []
  if (nodeMaps()) return partsOf(Module.findSourceMap(file)?.payload)
  return partsOf(supportFor(file)?.retrieveSourceMap(pathOf(file))?.map)
}

/** Whether frames were mapped to a source. @param {string} source */
const isSource = (source) => generatedFiles.get(source) !== undefined

/** @param {string} source */
function isUrl (source) {
  return /^[a-z][a-z\d+.-]+:/i.test(source)
}

/**
 * Returns the path of a file: URL, other URLs as URL prints them, and invalid URLs unchanged.
 * @param {string} url
 */
function normalize (url) {
  return attempt(() => url.startsWith('file:') ? fileURLToPath(url) : new URL(url).href) ?? url
}

/** Lists the copies of source-map-support that the program has loaded. @returns {Support[]} */
function copies () {
  return Object.keys(require.cache)
    .filter((file) => /[\\/]source-map-support[\\/]source-map-support\.js$/.test(file))
    .map((file) => require.cache[file]?.exports)
    .filter((copy) => typeof copy?.mapSourcePosition === 'function')
    .filter((copy) => typeof copy.retrieveSourceMap === 'function')
}

/**
 * @param {string} file a path or a file: URL
 * @param {number} line from 1
 * @param {number} column from 1
 * @param {boolean} isMappedByNode
 * @returns {Position | undefined}
 */
function lookUp (file, line, column, isMappedByNode) {
  if (isMappedByNode) {
    const entry = /** @type {any} */ (Module.findSourceMap(file)?.findEntry(line - 1, column - 1))
    if (typeof entry?.originalSource === 'string') {
      const { originalSource, originalLine, originalColumn } = entry
      const source = originalSource.startsWith('file:') ? normalize(originalSource) : originalSource
      const findMap = () => ({ map: Module.findSourceMap(file)?.payload })
      if (!isAvailable(source, pathOf(file), findMap)) return undefined
      return { source, line: originalLine + 1, column: originalColumn + 1 }
    }
  }
  const support = supportFor(file)
  if (support === undefined) return undefined
  ensureHeadroom(MAP_KB)
  const isUrlOfFile = file.startsWith('file:')
  const local = pathOf(file)
  try {
    const position = support.mapSourcePosition({ source: local, line, column: column - 1 })
    if (typeof position.line !== 'number') return undefined
    if (position.source === local && position.line === line) return undefined
    const name = nameOf(position.source, local, support)
    const isThere = isAvailable(name, local, () => support.retrieveSourceMap(local)) ||
      isAvailable(position.source, local, () => null)
    if (!isThere) return undefined
    const source = isUrlOfFile && path.isAbsolute(name) ? pathToFileURL(name).href : name
    return { source, line: position.line, column: position.column + 1 }
  } catch {
    supports.set(file, undefined) // broken: do not retry
    return undefined
  }
}

/**
 * Returns a frame's line with its original position.
 * @param {string} line
 * @param {Frame} frame
 * @returns {string | undefined} undefined if there is no map
 */
function mapLine (line, { fileName, lineNumber, columnNumber, kind }) {
  if (kind === 'core' || fileName === undefined) return undefined
  if (lineNumber === undefined || columnNumber === undefined) return undefined
  const isMappedByNode = nodeMaps()
  const remembered = isMappedByNode ? undefined : mappedLines.get(line)
  if (remembered !== undefined) return remembered
  try {
    const position = lookUp(fileName, lineNumber, columnNumber, isMappedByNode)
    const mappedPosition = position ??
      (isMappedByNode ? undefined : positionOf(fileName, lineNumber, columnNumber))
    if (mappedPosition === undefined) return undefined
    const { source, line: sourceLine, column } = mappedPosition
    const old = `${fileName}:${lineNumber}:${columnNumber}`
    const start = line.lastIndexOf(old)
    const mapped = `${line.slice(0, start)}${source}:${sourceLine}:${column}${line.slice(start + old.length)}`
    if (position !== undefined) {
      generatedFiles.set(source, fileName)
      if (!isMappedByNode) mappedLines.set(line, mapped)
    }
    return mapped
  } catch {
    return undefined // no room on the stack, or an unreadable file
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
 * Returns the lines of an error's own call sites, mapped if there is a map.
 * @param {NodeJS.CallSite[]} sites
 * @returns {string[]}
 */
function mapSites (sites) {
  const { lines, frames } = readSites(sites)
  return lines.map((line, i) => mapLine(line, frames[i]) ?? line)
}

/**
 * Returns the text of an error's stack with mapped frames, for stacks that Node formatted without mapping.
 * @param {string} stack
 */
function mapText (stack) {
  const lines = []
  for (const line of stack.split('\n')) {
    const frame = frameIn(line)
    if (frame?.kind === 'own' && !settings.options.internals) continue
    const isMappable = frame !== undefined && !nodeMaps()
    const mapped = isMappable ? mapLine(line.slice(AT.length), frame) : undefined
    lines.push(mapped === undefined ? line : `${AT}${mapped}`)
  }
  return lines.join('\n')
}

module.exports = { isSource, mapFrame, mapSites, mapText, mapsTo, nodeMaps }
