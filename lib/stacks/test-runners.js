'use strict'

// Which frames are a test runner's, and where it calls the functions of tests, so that a chain tells of one
// test and not of its runner; which are those of a program that starts others: the one table of runners.

const { isProgram } = require('./frames')
const { afterLast, namesInModules, pathNames, withoutAlias } = require('./text-scan')

/**
 * @typedef {import('./frames').Frame} Frame
 * @typedef {NonNullable<ReturnType<typeof findRunner>>} RunnerFrames
 *
 * @typedef {object} Runner
 * @property {string} name
 * @property {Set<string>} entries its functions that call a test, a hook, or the main code of a test file
 *
 * @typedef {'entry' | 'runner' | 'helper'} Role
 *   of a hop: the runner called the test there, or was told of it; it has frames of the runner
 *   only, which goes from test to test, or which a test has called
 */

/** By the name or the scope of a package. @type {Map<string, Runner>} */
const runners = new Map()

/**
 * @param {string} name
 * @param {string} packages names or scopes, with spaces between
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
const NODE_TEST_RESOURCE = 'new Test' // of async_hooks: a chain leads to where the test was declared
const AVA_DECLARATIONS = 'create-chain.js' // the first test that is declared sets the tick of the start

/** What starts programs, by the name of its package. */
const launchers = new Set(['npm', 'pnpm', 'yarn', 'corepack', 'nodemon', 'pm2'])

/** What a test may call that goes on asynchronously: assertions of Ava, polling of Vitest and node:test. */
const helpers = new Set([
  'waitFor', 'waitUntil', 'checkCallback', 'handleTimeout', 'poll', 'check', 'throwsAsync', 'notThrowsAsync'
])

const NODE_TEST = 'node:internal/test_runner/'

/** @param {Pick<Frame, 'fileName' | 'kind'>} frame @returns {Runner | undefined} whose frame it is */
function runnerOf ({ fileName, kind }) {
  if (fileName === undefined || kind === 'user') return undefined
  if (kind === 'core') return fileName.startsWith(NODE_TEST) ? nodeTest : undefined
  return runners.get(namesInModules(fileName)?.[0] ?? '')
}

/**
 * Returns whether a frame is where a runner is told of a test.
 * @param {Runner} runner whose frame it is
 * @param {string} name of the function
 * @param {string | undefined} fileName
 */
function isDeclaring (runner, name, fileName) {
  if (runner === nodeTest) return name === NODE_TEST_RESOURCE
  return runner === ava && fileName?.endsWith(AVA_DECLARATIONS) === true
}

/**
 * Finds what the frames of a stack have to do with a test runner.
 * @param {Array<Pick<Frame, 'fileName' | 'functionName' | 'kind'>>} frames innermost first
 * @param {boolean} [isPresent] they are of a present stack, or of an error, not of a hop
 * @returns {{ role: Role, name: string, end: number } | undefined} end: of an entry, how many frames come
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

/** @param {string | undefined} fileName @returns {string | undefined} the launcher whose file it is */
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
 * Finds what started this process: the frames of a hop in another one are a launcher's and its packages'.
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
