'use strict'

// node --test --import longstack/node-test: root hooks of node:test by which the leak gate checks each test
// and each file. Hooks that a test adds with t.after run after all afterEach hooks (Test.run, lib/internal/
// test_runner/test.js), so the gate adds its own hook there, as the last one.

const { AsyncResource } = require('node:async_hooks')
const { syncBuiltinESMExports } = require('node:module')
const { isMainThread } = require('node:worker_threads')

require('../register')
const { shared } = require('../start')

/**
 * @typedef {import('./gate').Mark} Mark
 * @typedef {import('node:test').TestContext & { passed?: boolean, filePath?: string }} TestContext
 * @typedef {Mark & { fullName: string, isConcurrent: boolean }} TestMark
 */

/** For child processes: the PID of a runner with one process per file, or DONE. */
const VARIABLE = '_LONGSTACK_NODE_TEST'
const DONE = 'done'
const SEPARATOR = ' > ' // in the full name of a test

/** Returns whether this process runs test files: not a test runner, worker, or child process of a test. */
function runsTests () {
  if (!isMainThread) return false
  const parent = process.env[VARIABLE]
  const isRunner = process.execArgv.includes('--test') &&
    !process.execArgv.some((flag) => /^--(experimental-)?test-isolation=none$/.test(flag))
  process.env[VARIABLE] = isRunner ? String(process.pid) : DONE
  return !isRunner && (parent === undefined || parent === String(process.ppid))
}

function install () {
  const gate = shared.createGate()
  if (gate.mode === 'off') return
  const nodeTest = require('node:test')
  const { after, afterEach, beforeEach } = nodeTest
  /** outside of any test, for root hooks */
  const outside = new AsyncResource('longstack')
  const file = gate.beginFile(process.argv[1])
  /** @type {WeakMap<TestContext, TestMark>} */
  const marks = new WeakMap()
  /** @type {Set<TestMark>} */
  const running = new Set()
  let isFileWatched = false
  /** hooks of the program run after all tests of a file or suite, and may close handles that a test opened */
  let hasAfterHooks = false
  nodeTest.after = function (...args) {
    hasAfterHooks = true
    return Reflect.apply(after, this, args)
  }
  syncBuiltinESMExports()

  beforeEach((context) => {
    const test = /** @type {TestContext} */ (context)
    // The file's top-level hooks are registered by now, and run before this one.
    if (!isFileWatched) outside.runInAsyncScope(() => after(() => gate.endFile(file)))
    isFileWatched = true
    const fullName = test.fullName ?? test.name
    const mark = { ...gate.begin(test.name), fullName, isConcurrent: false }
    for (const other of running) {
      if (fullName.startsWith(other.fullName + SEPARATOR)) continue
      mark.isConcurrent = other.isConcurrent = true
    }
    running.add(mark)
    marks.set(test, mark)
  })

  afterEach((context) => {
    const test = /** @type {TestContext} */ (context)
    const mark = marks.get(test)
    if (mark !== undefined) test.after(() => judge(test, mark), { timeout: Infinity })
  })

  /** @param {TestContext} test @param {TestMark} mark */
  async function judge (test, mark) {
    running.delete(mark)
    // If a test has failed, node:test drops errors thrown by its hooks.
    const later = hasAfterHooks || test.passed === false || mark.isConcurrent
    await gate.end(mark, { later, isShared: mark.isConcurrent })
  }
}

if (runsTests()) install()
