'use strict'

// Calls functions of the addon as its standard input says: an array of [path, argument names]. Exits with 0
// whatever they return or throw.

const fs = require('node:fs')
const { loadBinding } = require('../../lib/stacks/binding')
const { makers } = require('./values')

/** @type {any} */
const binding = loadBinding().binding

/** Arguments as longstack itself gives them, or nearly. @type {Record<string, () => any>} */
const near = {
  'one float': () => new Float64Array(1),
  'no floats': () => new Float64Array(0),
  'two floats': () => new Float64Array([1e300, NaN]),
  'floats at the end': () => new Float64Array(new ArrayBuffer(64), 56),
  integers: () => new Uint32Array(2),
  'one integer': () => new Uint32Array(1),
  'integers at an offset': () => new Uint32Array(new ArrayBuffer(64), 12, 2),
  'shared integers': () => new Uint32Array(new SharedArrayBuffer(8)),
  memory: () => new ArrayBuffer(48),
  'little memory': () => new ArrayBuffer(8),
  'rejected promise': () => {
    const promise = Promise.reject(new Error('rejected'))
    promise.catch(() => {})
    return promise
  },
  capturing: () => () => binding.capture(),
  stepping: () => () => [1].map(() => binding.step(4, 5)),
  learning: () => () => binding.learn(),
  nesting: () => () => binding.nest(() => binding.learn()),
  disposing: () => () => {
    binding.watch.stop()
    binding.turns.stop()
    binding.markers.stop()
  },
  collecting: () => () => {
    const { gc } = /** @type {any} */ (globalThis)
    gc()
    return binding.capture()
  }
}

/** @param {string | number} name @returns {unknown} */
function argument (name) {
  if (typeof name === 'number') return name
  return (near[name] ?? makers[name])()
}

/** @param {string} path such as watch.start @returns {{ fn: Function }} */
function functionAt (path) {
  return { fn: path.split('.').reduce((object, name) => object[name], binding) }
}

/** @returns {string[]} paths of all functions */
function functionNames () {
  return Object.entries(binding).flatMap(([name, value]) =>
    typeof value === 'function' ? [name] : Object.keys(value).map((inner) => `${name}.${inner}`))
}

function main () {
  if (binding === undefined) return
  for (const [name, args] of JSON.parse(fs.readFileSync(0, 'utf8'))) {
    try {
      functionAt(name).fn(...args.map(argument))
    } catch {}
  }
  // What was started may call back from now on, and at the end.
  setImmediate(() => setImmediate(() => process.exit(0)))
}

process.on('uncaughtException', () => {})
if (require.main === module) main()

module.exports = { functionNames, near, hasBinding: binding !== undefined }
