'use strict'

// The hops of errors: the flow that owns the error, then the flows that rejected with it and await it.

const guard = require('../core/guard')
const { formatHops, placeOf } = require('../format/hops')
const { className, own } = require('../objects')
const { startQuery } = require('../core/clock')
const { settings } = require('../settings')
const { noteStartUpError, readSites, sitesOfText, isStartUpError } = require('../stacks/call-sites')
const { describe, hops: hopsOf } = require('../stacks/chain')
const formatter = require('../stacks/formatter')
const { mapSites, mapText } = require('../stacks/source-maps')
const { hasHops } = require('../stacks/text-scan')
const { attribute } = require('./attribution')
const { findStep, isSame } = require('./flows')
const { formerState } = require('./former-state')
const { get: getObserved, observe } = require('./observed-errors')
const { areEqual, doubted } = require('./queued-jobs')

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 */

/** Origins of parts that are printed as one line about a connection. @type {Set<unknown>} */
const connectionOrigins = new Set(['opened', 'unasked', 'shared'])

const noLines = { lines: [], short: [] }

const noStack = { text: undefined, sites: undefined }

/** stack of a function that a timer called */
const WARM_STACK = '    at warm (longstack.js:1:1)\n    at listOnTimeout (node:internal/timers:1:1)'

/** Returns the hops of an error whose stack was formatted. @param {object} error */
const notedHopsOf = (error) => getObserved(error)?.hops

/** Reads a stack as the program would, which notes its hops if they are appended. @param {Error} error */
function readError (error) {
  observe(error) // before anything is made for the query
  return formatter.readStack(error)
}

/**
 * @param {Error} error
 * @param {import('../stacks/formatter').ReadStack} [read] its stack, if it was read for the query
 * @returns {PrintedHop[]}
 */
function hopsOfError (error, read) {
  const { text, sites } = read ?? (notedHopsOf(error) === undefined ? readError(error) : noStack)
  const hops = notedHopsOf(error)
  if (hops !== undefined || isStartUpError(error)) return hops ?? []
  // Another library formats, or did before, so only the text that Node wrote is available.
  const isLeftAlone = settings.enabled && settings.options.errors !== true
  const isReadable = sites === undefined && isLeftAlone && typeof text === 'string'
  const readableSites = isReadable ? sitesOfText(text) : sites
  if (readableSites === undefined) return attributedHops(error, undefined)
  if (noteStartUpError(error, readableSites)) return []
  report(error, readableSites)
  return notedHopsOf(error) ?? []
}

/**
 * @param {object} error
 * @param {NodeJS.CallSite[] | undefined} sites undefined if unknown
 * @returns {PrintedHop[]} per flow at most as many as a chain may have
 */
function attributedHops (error, sites) {
  const { frames } = readSites(sites ?? [])
  const parts = attribute(error, sites)
  const isAwaited = parts.some(({ origin }) => origin === 'awaited')
  const listener = settings.options.listeners ? require('./listener-places').listenerHops(sites ?? []) : []
  /** @type {PrintedHop[]} */
  const told = []
  parts.forEach(({ context, origin, label, doubt, isMarked, isRequestOnly, until, isPlace }, i) => {
    const isLine = context !== undefined && connectionOrigins.has(origin)
    if (isLine) return told.push(...connectionHops(context, origin, label, !isAwaited))
    const isEnd = until && ((/** @type {Context} */ step) => isSame(step, until))
    const above = i === 0 ? frames : undefined
    const hops = hopsOf(context, { above, told: frames, origin, printed: told.slice(), until: isEnd })
    if (isMarked && hops.length > 0) hops[0] = { ...hops[0], isMarked }
    if (isPlace && areFunctionsTold(hops[0], told)) return
    if (isRequestOnly) told.push(...doubted(hops.filter(({ isRequest }) => isRequest), doubt))
    else if (origin !== 'first') told.push(...doubted(hops, doubt))
    else told.push(...hops.slice(0, 1).map((hop) => until === undefined ? nameByRequest(hop, context) : hop))
  })
  return listener.concat(told, formerHops(error, parts, told, frames, sites ?? []))
}

/**
 * Returns the hops of the code that ended, sent, destroyed or aborted the object of an error, up to the first
 * hop that is already printed.
 * @param {object} error
 * @param {import('./attribution').Part[]} parts its owner and others
 * @param {PrintedHop[]} told hops of these
 * @param {import('../stacks/frames').Frame[]} frames of the error
 * @param {NodeJS.CallSite[]} sites of the error
 * @returns {PrintedHop[]}
 */
function formerHops (error, parts, told, frames, sites) {
  const former = formerState(error, parts, sites)
  if (former === undefined) return []
  const hops = hopsOf(former.context, { told: frames, origin: former.origin })
  if (hops.length === 0 || told.some(({ lines }) => areEqual(lines, hops[0].lines))) return []
  const end = hops.findIndex((hop, i) => i > 0 && told.some((other) => isSameHop(hop, other)))
  return end === -1 ? hops : hops.slice(0, end)
}

/** @param {PrintedHop} hop @param {PrintedHop} other */
function isSameHop (hop, other) {
  return hop.label === other.label && areEqual(hop.lines, other.lines) &&
    (hop.lines.length > 0 || hop.asyncId === other.asyncId)
}

/**
 * Whether all functions of a hop are already in other hops.
 * @param {PrintedHop | undefined} hop
 * @param {PrintedHop[]} told
 */
function areFunctionsTold (hop, told) {
  return hop === undefined || hop.frames.every(({ functionName, fileName }) => {
    return told.some(({ frames }) => frames.some((frame) => {
      return frame.functionName === functionName && frame.fileName === fileName
    }))
  })
}

/**
 * Returns a line about a connection, with its whole chain if `internals` is on. If neither the sender of the
 * query nor an awaiter is known, the program's code that opened it follows: a pool opens connections for the
 * queries it gets.
 * @param {Context} context
 * @param {any} origin
 * @param {string | undefined} request
 * @param {boolean} isOpenerTold whether the code that opened it follows
 * @returns {PrintedHop[]}
 */
function connectionHops (context, origin, request, isOpenerTold) {
  const hops = hopsOf(context)
  const { internals } = settings.options
  const opening = isOpenerTold && origin === 'unasked' && !internals ? hops.find(isOfProgram) : undefined
  const label = request ?? placeOf(hops) ?? 'code that is not known'
  const { lines, short } = opening === undefined || opening.isBehindRequest ? noLines : opening
  const line = { ...describe(context), label, origin, lines, short }
  if (origin === 'shared') line.ageMs = NaN
  return internals ? [line, ...hops] : [line]
}

/** @param {PrintedHop} hop */
const isOfProgram = ({ frames }) => frames.some(({ kind }) => kind === 'user')

/**
 * Returns the text to append to an error's stack, and notes its hops.
 * @param {object} error
 * @param {NodeJS.CallSite[]} sites
 */
function report (error, sites) {
  startQuery()
  const hops = attributedHops(error, sites)
  observe(error).hops = hops
  return isPlaceOfLog(error) ? '' : formatHops(hops)
}

/**
 * Makes hops for an error of longstack itself, so that everything is loaded and compiled before the program's
 * first error. Runs no code of the program. Takes about 5 ms once.
 */
function preload () {
  guard.run(() => {
    try {
      const sites = sitesOfText(WARM_STACK)
      mapSites(sites)
      report(new Error('warm'), sites)
    } catch {} // the program's stack may be full here
  })
}

/** Returns the hops of an error as text. @param {Error} error */
function hopsText (error) {
  startQuery()
  return formatHops(hopsOfError(error))
}

/** Returns the long stack of an error. @param {Error} error */
function stackText (error) {
  startQuery()
  const read = readError(error)
  const hops = hopsOfError(error, read)
  const text = String(read.text)
  if (hasHops(text)) return text
  const { enabled, options: { errors } } = settings
  const isMapped = errors === true || !enabled || !formatter.usesNodeFormatter()
  const head = isMapped ? text : mapText(text)
  return hops.length === 0 ? head : `${head}\n${formatHops(hops)}`
}

/** Returns the stack for a record of an error. @param {Error} error */
function errorStack (error) {
  if (settings.options.errors !== true) return stackText(error)
  startQuery()
  const { text } = readError(error)
  return typeof text === 'string' ? text : undefined
}

/**
 * @param {PrintedHop} hop
 * @param {import('../core/context').Context | undefined} context
 */
function nameByRequest (hop, context) {
  const step = findStep(context, ({ request }) => request !== undefined, Infinity)
  return step === undefined ? hop : { ...hop, label: /** @type {string} */ (step.request) }
}

/**
 * Returns whether an error only tells Jest the place of a console call: below the logged text Jest prints its
 * first frame, and all lines that are no frames.
 * @param {object} error
 */
function isPlaceOfLog (error) {
  return className(error) === 'ErrorWithStack' && own(error, 'message') === undefined
}

module.exports = { errorStack, hopsOfError, hopsText, preload, report, stackText }
