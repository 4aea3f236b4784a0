'use strict'

// Answers queries: recorded contexts become chains, hops of errors, reports. None of this is needed to
// record, so it is loaded with the first query; most processes never ask. What an error needs is loaded with
// this file, the rest with the first query for it: the reader of an error does not wait for that.

const { types } = require('node:util')
const guard = require('../context/guard')
const { now } = require('../context/clock')
const { contextTag, settlerOf, OWN_WORK } = require('../context/context')
const { createViews } = require('../context/view')
const { mistake } = require('../errors')
const { createAttribution } = require('../attribution/attribution')
const { createChain } = require('../stacks/chain')
const { createStackReader } = require('../stacks/frames')
const { copyHop } = require('../stacks/hop-frames')
const { ImportedChains } = require('../stacks/imported-chains')
const { mapFrame, mapText } = require('../stacks/source-maps')
const { captureInto } = require('../stacks/trace-limit')
const { formatHops } = require('../format/hops')
const { createChainDescriber, createChainTexts } = require('./chain-describer')
const { createErrorHops } = require('./error-hops')
const { createPassedChains } = require('./passed-chains')

const MORE_FRAMES = 10 // that are captured, since some are hidden

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('../stacks/chain').Hop} Hop
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('../context/view').ContextView} ContextView
 * @typedef {import('../handles/why').Why} Why
 *
 * @typedef {object} QueryParts
 * @property {ReturnType<typeof import('../hooks/async-hooks').createAsyncLayer>} asyncLayer
 * @property {import('../stacks/capture').Capture} capture
 * @property {ReturnType<typeof import('../attribution/observed-errors').createObservedErrors>} observedErrors
 * @property {import('../handles/registry').Registry} registry
 * @property {(holder: any) => string} withPlainFormat
 * @property {typeof import('../stacks/formatter')['readStack']} readStack
 * @property {() => boolean} usesNodeFormatter Node's own formatter formats stacks
 * @property {() => import('../options').Options} options
 * @property {import('../settings').Settings} settings
 * @property {() => number} queriedAt ms of the clock when the present query began
 * @property {() => boolean} enabled
 * @property {(count: number) => void} dropped
 * @property {(socket: object) => Why['through']} through
 */

/** @param {QueryParts} parts */
function createQueries (parts) {
  const { asyncLayer, registry, options, queriedAt, enabled, through } = parts
  const imported = new ImportedChains(parts.capture)
  const chain = createChain({ stackOf, options, map: mapFrame, queriedAt, dropped: parts.dropped, imported })
  const { hopsOfError, readError, report, preload } = createErrorHops({
    attribution: createAttributionFor(parts, chain),
    chain,
    observedErrors: parts.observedErrors,
    readStack: parts.readStack,
    isStackLeftAlone: () => enabled() && options().errors !== true,
    hasInternals: () => options().internals
  })
  const { presentFrames, presentLines } = createPresentStack(parts)
  const passedChains = createPassedChains(parts, chain, imported)
  const describe = (/** @type {Context} */ context) => guard.run(() => chain.describe(context))
  const { view, unwrap } = createViews({
    now,
    describe,
    inspectContext (context, ...details) {
      const later = now() - queriedAt() // this is no query, but printing
      const hops = guard.run(() => chain.hops(context)).map((hop) => ({ ...hop, ageMs: hop.ageMs + later }))
      return require('../format/chains').inspectHops(hops, describe(context).label, ...details)
    }
  })
  const reports = lazily(() => {
    const { createReports } = require('../handles/why')
    return createReports({ registry, hops: chain.hops, copyHop, stackOf, queriedAt, enabled, through })
  })
  const waitSites = lazily(() => require('../spans/wait-sites').createWaitSites({ stackOf, registry }))
  const live = lazily(() => require('./live-queries').createLiveQueries(parts, chain, waitSites))
  const blocked = lazily(() => {
    const { createBlockedHops } = require('../blocked/report-hops')
    return createBlockedHops({ chain, view, toHop: copyHop, maxFrames: () => options().frames })
  })

  /**
   * @param {unknown} target
   * @param {Function} above
   * @returns {PrintedHop[]}
   */
  function hopsOf (target, above) {
    if (target === undefined) return chain.hops(asyncLayer.currentContext(), { above: presentFrames(above) })
    if (typeof target !== 'object' || target === null) throw mistake('INVALID_TARGET', target)
    const context = unwrap(target)
    if (context !== undefined) return chain.hops(context)
    if (types.isNativeError(target)) return hopsOfError(target)
    if (types.isPromise(target)) return hopsOfPromise(chain, target, options().depth)
    return chain.hops(reports().findContext(target))
  }

  /**
   * Returns what trace.stack returns.
   * @param {unknown} target
   * @param {Function} above frames of the caller start below this function
   * @returns {string}
   */
  function stackText (target, above) {
    const read = types.isNativeError(target) ? readError(target) : undefined
    const hops = read === undefined ? hopsOf(target, above) : hopsOfError(/** @type {Error} */ (target), read)
    if (target === undefined) return [...presentLines(above), formatHops(hops)].filter(Boolean).join('\n')
    if (read === undefined) return formatHops(hops)
    const text = String(read.text)
    if (text.includes('\n  \u2500\u2500 ')) return text
    const { errors, internals } = options()
    const head = errors === true || !enabled() || !parts.usesNodeFormatter() ? text : mapText(text, internals)
    return hops.length === 0 ? head : `${head}\n${formatHops(hops)}`
  }

  return {
    hopsOf,

    /** Returns what trace.chain returns. @param {unknown} target @param {Function} above as for stackText */
    chainOf: (target, above) => require('../format/chains').copyChain(hopsOf(target, above), copyHop),

    foldLoops: chain.foldLoops,
    view,
    report,
    preload,
    stackText,
    presentFrames,
    presentLines,
    matching,

    reports,

    /** @type {ReturnType<typeof blocked>} */
    blocked: (context, stack) => blocked()(context, stack),
    describeChain: createChainDescriber(chain),

    /** Returns the frames of a context, as lines. @param {Context} context */
    lines: (context) => chain.describe(context).lines.join('\n'),

    ...createChainTexts(chain),
    waitSites,
    live,

    /** Returns the hops of an error. @param {Error} error */
    hopsText: (error) => formatHops(hopsOfError(error)),

    /** @param {Error} error */
    errorStack (error) {
      if (options().errors !== true) return stackText(error, stackText)
      const { text } = readError(error)
      return typeof text === 'string' ? text : undefined
    },

    /**
     * Returns the report of everything open, for a terminal.
     * @param {(type: string) => boolean} isSelected
     */
    summary (isSelected) {
      const { summary } = require('../format/handles')
      return require('../format/paint').paint(summary(reports().handles(isSelected)))
    },

    ...passedChains
  }
}

/** @param {QueryParts} parts @param {ReturnType<typeof createChain>} chain */
function createAttributionFor ({ asyncLayer, observedErrors, registry }, chain) {
  return createAttribution({
    root: asyncLayer.root,
    // Walks along a chain are short once it is folded.
    current () {
      const context = asyncLayer.currentContext()
      if (context !== undefined && !context.folded) chain.foldLoops(context)
      return context
    },
    stackOf,
    observedErrors,
    isReused: asyncLayer.isReusedTimer
  })
}

/** @param {QueryParts} parts */
function createPresentStack ({ withPlainFormat, options }) {
  const readFrames = createStackReader()

  /** @param {Function} above frames start below this function */
  function presentFrames (above) {
    const holder = /** @type {any} */ ({ __proto__: null })
    captureInto(holder, above, options().frames + MORE_FRAMES)
    const stack = withPlainFormat(holder)
    return typeof stack === 'string' ? readFrames(stack) : []
  }

  return {
    presentFrames,

    /** Returns the present stack without Node's frames, as lines. @param {Function} above */
    presentLines (above) {
      const frames = presentFrames(above).filter((frame) => frame.kind !== 'core')
      return frames.map((frame) => `    at ${mapFrame(frame).text}`)
    }
  }
}

/** @param {Context} context */
function stackOf (context) {
  return context.stack
}

/**
 * Returns the chain of what settled a promise, then of what made it.
 * @param {ReturnType<typeof createChain>} chain
 * @param {Promise<unknown>} promise
 * @param {number} maxHops
 * @returns {PrintedHop[]}
 */
function hopsOfPromise (chain, promise, maxHops) {
  const context = contextTag.read(promise)
  const makerHops = chain.hops(context === OWN_WORK ? undefined : context)
  const settler = settlerOf(promise)
  const [first, ...others] = chain.hops(settler)
  if (first === undefined || settler === context?.parent) return makerHops
  /** @type {PrintedHop[]} */
  const hops = [{ ...first, origin: 'settled' }, ...others]
  const more = makerHops.filter((hop) => !hops.some(({ asyncId }) => asyncId === hop.asyncId))
  return hops.concat(more).slice(0, maxHops)
}

/**
 * Returns the context that a filter selects: the failing one, or the one behind Node's own ticks ("error"
 * events).
 * @param {Context | undefined} context
 * @param {(type: string) => boolean} isSelected
 * @returns {Context | undefined | null} null: it selects none
 */
function matching (context, isSelected) {
  if (context === undefined) return isSelected('unknown') ? undefined : null
  let ancestor = /** @type {Context | undefined} */ (context)
  for (; ancestor !== undefined; ancestor = ancestor.parent) {
    if (isSelected(ancestor.type)) return ancestor
    const frames = stackOf(ancestor)?.frames ?? []
    if (ancestor.type !== 'TickObject' || frames.some((frame) => frame.kind !== 'core')) return null
  }
  return null
}

/**
 * @template T
 * @param {() => T} create
 * @returns {() => T} which creates it with the first call
 */
function lazily (create) {
  /** @type {T | undefined} */
  let value
  return () => {
    value ??= create()
    return value
  }
}

module.exports = { createQueries }
