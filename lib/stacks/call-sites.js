'use strict'

// The call sites of an error as text and as frames. V8 writes a line in about half a microsecond, and the
// formatter, source maps and attribution all read it: it is written once for each list of call sites.

const { source } = require('../core/source')
const { createTag } = require('../core/tag')
const { parseFrame } = require('./frames')
const { HOP, frameLines, splitFrames } = require('./text-scan')

/** @typedef {{ lines: string[], frames: import('./frames').Frame[] }} SiteText */

/**
 * On the list itself: a WeakMap costs a read of `.stack` 2 µs more (bench/errors.js).
 * @type {ReturnType<typeof createTag<SiteText>>}
 */
const textTag = createTag()

/**
 * Returns the lines of call sites as V8 prints them, without "    at ", and the frames read from them.
 * @param {NodeJS.CallSite[]} sites never changed afterwards
 * @returns {SiteText}
 */
function readSites (sites) {
  let text = textTag.read(sites)
  if (text === undefined) {
    const lines = sites.map(String)
    textTag.write(sites, text = { lines, frames: lines.map(parseFrame) })
  }
  return text
}

/**
 * Makes call sites of the text of a stack whose own were lost when it was formatted: they name their
 * functions, and have neither function nor receiver.
 * @param {string} stack
 * @returns {NodeJS.CallSite[]} none where it has no frames
 */
function sitesOfText (stack) {
  const [ofError] = stack.split(`\n${HOP}`, 1)
  const lines = splitFrames(frameLines(ofError, true))
  return lines.filter(Boolean).map(siteOfLine)
}

/** @param {string} line @returns {NodeJS.CallSite} */
function siteOfLine (line) {
  const nothing = () => undefined
  return /** @type {any} */ ({
    toString: () => line,
    getThis: nothing,
    getFunction: nothing,
    getFunctionName: () => parseFrame(line).functionName ?? null,
    getFileName: () => parseFrame(line).fileName
  })
}

/**
 * Returns the text of a call site as it may stand for all calls from its place. V8 gives a function without
 * a name that of the property by which it was called, and functions from one place can be in several.
 * @param {any} site
 * @returns {string}
 */
function textOfSite (site) {
  const text = String(site)
  if (!text.endsWith(')') || site.isConstructor() || site.getFunctionName()) return text
  const location = `${site.getScriptNameOrSourceURL()}:${site.getLineNumber()}:${site.getColumnNumber()}`
  if (location.startsWith('node:') || !text.endsWith(` (${location})`)) return text
  if (site.getMethodName() === null) return text // the top of a module
  return `${text.startsWith('async ') ? 'async ' : ''}${location}`
}

const MAIN = 'node:internal/main/' // where Node starts

/** errors of the main script @type {WeakSet<object>} */
const startUpErrors = new WeakSet()

/**
 * Notes whether an error was made by the main script of the main thread before any asynchronous step: it has
 * no hops, and nothing needs to be loaded for that.
 * @param {object} error
 * @param {NodeJS.CallSite[]} sites
 */
function noteStartUpError (error, sites) {
  if (source.startsWithHops) return false
  const { frames } = readSites(sites)
  const fileName = frames.length === 0 ? undefined : frames[frames.length - 1].fileName
  if (fileName === undefined || !fileName.startsWith(MAIN)) return false
  startUpErrors.add(error)
  return true
}

/** @param {object} error @returns {boolean} whether noteStartUpError noted it as one */
function isStartUpError (error) {
  return startUpErrors.has(error)
}

module.exports = { noteStartUpError, readSites, sitesOfText, isStartUpError, textOfSite }
