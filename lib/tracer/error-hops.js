'use strict'

// The hops of errors: the flow that an error belongs to, then the one that rejected with it and the one that
// waits for it.

const guard = require('../context/guard')
const { formatHops, placeOf } = require('../format/hops')
const { className, own } = require('../objects')
const { noteStartUpError, readSites, sitesOfText, isStartUpError } = require('../stacks/call-sites')
const { mapSites } = require('../stacks/source-maps')

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 */

/** Origins of parts that are a line about a connection. @type {Set<unknown>} */
const connectionOrigins = new Set(['opened', 'unasked', 'shared'])

const noStack = { text: undefined, sites: undefined }

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('../attribution/attribution').createAttribution>} deps.attribution
 * @param {ReturnType<typeof import('../stacks/chain').createChain>} deps.chain
 * @param {ReturnType<typeof import('../attribution/observed-errors').createObservedErrors>}
 *   deps.observedErrors
 * @param {typeof import('../stacks/formatter')['readStack']} deps.readStack
 * @param {() => boolean} deps.isStackLeftAlone tracing is on, and `.stack` is Node's
 * @param {() => boolean} deps.hasInternals the option
 */
function createErrorHops (deps) {
  const { attribution, chain, observedErrors, readStack, isStackLeftAlone, hasInternals } = deps
  /** Returns the hops of an error whose stack was formatted. @param {object} error */
  const notedHopsOf = (error) => observedErrors.get(error)?.hops

  /** Reads a stack as the program would, and notes its hops where they are appended. @param {Error} error */
  function readError (error) {
    observedErrors.observe(error) // before anything is made for the query
    return readStack(error)
  }

  /**
   * @param {Error} error
   * @param {import('../stacks/formatter').ReadStack} [read] its stack, where it was read for the query
   * @returns {PrintedHop[]}
   */
  function hopsOfError (error, read) {
    const { text, sites } = read ?? (notedHopsOf(error) === undefined ? readError(error) : noStack)
    const hops = notedHopsOf(error)
    if (hops !== undefined || isStartUpError(error)) return hops ?? []
    // Another library formats, or did before: the text that Node wrote has to do.
    const isReadable = sites === undefined && isStackLeftAlone() && typeof text === 'string'
    const readableSites = isReadable ? sitesOfText(text) : sites
    if (readableSites === undefined) return attributedHops(error, undefined)
    if (noteStartUpError(error, readableSites)) return []
    report(error, readableSites)
    return notedHopsOf(error) ?? []
  }

  /**
   * @param {object} error
   * @param {NodeJS.CallSite[] | undefined} sites undefined: they are not known
   * @returns {PrintedHop[]} of each flow at most as many as a chain may have
   */
  function attributedHops (error, sites) {
    const { frames } = readSites(sites ?? [])
    const parts = attribution.attribute(error, sites)
    return parts.flatMap(({ context, origin, label }, i) => {
      const isLine = context !== undefined && connectionOrigins.has(origin)
      if (isLine) return connectionHops(context, origin, label)
      const hops = chain.hops(context, { above: i === 0 ? frames : undefined, told: frames, origin })
      return origin === 'first' ? hops.slice(0, 1).map((hop) => nameByRequest(hop, context)) : hops
    })
  }

  /**
   * Returns a line about a connection; all of its chain with `internals`.
   * @param {Context} context
   * @param {any} origin
   * @param {string | undefined} request
   * @returns {PrintedHop[]}
   */
  function connectionHops (context, origin, request) {
    const hops = chain.hops(context)
    const label = request ?? placeOf(hops[0]?.lines ?? []) ?? 'code that is not known'
    const line = { ...chain.describe(context), label, origin, lines: [], short: [] }
    if (origin === 'shared') line.ageMs = NaN
    return hasInternals() ? [line, ...hops] : [line]
  }

  /**
   * Returns what is appended to an error's stack, and notes its hops.
   * @param {object} error
   * @param {NodeJS.CallSite[]} sites
   */
  function report (error, sites) {
    const hops = attributedHops(error, sites)
    observedErrors.observe(error).hops = hops
    return isPlaceOfLog(error) ? '' : formatHops(hops)
  }

  /**
   * Makes hops for an error of longstack's own, so that the program's first error finds everything loaded and
   * compiled. Runs no code of the program. Takes about 5 ms once.
   */
  function preload () {
    guard.run(() => {
      try {
        const sites = createSites()
        mapSites(sites)
        report(new Error('warm'), sites)
      } catch {} // the program's stack may be full here
    })
  }

  return { hopsOfError, readError, report, preload }
}

/**
 * @param {PrintedHop} hop
 * @param {import('../context/context').Context | undefined} context
 */
function nameByRequest (hop, context) {
  let step = context
  while (step !== undefined && step.request === undefined) step = step.parent
  return step === undefined ? hop : { ...hop, label: /** @type {string} */ (step.request) }
}

/** Returns call sites as of a function that a timer called. @returns {NodeJS.CallSite[]} */
function createSites () {
  const nothing = () => undefined
  const lines = ['warm (longstack.js:1:1)', 'listOnTimeout (node:internal/timers:1:1)']
  return lines.map((line) => /** @type {any} */ ({
    toString: () => line,
    getThis: nothing,
    getFunction: nothing,
    getFunctionName: () => 'warm',
    getFileName: nothing
  }))
}

/**
 * Returns whether an error only tells Jest where the console was used: Jest prints the first frame of it, and
 * all lines that are no frames, below what was logged.
 * @param {object} error
 */
function isPlaceOfLog (error) {
  return className(error) === 'ErrorWithStack' && own(error, 'message') === undefined
}

module.exports = { createErrorHops }
