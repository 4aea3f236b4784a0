'use strict'

// The ids that async_hooks gave to promises. It keeps that id on the promise, under a symbol
// of its own (async_id_symbol in lib/internal/async_hooks.js).

/** @type {symbol | undefined} */
let idSymbol

/**
 * Returns the async id of a promise that async_hooks tracks, 0 if it gave the promise none.
 * @param {any} promise
 * @returns {number}
 */
function idOfTracked (promise) {
  idSymbol ??= Object.getOwnPropertySymbols(promise)
    .find((symbol) => symbol.description === 'async_id_symbol')
  const id = idSymbol === undefined ? undefined : promise[idSymbol]
  return typeof id === 'number' ? id : 0
}

module.exports = { idOfTracked }
