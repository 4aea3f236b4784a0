'use strict'

// One tracer a thread, shared by every copy of the package: two copies must not hook twice. It is kept on the
// exports of a built-in module, which all realms of a thread share: test runners give each file a global
// object of its own. The key is no name that anybody could trip over, and changes with the contract.

const asyncHooks = require('node:async_hooks')
const path = require('node:path')

const KEY = Symbol.for('longstack.tracer.3')

/**
 * @typedef {object} Shared
 * @property {import('./tracer').Tracer} tracer
 * @property {import('./api').Trace} trace
 * @property {() => import('./runners/gate').Gate} createGate for the plug-ins of test runners
 * @property {() => typeof import('./ask/session')} live answers commands
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
      // Made by the first require('longstack'); most programs under longstack/register never do.
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
