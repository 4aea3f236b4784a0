'use strict'

// Describes chains by their numbers, for profiles and spans. Needs no record of a step.

const { contextOfChain, OWN_WORK } = require('../core/context')
const { getOrAdd } = require('../group-by')
const { hops } = require('../stacks/chain')
const { unfold } = require('../stacks/hop-folding')
const { formatHops } = require('./hops')

const MAX_PLACES = 1000 // texts kept

/** texts by chain: spans come from few places @type {Map<number, string>} */
let texts = new Map()

/**
 * Returns the hops of a chain, newest first, and the type of its newest step. Returns a substitute hop if the
 * chain has none to print.
 * @param {number} number
 * @returns {{ hops: Array<{ label: string, type: string, lines: string[] }>, type: string }}
 */
function describeChain (number) {
  if (number === OWN_WORK.chain) return withoutHops('longstack', 'longstack')
  const context = contextOfChain(number)
  if (context === undefined) return withoutHops('unknown', 'unknown') // forgotten, or never known
  const printed = unfold(hops(context))
  if (printed.length === 0) return withoutHops('process start', context.type)
  return { hops: printed, type: context.type }
}

/** @param {string} label @param {string} type */
function withoutHops (label, type) {
  return { hops: [{ label, type, lines: [] }], type }
}

/** Returns the chain of a place as short text. @param {number} number */
const chainText = (number) => formatHops(hops(contextOfChain(number)), { timeless: true })

/**
 * Returns the long stack of the place that created a span. Equal places share their text.
 * @param {number} number of the chain
 * @returns {string | undefined}
 */
function placeStack (number) {
  if (texts.size >= MAX_PLACES) texts = new Map()
  const text = getOrAdd(texts, number, () =>
    formatHops(hops(contextOfChain(number)), { timeless: true, whole: true }))
  return text === '' ? undefined : text
}

module.exports = { chainText, describeChain, placeStack }
