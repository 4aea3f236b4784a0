'use strict'

// require: ['longstack/ava'] in Ava's configuration: the leak gate checks each test and each file. Ava has no
// hooks for all files, and accepts declarations only while the test file loads. So this wraps the object that
// the file will import from Ava: its first declaration adds the gate's hooks, and each test runs in its own
// resource, since the tests of a file run concurrently.

const { createRequire } = require('node:module')
const fs = require('node:fs')
const path = require('node:path')
const { pathToFileURL } = require('node:url')

require('../register')
const { shared } = require('../start')
const { attempt } = require('../files')

/**
 * @typedef {import('./gate').Mark} Mark
 * @typedef {{ title: string, passed?: boolean, timeout: (ms: number) => void }} ExecutionContext of Ava
 * @typedef {{ refs: { runnerChain: any } }} WorkerState of Ava
 */

const TITLE = 'longstack'

async function install () {
  const gate = shared.createGate()
  const state = gate.mode === 'off' ? undefined : await findState()
  if (state === undefined || typeof state.refs.runnerChain !== 'function') return
  const chain = state.refs.runnerChain
  /** by test title @type {Map<string, Mark>} */
  const marks = new Map()
  const file = gate.beginFile(fileOf(chain))
  let isDeclared = false
  let hasAfterHooks = false

  /** Called with each declaration, before Ava schedules its start with a tick. @param {string} name */
  function declareHooks (name) {
    if (/^test\.after(\.|$)/.test(name)) hasAfterHooks = true
    if (isDeclared) return
    isDeclared = true
    process.nextTick(() => {
      chain.serial.afterEach.always(TITLE, async (/** @type {ExecutionContext} */ t) => {
        const title = t.title.slice(`${TITLE} for `.length)
        const mark = marks.get(title)
        marks.delete(title)
        if (mark !== undefined) await gate.end(mark, { later: hasAfterHooks })
      })
      chain.serial.after.always(TITLE, () => gate.endFile(file))
    })
  }

  state.refs.runnerChain = wrapChain(chain, declareHooks, (implementation) => {
    return function (/** @type {ExecutionContext} */ t, /** @type {unknown[]} */ ...args) {
      const mark = gate.begin(t.title)
      marks.set(t.title, mark)
      return gate.run(mark, () => Reflect.apply(implementation, null, [t, ...args]))
    }
  })
}

/**
 * Wraps Ava's `test` with all its modifiers.
 * @param {any} chain
 * @param {(name: string) => void} beforeDeclaration receives the name of the modifier, such as test.before
 * @param {(implementation: Function) => Function} wrap wraps a test, not a hook
 * @returns {any}
 */
function wrapChain (chain, beforeDeclaration, wrap) {
  const isHook = /\.(before|after)/.test(chain.name)
  // The target is not the chain, whose read-only properties a proxy would have to return unwrapped.
  return new Proxy(() => {}, {
    apply (_, thisArg, args) {
      beforeDeclaration(chain.name)
      return Reflect.apply(chain, thisArg, isHook ? args : wrapImplementation(args, wrap))
    },
    has: (_, name) => name in chain,
    get (_, name) {
      const value = chain[name]
      if (typeof value !== 'function' || name === 'macro') return value
      if (name === 'skipIf' || name === 'runIf') {
        return (/** @type {unknown} */ condition) => wrapChain(value(condition), beforeDeclaration, wrap)
      }
      return wrapChain(value, beforeDeclaration, wrap)
    }
  })
}

/**
 * @param {unknown[]} args of a declaration: title, implementation or macro, and its arguments
 * @param {(implementation: Function) => Function} wrap
 */
function wrapImplementation (args, wrap) {
  const position = typeof args[0] === 'string' ? 1 : 0
  const implementation = /** @type {any} */ (args[position])
  const fn = implementation?.exec ?? implementation
  if (typeof fn !== 'function') return args
  const copy = [...args]
  copy[position] = { exec: wrap(fn), title: implementation.title }
  return copy
}

/** @param {any} chain of Ava @returns {string | undefined} the test file */
const fileOf = (chain) => attempt(() => new URL(chain.meta.file).pathname)

/**
 * Loads the module of Ava's worker that holds the object that a test file imports.
 * @returns {Promise<WorkerState | undefined>} undefined outside of an Ava worker, or for another version
 */
async function findState () {
  const main = createRequire(path.join(process.cwd(), 'package.json')).resolve('ava')
  const directory = path.join(main, '..', '..', 'lib', 'worker')
  const file = ['state.js', 'state.cjs'].map((name) => path.join(directory, name)).find(fs.existsSync)
  if (file === undefined) return undefined
  return file.endsWith('.cjs') ? require(file) : await import(pathToFileURL(file).href)
}

module.exports = Object.assign(install, { default: install })
