'use strict'

// mocha --require longstack/mocha: root hooks by which the leak gate checks each test and each file. A test
// fails through its hook's `this.test.error`, and Mocha continues with the next test; an error thrown by a
// root hook would end the run (Runner.prototype.hook, mocha's lib/runner.js).

require('../register')
const { shared } = require('../start')

/**
 * @typedef {import('./gate').Mark} Mark
 *
 * @typedef {object} Suite used properties of Mocha's suite
 * @property {boolean} root
 * @property {string} [file]
 * @property {Suite} [parent]
 * @property {Suite[]} suites
 * @property {Hook[]} _beforeAll
 * @property {Hook[]} _afterAll
 * @property {Hook[]} _afterEach
 * @property {(title: string, fn: Function) => void} beforeAll
 * @property {(title: string, fn: Function) => void} afterAll
 *
 * @typedef {{ fn: Function, parent: Suite, error: (error: Error) => void }} Hook
 *
 * @typedef {object} HookContext `this` of a hook
 * @property {Hook} test
 * @property {{ parent: Suite, file?: string, fullTitle: () => string }} currentTest
 * @property {(ms: number) => void} timeout
 */

const TITLE = 'longstack'
const gate = shared.createGate()
/** this file's hooks, which close nothing @type {WeakSet<Function>} */
const own = new WeakSet()
/** mark of all files of a run, from loading on */
let run = gate.beginFile()
/** @type {Mark | undefined} */
let current

/** @template {Function} F @param {F} hook @returns {F} */
function ownHook (hook) {
  own.add(hook)
  return hook
}

const beforeAll = ownHook(/** @this {HookContext} */ function () {
  const { parent: root } = this.test
  // Hooks at the top level of test files come after those of a plug-in, but must close their handles before.
  for (const hooks of [root._afterEach, root._afterAll]) {
    hooks.sort((a, b) => Number(own.has(a.fn)) - Number(own.has(b.fn)))
  }
  for (const file of new Set(root.suites.map((suite) => suite.file))) {
    watchFile(root.suites.filter((suite) => suite.file === file))
  }
})

/** Checks a file at the end of its last suite. @param {Suite[]} suites */
function watchFile (suites) {
  const { file } = suites[0]
  if (file === undefined) return
  /** @type {Mark | undefined} */
  let mark
  suites[0].beforeAll(TITLE, ownHook(() => { mark = gate.beginFile(file) }))
  suites[0]._beforeAll.unshift(/** @type {Hook} */ (suites[0]._beforeAll.pop()))
  suites[suites.length - 1].afterAll(TITLE, ownHook(/** @this {HookContext} */ async function () {
    this.timeout(0)
    const { parent } = this.test
    if (mark !== undefined && !canBeClosedAbove(parent)) await gate.endFile(mark)
  }))
}

const beforeEach = ownHook(/** @this {HookContext} */ function () {
  current = gate.begin(this.currentTest.fullTitle())
})

const afterEach = ownHook(/** @this {HookContext} */ async function () {
  this.timeout(0)
  const mark = current
  if (mark === undefined) return
  current = undefined
  const { parent } = this.currentTest
  const later = hasAfterHook(parent) || canBeClosedAbove(parent)
  await gate.end(mark, { later }).catch((error) => this.test.error(error))
})

const afterAll = ownHook(/** @this {HookContext} */ async function () {
  this.timeout(0)
  const mark = run
  run = gate.beginFile()
  await gate.endFile(mark)
})

/** Returns whether a hook of the program runs after all tests of a suite. @param {Suite} suite */
function hasAfterHook (suite) {
  return suite._afterAll.some(({ fn }) => !own.has(fn))
}

/** @param {Suite} suite returns whether an outer suite has such a hook */
function canBeClosedAbove ({ parent }) {
  for (let suite = parent; suite !== undefined; suite = suite.parent) if (hasAfterHook(suite)) return true
  return false
}

const mochaHooks = gate.mode === 'off' ? {} : { beforeAll, beforeEach, afterEach, afterAll }

module.exports = { mochaHooks }
