'use strict'

// The references of promises to which async_hooks gave an id. It keeps that id on the promise, under a symbol
// of its own (async_id_symbol in lib/internal/async_hooks.js).

/** @type {symbol | undefined} */
let idSymbol

/**
 * Returns the reference of a promise that async_hooks tracks, 0 if it gave the promise no id.
 * @param {any} promise
 * @returns {number}
 */
function refOfTracked (promise) {
  idSymbol ??= Object.getOwnPropertySymbols(promise)
    .find((symbol) => symbol.description === 'async_id_symbol')
  const id = idSymbol === undefined ? undefined : promise[idSymbol]
  return typeof id === 'number' ? id << 1 : 0
}

module.exports = { refOfTracked }
