'use strict'

// setupFilesAfterEnv: ['longstack/jest']: hooks in each test file by which the leak gate checks its tests and
// the file. The hooks run in the realm of the test file, the gate in the main one: fake timers do not stop
// it.

require('../register')
const { shared } = require('../start')

/**
 * @typedef {import('./gate').Mark} Mark
 *
 * @typedef {{ type: string, fn: Function }} Hook hook of jest-circus, see packages/jest-types/src/Circus.ts
 * @typedef {object} Block
 * @property {Block} [parent]
 * @property {Hook[]} hooks
 * @property {Array<Block & Test & { type: string }>} children
 * @typedef {{ parent: Block, fn: Function, concurrent?: boolean, name: string }} Test
 * @typedef {{ rootDescribeBlock: Block, currentlyRunningTest: Test | null }} State
 */

const HOOK_MS = 60_000 // longer than any grace period of the gate
const OWN_LAST = 2 // number of hooks of this file that come after all others

const { afterAll, afterEach, beforeAll, beforeEach, expect } = /** @type {any} */ (require)('@jest/globals')
const gate = shared.createGate()
/** this file's hooks, which close nothing @type {Set<Function>} */
const own = new Set()
/** @type {Mark | undefined} */
let current
/** mark of the latest attempt of each test: Jest may retry @type {WeakMap<Test, Mark>} */
const attempts = new WeakMap()

/** Returns the state of jest-circus; undefined with another test runner. @returns {State | undefined} */
function circus () {
  const symbols = Object.getOwnPropertySymbols(globalThis)
  const key = symbols.find(({ description }) => description === 'JEST_STATE_SYMBOL')
  return key === undefined ? undefined : /** @type {any} */ (globalThis)[key]
}

/** Returns whether a later hook of the program may close handles that the test left. @param {Block} block */
function hasAfterAll (block) {
  for (let outer = /** @type {Block | undefined} */ (block); outer !== undefined; outer = outer.parent) {
    if (outer.hooks.some(({ type, fn }) => type === 'afterAll' && !own.has(fn))) return true
  }
  return false
}

/**
 * Checks each concurrent test by itself: Jest calls no hooks around them.
 * @param {Block} block
 */
function watchConcurrent (block) {
  for (const child of block.children) {
    if (child.type === 'describeBlock') watchConcurrent(child)
    if (child.type !== 'test' || child.concurrent !== true || typeof child.fn !== 'function') continue
    const { fn } = child
    child.fn = async (/** @type {unknown[]} */ ...args) => {
      const mark = gate.begin(child.name)
      const result = await gate.run(mark, () => fn(...args))
      await gate.end(mark, { later: hasAfterAll(child.parent) })
      return result
    }
  }
}

function addHooks () {
  const file = gate.beginFile(expect.getState().testPath)
  const state = circus()

  const hooks = {
    start () {
      if (state !== undefined) watchConcurrent(state.rootDescribeBlock)
    },
    begin () {
      current = gate.begin(expect.getState().currentTestName ?? 'a test')
      const test = state?.currentlyRunningTest
      const failed = test ? attempts.get(test) : undefined
      if (failed !== undefined) gate.retried(failed)
      if (test) attempts.set(test, current)
    },
    async end () {
      const mark = current
      current = undefined
      if (mark === undefined) return
      const test = state?.currentlyRunningTest
      await gate.end(mark, { later: test ? hasAfterAll(test.parent) : false })
    },
    endFile: () => gate.endFile(file)
  }
  for (const hook of Object.values(hooks)) own.add(hook)
  beforeAll(hooks.start, HOOK_MS)
  beforeEach(hooks.begin, HOOK_MS)
  afterEach(hooks.end, HOOK_MS)
  afterAll(hooks.endFile, HOOK_MS)
  if (state !== undefined) keepLast(state.rootDescribeBlock.hooks)
}

/**
 * Keeps our last hooks last: hooks at the top level of a test file are added after them, but must close their
 * handles before.
 * @param {Hook[]} hooks
 */
function keepLast (hooks) {
  Object.defineProperty(hooks, 'push', {
    value: (/** @type {Hook[]} */ ...added) => {
      hooks.splice(hooks.length - OWN_LAST, 0, ...added)
      return hooks.length
    },
    enumerable: false,
    configurable: true
  })
}

if (gate.mode !== 'off') addHooks()
