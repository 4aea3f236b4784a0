// setupFiles: ['longstack/vitest']: hooks in each test file by which the leak gate checks its tests and the
// file. The gate is loaded in the main realm, whichever pool runs the file.

import { createRequire } from 'node:module'
// @ts-ignore Vitest resolves it to itself
import * as vitest from 'vitest'

/**
 * @typedef {object} Task of Vitest, see packages/runner/src/types/tasks.ts
 * @property {string} name
 * @property {Task} [suite]
 * @property {Task} [file]
 * @property {boolean} [concurrent]
 * @property {{ retryCount?: number }} [result]
 */

const { afterAll, afterEach, aroundEach, beforeEach, expect, TestRunner } = /** @type {any} */ (vitest)
const HOOK_MS = 60_000 // longer than any grace period of the gate

const require = createRequire(import.meta.url)
require('../register.js')
/** @type {import('../start.js').Started} */
const { shared } = require('../start.js')
const gate = shared.createGate()
/** @type {WeakMap<Task, import('./gate.js').Mark>} */
const marks = new WeakMap()
/** mark of the latest attempt of each test @type {WeakMap<Task, import('./gate.js').Mark>} */
const attempts = new WeakMap()

/** @param {Task | undefined} task @returns {string} name, prefixed by the names of its suites */
function nameOf (task) {
  if (task === undefined) return ''
  const outer = nameOf(task.suite)
  return outer === '' ? task.name : `${outer} ${task.name}`
}

/** Returns whether a later hook of the program may close handles that the test left. @param {Task} task */
function hasAfterAll (task) {
  const blocks = [task.file]
  for (let { suite } = task; suite !== undefined; suite = suite.suite) blocks.push(suite)
  return blocks.some((block) => {
    const { afterAll: hooks = [] } = (block && TestRunner?.getSuiteHooks?.(block)) ?? {}
    return hooks.length > (block === task.file ? 1 : 0) // one is this file's, wrapped by Vitest
  })
}

if (gate.mode !== 'off') {
  const file = gate.beginFile(expect.getState().testPath)

  beforeEach((/** @type {{ task: Task }} */ { task }) => {
    if (task.concurrent) return
    const mark = gate.begin(nameOf(task))
    const failed = attempts.get(task)
    if (failed !== undefined && Number(task.result?.retryCount) > 0) gate.retried(failed)
    attempts.set(task, mark)
    marks.set(task, mark)
  }, HOOK_MS)
  afterEach(async (/** @type {{ task: Task }} */ { task }) => {
    const mark = marks.get(task)
    marks.delete(task)
    if (mark !== undefined) await gate.end(mark, { later: hasAfterAll(task) })
  }, HOOK_MS)
  if (aroundEach !== undefined) { // since Vitest 4.1
    aroundEach(async (/** @type {() => Promise<void>} */ runTest, /** @type {{ task: Task }} */ { task }) => {
      if (!task.concurrent) return await runTest()
      const mark = gate.begin(nameOf(task))
      await gate.run(mark, runTest)
      await gate.end(mark, { later: hasAfterAll(task) })
    })
  }
  afterAll(() => gate.endFile(file), HOOK_MS) // after the file's own hooks
}
