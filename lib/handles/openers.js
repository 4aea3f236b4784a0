'use strict'

// Openers of descriptors. No hook reports a synchronous call, so fs.open, fs.openSync, fs.close and
// fs.closeSync are replaced by functions of the addon, which do not appear in stacks (native/openers.cc).
// Openers stay unknown with the JavaScript engine.

const fs = require('node:fs')
const { current } = require('../core/current')
const kindTable = require('../core/kind-table')
const { resolve } = require('../core/lookup')
const { settings } = require('../settings')
const capture = require('../stacks/capture')
const { learn } = require('../stacks/capture-native')
const { wrap } = require('../wrap')

const NAMES = ['open', 'openSync', 'close', 'closeSync']
const TYPE = 'DESCRIPTOR' // as in subsystems.js

/**
 * @typedef {object} OpenerBinding the addon's part, see native/openers.cc
 * @property {(current: Int32Array, resolve: () => void, learn: StepLearner, openKind: number,
 *   openSyncKind: number) => void} start
 * @property {() => void} stop
 * @property {(name: string, fn: Function) => Function} standIn
 * @property {(fd: number) => [chain: number, cause: number, time: number, path: string] | undefined} openerOf
 *
 * @typedef {(result: number, parent: number, kind: number) => number} StepLearner
 */

/** put the functions back @type {Array<() => boolean>} */
let unwraps = []
/** by original: it has the same stand-in whenever it is replaced @type {WeakMap<Function, Function>} */
const standIns = new WeakMap()

/** @type {StepLearner} */
const learnStep = (result, parent, kind) => learn(result, parent, kind, learnStep)

/** @param {string} call @returns {number} of the kind of its step */
const kindOf = (call) => (kindTable.kinds.get(call) ?? kindTable.add(call)).number

/** @returns {OpenerBinding | undefined} */
const binding = () => capture.binding()?.openers

/** Has openers noted, or no longer. Called whenever options change. */
function applyOpeners () {
  const { enabled, isSelected } = settings
  const isOn = enabled && capture.name === 'native' && isSelected(TYPE)
  if (isOn) enable(/** @type {OpenerBinding} */ (binding()))
  else disable()
}

/** @param {OpenerBinding} openers */
function enable (openers) {
  openers.start(current, resolve, learnStep, kindOf('fs.open'), kindOf('fs.openSync'))
  if (unwraps.length > 0) return
  for (const name of NAMES) {
    const unwrap = wrap(fs, name, (method) => {
      const standIn = standIns.get(method) ?? openers.standIn(name, method)
      standIns.set(method, standIn)
      return standIn
    })
    if (unwrap !== undefined) unwraps.push(unwrap)
  }
}

/** What was open until then is forgotten: that it is closed goes unnoticed now. */
function disable () {
  for (const unwrap of unwraps) unwrap()
  unwraps = []
  binding()?.stop()
}

/** @param {number} fd */
const openerOf = (fd) => binding()?.openerOf(fd)

module.exports = { applyOpeners, openerOf }
