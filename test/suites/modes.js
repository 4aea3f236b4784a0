'use strict'

// The ways in which other people's tests are run: without a preload, with an empty hook, and with longstack
// in each of its modes.

const path = require('node:path')
const { register } = require('../helpers/run')

const emptyHook = path.join(__dirname, 'empty-hook.js')
const blockedListener = path.join(__dirname, 'blocked-listener.js')
const lineDropper = path.join(__dirname, 'line-dropper.js')

/**
 * @typedef {'bare' | 'hook' | Mode} Column
 * @typedef {'full' | 'js' | 'spans' | 'stdout'} Mode
 */

/** What each mode sets, by mode. @type {Record<Mode, (directory: string) => Record<string, string>>} */
const settings = {
  full: () => ({}),
  js: () => ({ LONGSTACK_CAPTURE: 'js' }),
  spans: (directory) => ({ LONGSTACK_SPANS: path.join(directory, 'spans.ndjson'), LONGSTACK_BLOCKED: '200' }),
  stdout: () => ({ LONGSTACK_SPANS: '-', LONGSTACK_BLOCKED: '200' })
}

const modes = /** @type {Mode[]} */ (Object.keys(settings))

/** All but those whose lines appear in what the tests print. */
const defaultModes = modes.filter((mode) => mode !== 'stdout')

/** What the runner of our own tests, or a user, has set: it would reach the tests that are run. */
const foreign = /^(LONGSTACK|NODE_|AVA_|CI$|FORCE_COLOR|NO_COLOR|npm_)/

/**
 * Makes the environment of a process. The preload stands in NODE_OPTIONS, so that child processes and workers
 * of the tests have it, too.
 * @param {Column} column
 * @param {string} directory for the files that longstack writes
 * @param {object} [options]
 * @param {string} [options.preload] what stands for longstack
 * @param {boolean} [options.keepsStacks] leaves `.stack` as Node makes it
 * @param {boolean} [options.dropsLines] spans are not written, but take their whole way until then
 * @returns {Record<string, string | undefined>}
 */
function environmentOf (column, directory, options = {}) {
  const { dropsLines = false, keepsStacks = false, preload = dropsLines ? lineDropper : register } = options
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)))
  if (column === 'bare') return clean
  if (column === 'hook') return { ...clean, NODE_OPTIONS: requireOption(emptyHook) }
  const preloads = column === 'spans' || column === 'stdout' ? [blockedListener, preload] : [preload]
  return {
    ...clean,
    NODE_OPTIONS: preloads.map(requireOption).join(' '),
    ...settings[column](directory),
    ...(keepsStacks && { LONGSTACK_ERRORS: 'off' })
  }
}

/** @param {string} file @returns {string} in a form that NODE_OPTIONS understands */
function requireOption (file) {
  return `--require="${file.replace(/[\\"]/g, '\\$&')}"`
}

/**
 * Checks the names of modes that a command was called with.
 * @param {string} [list] separated by commas
 * @returns {Mode[]} without a list, all but `stdout`
 */
function parseModes (list) {
  const names = list?.split(',') ?? defaultModes
  const unknown = names.filter((name) => !Object.hasOwn(settings, name))
  if (unknown.length > 0) throw new TypeError(`Unknown mode "${unknown[0]}", expected one of ${modes.join(', ')}`)
  return /** @type {Mode[]} */ (names)
}

module.exports = { environmentOf, parseModes }
