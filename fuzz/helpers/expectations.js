'use strict'

const { isHostile } = require('./values')

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

module.exports = { mustThrowCode }
