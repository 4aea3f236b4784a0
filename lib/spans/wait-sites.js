'use strict'

// The waits of a critical path as text: where each was registered, and what ended it. The site of a wait is
// the innermost frame of the program's own code, up the chain if need be; a library whose frame is further
// inside is named beside it.

const { contextAt, contextOfChain } = require('../context/context')
const { subsystemOf } = require('../context/subsystems')
const { labelOf } = require('../stacks/labels')
const { mapFrame } = require('../stacks/source-maps')
const { addressOf } = require('../node-objects')
const { identityAt } = require('./identities')

const MAX_SITES = 5_000 // chains whose sites are remembered
const MAX_STEPS = 32 // up a chain in search of a frame
/** Types with which a request begins: what is further up is the server's. */
const requestTypes = new Set([
  'HTTPINCOMINGMESSAGE', 'HTTP2SESSION', 'HTTP2STREAM', 'TCPSERVERWRAP', 'PIPESERVERWRAP'
])

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {{ at: string | undefined, label: string | undefined }} Site
 *
 * @typedef {object} SiteWait equal ones merged
 * @property {number} ms
 * @property {number} count
 * @property {string | undefined} at `query (/app/pool.js:34:12)`
 * @property {string | undefined} until what ended it: subsystem and peer, or the request in whose run it
 *   ended
 * @property {string | undefined} label of the step that was registered there
 * @property {string | undefined} subsystem of what ended it
 */

/**
 * @param {object} deps
 * @param {(context: Context) => import('../stacks/frames').Stack | undefined} deps.stackOf
 * @param {import('../handles/registry').Registry} deps.registry
 */
function createWaitSites ({ stackOf, registry }) {
  /** by number of the chain @type {Map<number, Site>} */
  let sites = new Map()

  /** @param {number} chain @returns {Site} */
  function siteOf (chain) {
    let site = sites.get(chain)
    if (site === undefined) {
      site = findSite(chain)
      if (sites.size >= MAX_SITES) sites = new Map()
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
    let present = /** @type {Context | undefined} */ (context)
    for (; present !== undefined && steps < MAX_STEPS; present = present.parent, steps++) {
      if (requestTypes.has(present.type)) break
      const frames = stackOf(present)?.frames ?? []
      for (const frame of frames) {
        if (frame.kind === 'module') library ??= packageOf(frame.fileName)
        if (frame.kind !== 'user') continue
        const { text } = mapFrame(frame)
        const place = text.startsWith('async ') ? text.slice(6) : text
        const site = place.endsWith(')') ? place : `<anonymous> (${place})`
        const label = labelOf(present, frames)
        return { at: library === undefined ? site : `${site} via ${library}`, label }
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
    const isKnown = type !== undefined && type !== 'unknown' && type !== 'process'
    const subsystem = isKnown ? subsystemOf(type) ?? type : undefined
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
    siteOf,

    /**
     * Returns where the time went in which the event loop waited, longest first.
     * @param {import('./span').Span} span that has ended
     * @returns {SiteWait[]}
     */
    waitsOf (span) {
      /** @type {SiteWait[]} */
      const merged = []
      for (const wait of span.pathWaits()) {
        const { at: site, label } = siteOf(wait.site)
        const { until, subsystem } = endingOf(wait)
        const equal = merged.find((other) => {
          return other.at === site && other.until === until && other.label === label
        })
        if (equal === undefined) {
          merged.push({ ms: wait.ms, count: 1, at: site, until, label, subsystem })
        } else {
          equal.ms += wait.ms
          equal.count++
        }
      }
      return merged.sort((a, b) => b.ms - a.ms)
    }
  }
}

/** Returns the innermost package that a file belongs to. @param {string | undefined} fileName */
function packageOf (fileName) {
  if (fileName === undefined) return undefined
  const parts = fileName.split(/[\\/]/)
  const index = parts.lastIndexOf('node_modules') + 1
  if (index === 0 || index >= parts.length) return undefined
  return parts[index].startsWith('@') ? `${parts[index]}/${parts[index + 1]}` : parts[index]
}

module.exports = { createWaitSites }
