'use strict'

// Runs a test runner the way users do: in its own project directory, with its own command line.

const fs = require('node:fs')
const path = require('node:path')
const { installRunner } = require('./install-runners')
const { node, register, root } = require('./run')

/** Variables that runners read from the environment, or that change their output. */
const QUIET = { CI: undefined, NO_COLOR: '1', GITHUB_ACTIONS: undefined, VITEST: undefined, JEST_WORKER_ID: undefined }

/** The preload, as NODE_OPTIONS. */
const preload = `-r ${JSON.stringify(register)}`

/**
 * @typedef {object} RunnerOptions
 * @property {Record<string, string>} files the project's files: contents by path
 * @property {string[]} [args] of the runner
 * @property {string | undefined} [nodeOptions] NODE_OPTIONS; default: the preload of this checkout
 * @property {Record<string, string | undefined>} [env]
 * @property {number} [timeout] ms
 */

/**
 * Declares one test per runner, skipped with a printed reason if a runner cannot be tested here. A project
 * finds its runner's packages, and this checkout as `longstack`.
 * @param {import('ava').TestFn} test
 * @param {string[]} runners workspaces of test/runners, such as ['jest30', 'jest29']
 * @param {string} title
 * @param {(t: import('ava').ExecutionContext,
 *   run: (options: RunnerOptions) => Promise<import('./run').Result>, runner: string) => Promise<void>} body
 */
function testRunners (test, runners, title, body) {
  for (const runner of runners) {
    const { reason } = installRunner(runner)
    if (reason === undefined) {
      test(`${runner}: ${title}`, (t) => body(t, (options) => runRunner(runner, options), runner))
    } else {
      console.log(`${runner} is not tested: ${reason}`)
      test.skip(`${runner}: ${title} (${reason})`, () => {})
    }
  }
}

/**
 * Runs a runner in a temporary project.
 * @param {string} runner
 * @param {RunnerOptions} options
 */
async function runRunner (runner, { files, args = [], nodeOptions = preload, env = {}, timeout }) {
  const { directory, reason } = installRunner(runner)
  if (directory === undefined) throw new Error(`${runner}: ${reason}`)
  const project = makeProject(directory, files)
  try {
    const command = findCommand(directory, runner.replace(/\d+$/, ''))
    const variables = { ...QUIET, NODE_OPTIONS: nodeOptions || undefined, ...env }
    return await node([command, ...args], { cwd: project, env: variables, timeout })
  } finally {
    fs.rmSync(project, { recursive: true, force: true, maxRetries: 5 })
  }
}

/**
 * Creates the project in the runner's directory, so that it finds the runner's packages.
 * @param {string} directory
 * @param {Record<string, string>} files
 */
function makeProject (directory, files) {
  const project = fs.realpathSync(fs.mkdtempSync(path.join(directory, 'project-')))
  for (const [name, text] of Object.entries({ 'package.json': '{ "name": "project", "private": true }\n', ...files })) {
    fs.mkdirSync(path.dirname(path.join(project, name)), { recursive: true })
    fs.writeFileSync(path.join(project, name), text)
  }
  fs.mkdirSync(path.join(project, '.git')) // ends the search for a configuration
  fs.mkdirSync(path.join(project, 'node_modules'), { recursive: true })
  fs.symlinkSync(root, path.join(project, 'node_modules', 'longstack'), 'junction')
  return project
}

/**
 * Returns the command line of a runner, from its package.
 * @param {string} directory @param {string} name such as 'jest'
 */
function findCommand (directory, name) {
  const packages = [directory, path.dirname(directory)].map((parent) => path.join(parent, 'node_modules', name))
  const installed = /** @type {string} */ (packages.find((candidate) => fs.existsSync(candidate)))
  const { bin } = JSON.parse(fs.readFileSync(path.join(installed, 'package.json'), 'utf8'))
  return path.join(installed, typeof bin === 'string' ? bin : bin[name])
}

module.exports = { testRunners, runRunner, installRunner, preload }
