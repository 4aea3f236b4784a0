'use strict'

// Results of trace.chain and trace.stack: the chain of an error, of any object backed by an async resource,
// or of the caller.

const { types } = require('node:util')
const { contextTag, settlerOf, OWN_WORK } = require('../core/context')
const { hopsOfError, stackText: stackOfError } = require('../attribution/error-hops')
const { hopsOfStep } = require('../attribution/queued-jobs')
const { mistake } = require('../errors')
const { unwrap } = require('../format/context-view')
const { copyChain, formatHops } = require('../format/hops')
const { currentContext } = require('../core/current-step')
const { settings } = require('../settings')
const { presentFrames, presentLines } = require('../stacks/hop-frames')
const { findContext } = require('./find')

/** @typedef {import('../stacks/chain').PrintedHop} PrintedHop */

/**
 * @param {unknown} target undefined: the caller
 * @param {Function} above the caller's frames start below this function
 * @returns {PrintedHop[]}
 */
function hopsOf (target, above) {
  if (target === undefined) return hopsOfStep(currentContext(), { above: presentFrames(above) })
  if (typeof target !== 'object' || target === null) throw mistake('INVALID_TARGET', target)
  const context = unwrap(target)
  if (context !== undefined) return hopsOfStep(context)
  if (types.isNativeError(target)) return hopsOfError(target)
  return types.isPromise(target) ? hopsOfPromise(target) : hopsOfStep(findContext(target))
}

/**
 * Returns the chain that settled a promise, followed by the chain that created it.
 * @param {Promise<unknown>} promise
 * @returns {PrintedHop[]}
 */
function hopsOfPromise (promise) {
  const context = contextTag.read(promise)
  const makerHops = hopsOfStep(context === OWN_WORK ? undefined : context)
  const settler = settlerOf(promise)
  const [first, ...others] = hopsOfStep(settler)
  if (first === undefined || settler === context?.parent) return makerHops
  /** @type {PrintedHop[]} */
  const settled = [{ ...first, origin: 'settled' }, ...others]
  const more = makerHops.filter((hop) => !settled.some(({ asyncId }) => asyncId === hop.asyncId))
  return settled.concat(more).slice(0, settings.options.depth)
}

/** Implements trace.chain. @param {unknown} target @param {Function} above */
const chainOf = (target, above) => copyChain(hopsOf(target, above))

/** Implements trace.stack. @param {unknown} target @param {Function} above */
function stackOf (target, above) {
  if (types.isNativeError(target)) return stackOfError(target)
  const text = formatHops(hopsOf(target, above))
  return target === undefined ? [...presentLines(above), text].filter(Boolean).join('\n') : text
}

module.exports = { chainOf, stackOf }
