'use strict'

// Call sites of an error as text and as frames. V8 takes about 0.5 µs to print a line, and the formatter,
// source maps and attribution all read it, so each list of call sites is printed once.

const { source } = require('../core/source')
const { createTag } = require('../core/tag')
const { parseFrame } = require('./frames')
const { HOP, frameLines, splitFrames } = require('./text-scan')

/** @typedef {{ lines: string[], frames: import('./frames').Frame[] }} SiteText */

/**
 * Stored on the list itself: a WeakMap adds 2 µs to each read of `.stack` (bench/errors.js).
 * @type {ReturnType<typeof createTag<SiteText>>}
 */
const textTag = createTag()

/**
 * Returns the lines of call sites as V8 prints them, without "    at ", and the frames parsed from them.
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
 * Makes call sites from the text of a stack that lost its own when it was formatted. They have function
 * names, but neither function nor receiver.
 * @param {string} stack
 * @returns {NodeJS.CallSite[]} empty if the text has no frames
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
 * Returns a call site's text, valid for all calls from its place. V8 names an anonymous function after the
 * property it was called by, and functions from one place can be in several properties.
 * @param {any} site
 * @returns {string}
 */
function textOfSite (site) {
  const text = String(site)
  if (!text.endsWith(')') || site.isConstructor() || site.getFunctionName()) return text
  const location = `${site.getScriptNameOrSourceURL()}:${site.getLineNumber()}:${site.getColumnNumber()}`
  if (location.startsWith('node:') || !text.endsWith(` (${location})`)) return text
  if (site.getMethodName() === null) return text // top level of a module
  return `${text.startsWith('async ') ? 'async ' : ''}${location}`
}

const MAIN = 'node:internal/main/' // Node's start-up scripts

/** errors created by the main script @type {WeakSet<object>} */
const startUpErrors = new WeakSet()

/**
 * Notes whether the main thread's main script created an error before any asynchronous step. Such an error
 * has no hops, and nothing has to be loaded for it.
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

/** @param {object} error @returns {boolean} whether noteStartUpError noted it */
function isStartUpError (error) {
  return startUpErrors.has(error)
}

module.exports = { noteStartUpError, readSites, sitesOfText, isStartUpError, textOfSite }
