'use strict'

// Openers of descriptors. No hook reports synchronous calls, so functions of the addon replace fs.open,
// fs.openSync, fs.close and fs.closeSync; they do not appear in stacks (native/openers.cc). With the
// JavaScript engine, openers stay unknown.

const fs = require('node:fs')
const { current } = require('../core/current')
const kindTable = require('../core/kind-table')
const { resolve } = require('../core/lookup')
const { getOrAdd } = require('../group-by')
const { settings } = require('../settings')
const capture = require('../stacks/capture')
const { learnUncounted } = require('../stacks/capture-native')
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

/** functions that restore the originals @type {Array<() => boolean>} */
let unwraps = []
/** by original, which gets the same stand-in each time @type {WeakMap<Function, Function>} */
const standIns = new WeakMap()

/** @type {StepLearner} */
const learnStep = (result, parent, kind) => learnUncounted(result, parent, kind, learnStep)

/** @param {string} call @returns {number} number of its step's kind */
const kindOf = (call) => (kindTable.kinds.get(call) ?? kindTable.add(call)).number

/** @returns {OpenerBinding | undefined} */
const binding = () => capture.binding()?.openers

/** Starts or stops recording openers. Called whenever options change. */
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
    const unwrap = wrap(fs, name, (method) => getOrAdd(standIns, method, () => openers.standIn(name, method)))
    if (unwrap !== undefined) unwraps.push(unwrap)
  }
}

/** Forgets the open descriptors, since their closing is no longer seen. */
function disable () {
  for (const unwrap of unwraps) unwrap()
  unwraps = []
  binding()?.stop()
}

/** @param {number} fd */
const openerOf = (fd) => binding()?.openerOf(fd)

module.exports = { applyOpeners, openerOf }
