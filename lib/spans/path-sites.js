'use strict'

// Sites of a critical path. A site is the innermost frame of the program's own code, further up the chain if
// needed; a library that it called is also named. Its callers are the program's frames from there up to the
// beginning of the request.

const { contextOfChain } = require('../core/context')
const { requestTypes } = require('../core/kinds')
const { mainPackage } = require('../stacks/hop-frames')
const { labelOf } = require('../stacks/labels')
const { mapFrame } = require('../stacks/source-maps')
const { placeText } = require('../text')

const MAX_SITES = 5_000 // chains with cached sites
const MAX_STEPS = 32 // steps up a chain in search of frames
const MAX_CALLERS = 8
/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('../stacks/frames').Frame} Frame
 *
 * @typedef {import('../encoding/span-figures').Place} Place
 * @typedef {import('../encoding/span-figures').Site} Site
 */

/** @type {Site} */
const NO_SITE = { at: undefined, callers: undefined, label: undefined }

/** by chain number @type {Map<number, Site>} */
let sites = new Map()
/** by content @type {Map<string, Site>} */
let equalSites = new Map()

/**
 * Returns the site of a chain.
 * @param {number} chain 0 if unknown
 * @returns {import('./path-sites').Site}
 */
function siteOf (chain) {
  if (chain === 0) return NO_SITE
  let site = sites.get(chain)
  if (site === undefined) {
    if (sites.size >= MAX_SITES) {
      sites = new Map()
      equalSites = new Map()
    }
    site = shared(findSite(chain))
    sites.set(chain, site)
  }
  return site
}

/** Returns the same object for equal sites. @param {Site} site @returns {Site} */
function shared (site) {
  const key = JSON.stringify(site)
  const equal = equalSites.get(key)
  if (equal !== undefined) return equal
  equalSites.set(key, site)
  return site
}

/**
 * Whether the step begins a request, or is the resource that requests arrive on. An HTTP/2 stream with frames
 * of the program was opened by the program and does not count.
 * @param {Context} context
 */
function isRequest ({ type, stack }) {
  return requestTypes.has(type) && (type !== 'HTTP2STREAM' || stack?.frames.some(isOwnCode) !== true)
}

/** @param {Frame} frame */
const isOwnCode = ({ kind }) => kind === 'user'

/** @param {number} chain @returns {Site} */
function findSite (chain) {
  const context = contextOfChain(chain)
  if (context === undefined) return NO_SITE
  let library
  let present = /** @type {Context | undefined} */ (context)
  for (let steps = 0; present !== undefined && steps < MAX_STEPS; present = present.parent, steps++) {
    if (isRequest(present)) break
    const frames = present.stack?.frames ?? []
    for (let i = 0; i < frames.length; i++) {
      const frame = frames[i]
      if (frame.kind === 'module') library ??= packageOf(frame.fileName)
      if (frame.kind !== 'user') continue
      const place = placeOf(frame)
      return {
        at: library === undefined ? place : { ...place, via: library },
        callers: callersOf(present, frames, i, place),
        label: labelOf(present, frames)
      }
    }
  }
  const label = labelOf(context, context.stack?.frames ?? [])
  return { at: undefined, callers: undefined, label }
}

/**
 * Returns the innermost frame of the main script's package, for a program that is itself in node_modules.
 * @param {number} chain
 * @returns {Place | undefined}
 */
function placeInMain (chain) {
  const main = mainPackage()
  let present = main === '' ? undefined : contextOfChain(chain)
  for (let steps = 0; present !== undefined && steps < MAX_STEPS; present = present.parent, steps++) {
    if (isRequest(present)) return undefined
    const frame = present.stack?.frames.find(({ fileName }) => packageOf(fileName) === main)
    if (frame !== undefined) return placeOf(frame)
  }
}

/**
 * Returns the program's frames that led to a frame, innermost first. The stack of an `await` step begins with
 * the function that continues. That frame is omitted, so earlier code of the same function does not appear as
 * a caller.
 * @param {Context} context
 * @param {Frame[]} frames of the context
 * @param {number} index of the frame
 * @param {Place} place of the frame
 */
function callersOf (context, frames, index, place) {
  /** @type {Place[]} */
  const callers = []
  let last = placeText(place)
  let start = index + 1
  let present = /** @type {Context | undefined} */ (context)
  for (let steps = 0; present !== undefined && steps < MAX_STEPS; steps++) {
    for (let i = start; i < frames.length; i++) {
      if (frames[i].kind !== 'user') continue
      const caller = placeOf(frames[i])
      const text = placeText(caller)
      if (text === last) continue
      last = text
      callers.push(caller)
      if (callers.length === MAX_CALLERS) return callers
    }
    present = present.parent
    if (present === undefined || isRequest(present)) break
    frames = present.stack?.frames ?? []
    start = present.type === 'PROMISE' && labelOf(present, frames) === 'await' ? 1 : 0
  }
  return callers.length === 0 ? undefined : callers
}

/** @param {Frame} frame @returns {Place} */
function placeOf (frame) {
  const { text } = mapFrame(frame)
  const [, name = '<anonymous>', location = text] = /^(?:async )?(.*?) \((.*)\)$/s.exec(text) ?? []
  const [, file, line, column] = /^(.*):(\d+):(\d+)$/s.exec(location.replace(/^async /, '')) ?? []
  if (file === undefined) return { function: name, location }
  return { function: name, file, line: Number(line), column: Number(column) }
}

/** Returns the innermost package that a file belongs to. @param {string | undefined} fileName */
function packageOf (fileName) {
  if (fileName === undefined) return undefined
  const parts = fileName.split(/[\\/]/)
  const index = parts.lastIndexOf('node_modules') + 1
  if (index === 0 || index >= parts.length) return undefined
  return parts[index].startsWith('@') ? `${parts[index]}/${parts[index + 1]}` : parts[index]
}

module.exports = { placeInMain, siteOf }
