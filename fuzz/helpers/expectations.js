'use strict'

const { isHostile } = require('./values')

/** Characters that a terminal or an editor takes for commands. */
// eslint-disable-next-line no-control-regex
const COMMANDS = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/
const CONTEXT_CHARACTERS = 60

/**
 * Calls a function of the public object. It may throw only errors of the catalogue.
 * @template T
 * @param {() => T} call
 * @param {{ allowsHostile?: boolean }} [options] allowsHostile: what an argument itself threw may pass
 * @returns {T | undefined}
 */
function mustThrowCode (call, { allowsHostile = false } = {}) {
  try {
    return call()
  } catch (error) {
    if (allowsHostile && isHostile(error)) return undefined
    const { code, message, stack } = /** @type {any} */ (error) ?? {}
    const isFromCatalogue = error instanceof TypeError && /^LONGSTACK_ERR_/.test(code)
    if (isFromCatalogue && typeof message === 'string') return undefined
    throw new Error(`thrown without a code: ${stack ?? String(error)}`, { cause: error })
  }
}

/**
 * Throws if a text has characters that a terminal takes for commands.
 * @param {string} name of the output
 * @param {string} text
 */
function expectHarmless (name, text) {
  const match = COMMANDS.exec(text)
  if (match === null) return
  const start = Math.max(0, match.index - CONTEXT_CHARACTERS)
  const around = JSON.stringify(text.slice(start, match.index + CONTEXT_CHARACTERS))
  throw new Error(`${name} prints U+${match[0].charCodeAt(0).toString(16)}: ${around}`)
}

module.exports = { expectHarmless, mustThrowCode }
