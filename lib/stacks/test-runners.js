'use strict'

// The only table of test runners: recognizes their frames and their calls of test functions, so that a chain
// shows one test and not its runner. Also recognizes frames of programs that launch others.

const { isProgram } = require('./frames')
const { afterLast, namesInModules, pathNames, withoutAlias } = require('./text-scan')

/**
 * @typedef {import('./frames').Frame} Frame
 * @typedef {NonNullable<ReturnType<typeof findRunner>>} RunnerFrames
 *
 * @typedef {object} Runner
 * @property {string} name
 * @property {Set<string>} entries its functions that call a test, a hook, or a test file's top-level code
 *
 * @typedef {'entry' | 'runner' | 'helper'} Role
 *   of a hop. entry: the runner called the test, or the test was declared; runner: only frames of the runner
 *   moving from test to test; helper: only frames of the runner called by a test
 */

/** By name or scope of the package. @type {Map<string, Runner>} */
const runners = new Map()

/**
 * @param {string} name
 * @param {string} packages space-separated names or scopes
 * @param {string[]} entries
 */
function addRunner (name, packages, ...entries) {
  const runner = { name, entries: new Set(entries) }
  for (const id of packages.split(' ')) runners.set(id, runner)
  return runner
}

const ava = addRunner('ava', 'ava', 'callFn', 'load')
addRunner('mocha', 'mocha', 'callFn', 'callFnAsync', 'requireModule', 'requireOrImport')
addRunner('jest', 'jest @jest jest-circus jest-cli jest-environment-jsdom jest-environment-node ' +
  'jest-jasmine2 jest-mock jest-runner jest-runtime jest-util jest-worker',
'callAsyncCircusFn', 'queueRunner', '_execModule', 'linkAndEvaluateModule')
addRunner('tap', 'tap @tapjs', 'main')
addRunner('vitest', 'vitest @vitest vite-node birpc tinypool',
  'runWithTimeout', 'runWithCancel', 'limiterFn', 'runTest', 'callSuiteHook')
const nodeTest = addRunner('node:test', 'node:test', 'run', 'new Suite')
const NODE_TEST_RESOURCE = 'new Test' // of async_hooks: a chain leads to the test's declaration
const AVA_DECLARATIONS = 'create-chain.js' // the first declared test schedules the tick of the start

/** Packages that launch programs, by name. */
const launchers = new Set(['npm', 'pnpm', 'yarn', 'corepack', 'nodemon', 'pm2'])

/** Asynchronous functions for tests to call: Ava's assertions, polling of Vitest and node:test. */
const helpers = new Set([
  'waitFor', 'waitUntil', 'checkCallback', 'handleTimeout', 'poll', 'check', 'throwsAsync', 'notThrowsAsync'
])

const NODE_TEST = 'node:internal/test_runner/'

/** @param {Pick<Frame, 'fileName' | 'kind'>} frame @returns {Runner | undefined} the frame's runner */
function runnerOf ({ fileName, kind }) {
  if (fileName === undefined || kind === 'user') return undefined
  if (kind === 'core') return fileName.startsWith(NODE_TEST) ? nodeTest : undefined
  return runners.get(namesInModules(fileName)?.[0] ?? '')
}

/**
 * Returns whether a frame declares a test to a runner.
 * @param {Runner} runner the frame's runner
 * @param {string} name of the function
 * @param {string | undefined} fileName
 */
function isDeclaring (runner, name, fileName) {
  if (runner === nodeTest) return name === NODE_TEST_RESOURCE
  return runner === ava && fileName?.endsWith(AVA_DECLARATIONS) === true
}

/**
 * Finds the test runner in a stack and its role.
 * @param {Array<Pick<Frame, 'fileName' | 'functionName' | 'kind'>>} frames innermost first
 * @param {boolean} [isPresent] the frames are of the current stack or of an error, not of a hop
 * @returns {{ role: Role, name: string, end: number } | undefined} end: for an entry, the number of frames
 *   before the runner's
 */
function findRunner (frames, isPresent = false) {
  let hasProgram = false
  /** @type {Runner | undefined} */
  let declaring
  /** @type {Runner | undefined} */
  let only
  let isHelper = false
  let end = -1
  for (let i = 0; i < frames.length; i++) {
    const frame = frames[i]
    const present = runnerOf(frame)
    if (present === undefined) {
      if (!isProgram(frame)) continue
      if (declaring !== undefined) return { role: 'entry', name: declaring.name, end: frames.length }
      hasProgram = true
      end = -1
    } else {
      if (end === -1) end = i
      const name = afterLast(withoutAlias(frame.functionName ?? ''), '.')
      const isEntry = present.entries.has(name) && (isPresent || present !== nodeTest)
      if (hasProgram && isEntry) return { role: 'entry', name: present.name, end }
      if (!hasProgram && isDeclaring(present, name, frame.fileName)) declaring = present
      only ??= present
      if (helpers.has(name)) isHelper = true
    }
  }
  if (hasProgram || only === undefined) return undefined
  return { role: isHelper ? 'helper' : 'runner', name: only.name, end: 0 }
}

/** @param {string | undefined} fileName @returns {string | undefined} the launcher that owns the file */
function launcherOf (fileName = '') {
  const names = pathNames(fileName)
  for (let i = 0; i + 1 < names.length; i++) {
    const isOfCorepack = names[i] === 'corepack' || names[i - 1] === 'corepack'
    if ((isOfCorepack || names[i] === 'node_modules') && launchers.has(names[i + 1])) return names[i + 1]
    if (names[i] === '.yarn' && names[i + 1] === 'releases') return 'yarn'
  }
  return undefined
}

/**
 * Finds the launcher that started this process: all frames of another process's hop belong to the launcher
 * and its packages.
 * @param {Array<Pick<Frame, 'fileName' | 'kind'>>} frames
 * @returns {{ role: 'helper', name: string, end: number } | undefined}
 */
function findLauncher (frames) {
  let name
  for (const { fileName, kind } of frames) {
    const launcher = kind === 'core' ? undefined : launcherOf(fileName)
    if (launcher === undefined && kind === 'user') return undefined
    name ??= launcher
  }
  return name === undefined ? undefined : { role: 'helper', name, end: 0 }
}

module.exports = { findLauncher, findRunner, runnerOf }
