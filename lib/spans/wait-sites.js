'use strict'

// The waits of a critical path in words: where each was registered, and what ended it. The site of a wait is the innermost
// frame of the user's own code, up the chain if need be; a library whose frame is further inside is named beside it.

const { contextAt, contextOfChain } = require('../context/context')
const { subsystemOf } = require('../context/subsystems')
const { labelOf } = require('../stacks/labels')
const { mapFrame } = require('../stacks/source-maps')
const { addressOf } = require('../node-objects')
const { identityAt } = require('./identities')

const SITES = 5_000 // chains whose sites are remembered
const UP = 32 // steps up a chain in search of a frame
/** Where a request begins: what is further up is the server's. */
const beginnings = new Set(['HTTPINCOMINGMESSAGE', 'HTTP2SESSION', 'HTTP2STREAM', 'TCPSERVERWRAP', 'PIPESERVERWRAP'])

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {{ at: string | undefined, label: string | undefined }} Site
 *
 * @typedef {object} PathWait equal ones merged
 * @property {number} ms
 * @property {number} count
 * @property {string | undefined} at `query (/app/pool.js:34:12)`
 * @property {string | undefined} until what ended it: subsystem and peer, or the request whose run did
 * @property {string | undefined} label of the step that was registered there
 * @property {string | undefined} subsystem of what ended it
 */

/**
 * @param {object} deps
 * @param {(context: Context) => import('../stacks/frames').Stack | undefined} deps.stackOf
 * @param {import('../handles/registry').Registry} deps.registry
 */
function createPaths ({ stackOf, registry }) {
  /** by number of the chain @type {Map<number, Site>} */
  let sites = new Map()

  /** @param {number} chain @returns {Site} */
  function siteOf (chain) {
    let site = sites.get(chain)
    if (site === undefined) {
      site = findSite(chain)
      if (sites.size >= SITES) sites = new Map()
      sites.set(chain, site)
    }
    return site
  }

  /** @param {number} chain @returns {Site} */
  function findSite (chain) {
    const context = chain === 0 ? undefined : contextOfChain(chain)
    if (context === undefined) return { at: undefined, label: undefined }
    let library
    let steps = 0
    for (let one = /** @type {Context | undefined} */ (context); one !== undefined && steps < UP; one = one.parent, steps++) {
      if (beginnings.has(one.type)) break
      const frames = stackOf(one)?.frames ?? []
      for (const frame of frames) {
        if (frame.kind === 'module') library ??= packageOf(frame.fileName)
        if (frame.kind !== 'user') continue
        const { text } = mapFrame(frame)
        const place = text.startsWith('async ') ? text.slice(6) : text
        const at = place.endsWith(')') ? place : `<anonymous> (${place})`
        return { at: library === undefined ? at : `${at} via ${library}`, label: labelOf(one, frames) }
      }
    }
    return { at: undefined, label: labelOf(context, stackOf(context)?.frames ?? []) }
  }

  /**
   * @param {import('./critical-path').Wait} wait
   * @returns {{ until: string | undefined, subsystem: string | undefined }}
   */
  function endingOf ({ callback, callbackChain, settler }) {
    const type = callbackChain === 0 ? contextAt(callback)?.type : contextOfChain(callbackChain)?.type
    const subsystem = type === undefined || type === 'unknown' || type === 'process' ? undefined : subsystemOf(type) ?? type
    const other = settler === 0 ? undefined : identityAt(settler)
    if (other !== undefined) return { until: `${other.name} of another request`, subsystem }
    const peer = subsystem === undefined ? undefined : peerOf(callback)
    return { until: peer === undefined ? subsystem : `${subsystem} ${peer}`, subsystem }
  }

  /** @param {number} ref @returns {string | undefined} address:port of the other end */
  function peerOf (ref) {
    const entry = registry.get(ref >>> 1)
    if (entry === undefined) return undefined
    if (entry.remote === undefined) {
      const handle = entry.resource.deref()
      entry.remote = handle === undefined ? undefined : addressOf(handle, 'getpeername')
    }
    return entry.remote
  }

  return {
    /**
     * Where the time went in which the event loop waited, worst first.
     * @param {import('./span').Span} span that has ended
     * @returns {PathWait[]}
     */
    pathOf (span) {
      /** @type {PathWait[]} */
      const merged = []
      for (const wait of span.pathWaits()) {
        const { at, label } = siteOf(wait.site)
        const { until, subsystem } = endingOf(wait)
        const same = merged.find((one) => one.at === at && one.until === until && one.label === label)
        if (same === undefined) {
          merged.push({ ms: wait.ms, count: 1, at, until, label, subsystem })
        } else {
          same.ms += wait.ms
          same.count++
        }
      }
      return merged.sort((one, other) => other.ms - one.ms)
    }
  }
}

/** @param {string | undefined} fileName @returns {string | undefined} the innermost package that a file belongs to */
function packageOf (fileName) {
  if (fileName === undefined) return undefined
  const parts = fileName.split(/[\\/]/)
  const at = parts.lastIndexOf('node_modules')
  if (at === -1 || at + 1 >= parts.length) return undefined
  return parts[at + 1].startsWith('@') ? `${parts[at + 1]}/${parts[at + 2]}` : parts[at + 1]
}

module.exports = { createPaths }
