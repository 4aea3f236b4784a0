'use strict'

// Describes chains by their numbers, for profiles and spans: no record of a step is needed.

const { contextOfChain, OWN_WORK } = require('../context/context')
const { formatHops } = require('../format/hops')

const MAX_PLACES = 1000 // texts kept

/** @param {ReturnType<typeof import('../stacks/chain').createChain>} chain */
function createChainDescriber (chain) {
  /**
   * Returns the hops of a chain, newest first, at least one, and the type of its newest step, which may print
   * none.
   * @param {number} number
   * @returns {{ hops: Array<{ label: string, type: string, lines: string[] }>, type: string }}
   */
  return (number) => {
    if (number === OWN_WORK.chain) return withoutHops('longstack', 'longstack')
    const context = contextOfChain(number)
    if (context === undefined) return withoutHops('unknown', 'unknown') // forgotten, or never known
    const hops = chain.hops(context)
    return hops.length > 0 ? { hops, type: context.type } : withoutHops('process start', context.type)
  }
}

/** @param {string} label @param {string} type */
function withoutHops (label, type) {
  return { hops: [{ label, type, lines: [] }], type }
}

/** @param {ReturnType<typeof import('../stacks/chain').createChain>} chain */
function createChainTexts (chain) {
  /** @param {number} number @param {import('../format/hops').Manner} manner */
  const textOf = (number, manner) => formatHops(chain.hops(contextOfChain(number)), manner)
  return {
    /**
     * Returns the long stack of the place that made a span; equal places share their text.
     * @param {number} number of the chain
     */
    place: createPlaces((number) => textOf(number, { timeless: true, whole: true })),

    /** Returns the same for people. @param {number} number of the chain */
    chainText: (number) => textOf(number, { timeless: true })
  }
}

/**
 * Keeps the texts of places: spans come from few.
 * @param {(chain: number) => string} textOf
 */
function createPlaces (textOf) {
  /** @type {Map<number, string>} */
  let texts = new Map()

  /** @param {number} chain @returns {string | undefined} */
  return (chain) => {
    let text = texts.get(chain)
    if (text === undefined) {
      text = textOf(chain)
      if (texts.size >= MAX_PLACES) texts = new Map()
      texts.set(chain, text)
    }
    return text === '' ? undefined : text
  }
}

module.exports = { createChainDescriber, createChainTexts }
