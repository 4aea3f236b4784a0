'use strict'

// The sites of a critical path. A site is the innermost frame of the program's own code, up the chain if need
// be; a library whose frame is further inside is named beside it. Its callers are the program's frames from
// there up to the beginning of the request.

const { contextOfChain } = require('../core/context')
const { requestTypes } = require('../core/kinds')
const { labelOf } = require('../stacks/labels')
const { mapFrame } = require('../stacks/source-maps')
const { placeText } = require('../text')

const MAX_SITES = 5_000 // chains whose sites are remembered
const MAX_STEPS = 32 // up a chain in search of frames
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

/** by number of the chain @type {Map<number, Site>} */
let sites = new Map()
/** by what they hold @type {Map<string, Site>} */
let equalSites = new Map()

/**
 * Returns the site of a chain.
 * @param {number} chain 0: not known
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

/** Returns one object for all equal sites. @param {Site} site @returns {Site} */
function shared (site) {
  const key = JSON.stringify(site)
  const equal = equalSites.get(key)
  if (equal !== undefined) return equal
  equalSites.set(key, site)
  return site
}

/**
 * Whether a request begins with a step, or what one comes on. A stream of HTTP/2 that the program has made
 * itself has its frames.
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
 * Returns the frames of the program that led to one, innermost first. Behind an `await` a function goes on
 * that the stack still has: its frame at the `await` itself is left out, so that what came before in the
 * same function is no caller.
 * @param {Context} context
 * @param {Frame[]} frames of it
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

module.exports = { packageOf, siteOf }
