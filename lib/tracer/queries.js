'use strict'

// What recorded contexts are turned into when somebody asks: chains, stories of errors, reports. None of this is
// needed to record, so it is loaded with the first question; most runs of a program never ask. What an error
// needs is loaded with this file, all else with the first question for it: an error's reader does not wait
// for that.

const { types } = require('node:util')
const guard = require('../context/guard')
const { contextOfChain, contextTag, settlerOf, OWN_WORK } = require('../context/context')
const { createViews } = require('../context/view')
const { mistake } = require('../errors')
const { userOf } = require('../handles/last-user')
const { createThreadLayer } = require('../hooks/threads')
const { createAttribution } = require('../attribution/attribution')
const { createChain } = require('../stacks/chain')
const { createStackReader } = require('../stacks/frames')
const { noteStartUpError, readSites, sitesOfText, isStartUpError } = require('../stacks/call-sites')
const { mapFrame, mapSites, mapText } = require('../stacks/source-maps')
const { captureInto } = require('../stacks/trace-limit')
const { formatHops } = require('../format/hops')

const connections = new Set(['TCPWRAP', 'PIPEWRAP', 'TLSWRAP'])
const PLACES = 1000 // texts kept

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('../stacks/chain').Hop} Hop
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('../context/view').ContextView} ContextView
 * @typedef {import('../handles/why').Why} Why
 */

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('../hooks/async-hooks').createAsyncLayer>} deps.asyncLayer
 * @param {import('../stacks/capture').Capture} deps.capture
 * @param {ReturnType<typeof import('../attribution/observed-errors').createObservedErrors>} deps.observedErrors
 * @param {import('../handles/registry').Registry} deps.registry
 * @param {(read: () => string) => string} deps.withPlainFormat
 * @param {ReturnType<typeof import('../stacks/formatter').createFormatter>['readStack']} deps.readStack
 * @param {() => boolean} deps.usesNodeFormatter Node's own formatter formats stacks
 * @param {() => import('../options').Options} deps.options
 * @param {() => number} deps.now
 * @param {() => number} deps.queriedAt when the present question was asked
 * @param {() => boolean} deps.enabled
 * @param {(count: number) => void} deps.dropped
 * @param {(socket: object) => Why['through']} deps.through
 */
function createQueries ({ asyncLayer, capture, observedErrors, registry, withPlainFormat, readStack, usesNodeFormatter, options, now, queriedAt, enabled, dropped, through }) {
  const stackOf = (/** @type {Context} */ context) => context.stack
  const readFrames = createStackReader()
  const threads = createThreadLayer(asyncLayer.root)
  const { root } = asyncLayer
  const current = () => folded(asyncLayer.currentContext())
  const user = (/** @type {Context} */ connection) => connections.has(connection.type) ? userOf(registry.get(connection.asyncId)) : undefined
  const attribution = createAttribution({ root, current, stackOf, observedErrors, isReused: asyncLayer.isReusedTimer, user })
  const chain = createChain({ stackOf, options, map: mapFrame, queriedAt, dropped })
  const { view, unwrap } = createViews({ now, describe: (context) => guard.run(() => chain.describe(context)) })
  const reports = lazily(() => {
    const { createReports } = require('../handles/why')
    return createReports({ registry, hops: chain.hops, copyHop: plain, stackOf, queriedAt, enabled, through })
  })
  const paths = lazily(() => require('../spans/wait-sites').createPaths({ stackOf, registry }))
  const blocked = lazily(() => {
    return require('../blocked/report-hops').createBlockedHops({ chain, view, toHop: plain, maxFrames: () => options().frames })
  })

  /**
   * @param {unknown} target
   * @param {Function} above
   * @returns {PrintedHop[]}
   */
  function hopsOf (target, above) {
    if (target === undefined) return chain.hops(asyncLayer.currentContext(), { above: presentFrames(above) })
    if (typeof target !== 'object' || target === null) throw mistake('INVALID_TARGET', target)
    const inside = unwrap(target)
    if (inside !== undefined) return chain.hops(inside)
    if (types.isNativeError(target)) return hopsOfError(target)
    if (types.isPromise(target)) return hopsOfPromise(target)
    return chain.hops(reports().findContext(target))
  }

  /** Walks along a chain are short once it is folded. @param {Context | undefined} context */
  function folded (context) {
    if (context !== undefined && !context.folded) chain.foldLoops(context)
    return context
  }

  /** The hops of an error whose stack was formatted. @param {object} error */
  const notedHopsOf = (error) => observedErrors.get(error)?.hops

  /** @param {Error} error @returns {PrintedHop[]} */
  function hopsOfError (error) {
    observedErrors.observe(error) // before anything is made for the answer
    const sites = notedHopsOf(error) === undefined ? readStack(error) : undefined
    const hops = notedHopsOf(error)
    if (hops !== undefined || isStartUpError(error)) return hops ?? []
    // Somebody else formats, or did before: of what Node wrote the text has to do.
    const seen = sites ?? (isLeftAlone() && typeof error.stack === 'string' ? sitesOfText(error.stack) : undefined)
    if (seen === undefined) return storyOf(error, undefined)
    if (noteStartUpError(error, seen)) return []
    story(error, seen)
    return notedHopsOf(error) ?? []
  }

  /** Is `.stack` left to Node? */
  const isLeftAlone = () => enabled() && !options().errors

  /**
   * Whose error it is, then who rejected with it and who waited, each of them at most as long as a chain may be.
   * @param {object} error
   * @param {NodeJS.CallSite[] | undefined} sites undefined: they are not known
   */
  function storyOf (error, sites) {
    const { frames } = readSites(sites ?? [])
    const [first, ...others] = attribution.attribute(error, sites)
    if (first === undefined) return []
    const hops = chain.hops(first.context, { above: frames, origin: first.origin })
    return others.length === 0 ? hops : hops.concat(...others.map(({ context, origin }) => chain.hops(context, { origin })))
  }

  /**
   * Returns what trace.stack returns.
   * @param {unknown} target
   * @param {Function} above frames of the asker start below this function
   * @returns {string}
   */
  function stackText (target, above) {
    const hops = hopsOf(target, above)
    if (target === undefined) return [...presentLines(above), formatHops(hops)].filter(Boolean).join('\n')
    if (!types.isNativeError(target)) return formatHops(hops)
    const shown = String(target.stack)
    if (shown.includes('\n  ── ')) return shown
    const { errors, internals } = options()
    const head = errors || !enabled() || !usesNodeFormatter() ? shown : mapText(shown, internals)
    return hops.length === 0 ? head : `${head}\n${formatHops(hops)}`
  }

  /** The present stack without Node's frames, as lines. @param {Function} above */
  function presentLines (above) {
    return presentFrames(above).filter((frame) => frame.kind !== 'core').map((frame) => `    at ${mapFrame(frame).text}`)
  }

  /** Who settled it, then who made it. @param {Promise<unknown>} promise @returns {PrintedHop[]} */
  function hopsOfPromise (promise) {
    const context = contextTag.read(promise)
    const made = chain.hops(context === OWN_WORK ? undefined : context)
    const by = settlerOf(promise)
    const [first, ...others] = chain.hops(by)
    if (first === undefined || by === context?.parent) return made
    /** @type {PrintedHop[]} */
    const list = [{ ...first, origin: 'settled' }, ...others]
    return list.concat(made.filter((hop) => !list.some((one) => one.asyncId === hop.asyncId))).slice(0, options().depth)
  }

  /** @param {Function} above @param {number} [most] @returns {import('../stacks/frames').Frame[]} */
  function presentFrames (above, most = options().frames + 10) {
    const holder = /** @type {any} */ ({ __proto__: null })
    captureInto(holder, above, most)
    const present = withPlainFormat(() => holder.stack)
    return typeof present === 'string' ? readFrames(present) : []
  }

  /**
   * Returns what is appended to an error's stack.
   * @param {object} error
   * @param {NodeJS.CallSite[]} sites
   */
  function story (error, sites) {
    const hops = storyOf(error, sites)
    observedErrors.observe(error).hops = hops
    return formatHops(hops)
  }

  /**
   * Makes hops for an error that nobody made, so that the program's first error finds everything loaded and
   * compiled. Runs no code of the program. Takes about 5 ms once.
   */
  function warm () {
    guard.run(() => {
      try {
        const sites = warmSites()
        mapSites(sites)
        story(new Error('warm'), sites)
      } catch {} // the program's stack may be full here
    })
  }

  return {
    hopsOf,
    plain,
    text: formatHops,
    view,
    fold: chain.foldLoops,
    /** @type {ReturnType<typeof reports>['why']} */
    why: (target) => reports().why(target),

    /** @type {ReturnType<typeof reports>['handles']} */
    handles: (matches) => reports().handles(matches),

    /** @type {ReturnType<typeof blocked>} */
    blocked: (context, inside) => blocked()(context, inside),

    warm,

    stackText,
    presentLines,

    /** The frames of a context, as lines. @param {Context} context */
    lines: (context) => chain.describe(context).lines.join('\n'),

    story,

    /** The long stack of the place that made a span; equal places share their text. @param {number} number of the chain */
    place: createPlaces((number) => formatHops(chain.hops(contextOfChain(number)), true)),

    /** Where a span waited, in words. @param {import('../spans/span').Span} span */
    pathOf: (span) => paths().pathOf(span),

    /** @param {Error} error */
    errorStack (error) {
      if (!options().errors) return stackText(error, story)
      const { stack } = error
      return typeof stack === 'string' ? stack : undefined
    },

    /** The report of everything open, for a terminal. @param {(type: string) => boolean} selected */
    summary (selected) {
      const { summary } = require('../format/handles')
      return require('../format/paint').paint(summary(reports().handles(selected)))
    },

    /** A worker is made: its story goes along. @param {Context} context */
    worker: (context) => threads.starting(chain.hops(context)),

    /**
     * The context that a filter selects: the failing one, or the one behind Node's own ticks ("error" events).
     * @param {Context | undefined} context
     * @param {(type: string) => boolean} matches
     * @returns {Context | undefined | null} null where it selects none
     */
    matching (context, matches) {
      if (context === undefined) return matches('unknown') ? undefined : null
      for (let one = /** @type {Context | undefined} */ (context); one !== undefined; one = one.parent) {
        if (matches(one.type)) return one
        const frames = stackOf(one)?.frames ?? []
        if (one.type !== 'TickObject' || frames.some((frame) => frame.kind !== 'core')) return null
      }
      return null
    }
  }
}

/** Returns call sites as of a function that a timer called. @returns {NodeJS.CallSite[]} */
function warmSites () {
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

/** @template T @param {() => T} make @returns {() => T} which makes it with the first call */
function lazily (make) {
  /** @type {T | undefined} */
  let made
  return () => {
    made ??= make()
    return made
  }
}

/** Spans come from few places: their texts are kept. @param {(chain: number) => string} textOf */
function createPlaces (textOf) {
  /** @type {Map<number, string>} */
  let known = new Map()

  /** @param {number} chain @returns {string | undefined} */
  return (chain) => {
    let place = known.get(chain)
    if (place === undefined) {
      place = textOf(chain)
      if (known.size >= PLACES) known = new Map()
      known.set(chain, place)
    }
    return place === '' ? undefined : place
  }
}

/** Copies what the program may get of a hop. @param {PrintedHop} hop @returns {Hop} */
function plain ({ asyncId, triggerAsyncId, type, label, ageMs, repeats, origin, frames: shared }) {
  const frames = shared.map((frame) => ({ ...frame }))
  return { asyncId, triggerAsyncId, type, label, ageMs, repeats, origin, frames }
}

module.exports = { createQueries }
