'use strict'

// One tracer per thread, shared by all copies of the package: two copies must not hook twice. It is stored on
// the exports of a built-in module, which all realms of a thread share; test runners give each file its own
// global object. The key avoids collisions, and its number changes with the contract.

const asyncHooks = require('node:async_hooks')
const path = require('node:path')

const KEY = Symbol.for('longstack.tracer.3')

/**
 * @typedef {object} Shared
 * @property {import('./tracer').Tracer} tracer
 * @property {import('./api').Trace} trace
 * @property {() => import('./runners/gate').Gate} createGate for test runner plug-ins
 * @property {() => typeof import('./ask/session')} live handles commands
 */

/** @returns {Shared} */
function find () {
  const home = /** @type {{ [KEY]?: Shared }} */ (/** @type {unknown} */ (asyncHooks))
  if (home[KEY] === undefined) {
    const tracer = require('./tracer')
    /** @type {import('./api').Trace | undefined} */
    let trace
    const value = {
      tracer,
      // Created by the first require('longstack'); most programs under longstack/register never call it.
      get trace () {
        trace ??= require('./api').trace
        return trace
      },
      createGate: () => require('./runners/gate').createGate(),
      live: () => require('./ask/session')
    }
    Object.defineProperty(home, KEY, { value, enumerable: false, configurable: true })
  }
  const shared = /** @type {Shared} */ (home[KEY])
  shared.tracer.copies.add(path.dirname(__dirname))
  return shared
}

module.exports = find()
