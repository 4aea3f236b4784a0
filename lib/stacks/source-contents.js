'use strict'

// The texts of sources that source maps hold, and whether a file on disk is what V8 compiled. Asked when a
// line of source is printed.

const Module = require('node:module')
const path = require('node:path')
const { generatedFileOf, nodeMaps, pathOf, supportFor } = require('./source-maps')

const MAX_CONTENT = 4 << 20 // characters

/**
 * Returns the text of a source that a frame was mapped to.
 * @param {string} source a path or a URL, as frames name it
 * @returns {string | undefined} undefined where no map holds it
 */
function contentOf (source) {
  const file = generatedFileOf(source)
  const map = file === undefined ? undefined : retrieveMap(file)
  for (const { sources = [], sourcesContent = [] } of sectionsOf(map)) {
    const index = indexOf(sources, source)
    const content = sourcesContent?.[index]
    if (typeof content === 'string' && content.length <= MAX_CONTENT) return content
  }
  return undefined
}

/** @param {string} file that a map belongs to @returns {any} */
function retrieveMap (file) {
  if (nodeMaps()) return Module.findSourceMap(file)?.payload
  const content = supportFor(file)?.retrieveSourceMap(pathOf(file))?.map
  if (typeof content !== 'string') return content ?? undefined
  return JSON.parse(content.replace(/^\)]}'[^\n]*\n/, ''))
}

/** @param {any} map */
function sectionsOf (map) {
  if (map === undefined) return []
  const { sections = [{ map }] } = map
  return sections.map((/** @type {any} */ section) => section?.map ?? {})
}

/**
 * Returns the index of a source: the only one, or the only one whose name ends the name that frames have.
 * @param {string[]} sources
 * @param {string} source
 */
function indexOf (sources, source) {
  if (sources.length === 1) return 0
  const name = source.replaceAll('\\', '/')
  const matches = sources.map((candidate, i) => ({ i, suffix: suffixOf(candidate) }))
    .filter(({ suffix }) => name.endsWith(suffix) || decoded(name).endsWith(suffix))
    .sort((a, b) => b.suffix.length - a.suffix.length)
  const [first, second] = matches
  return first === undefined || first.suffix.length === second?.suffix.length ? -1 : first.i
}

/** @param {string} source as a map names it */
function suffixOf (source) {
  return `/${decoded(String(source)).replace(/^[a-z][\w+.-]*:\/*/i, '').replace(/^(\.{0,2}\/)+/, '')}`
}

/** @param {string} text */
function decoded (text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * Whether something in this process compiles files of this kind to other texts: the positions of a frame that
 * no map has mapped are those of a text that is not on disk.
 * @param {string} file
 */
function isRewritten (file) {
  if (generatedFileOf(file) !== undefined) return false
  const { _extensions: loaders } = /** @type {any} */ (Module)
  // Node's own loaders (lib/internal/modules/cjs/loader.js); some kinds of files have none.
  const own = /\b(StringPrototypeEndsWith|loadSource)\(/
  const isOfNode = (/** @type {Function} */ loader) => own.test(Function.prototype.toString.call(loader))
  return ['.js', path.extname(file)].some((name) => loaders[name] !== undefined && !isOfNode(loaders[name]))
}

module.exports = { contentOf, isRewritten }
