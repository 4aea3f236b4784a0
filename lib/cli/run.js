'use strict'

// longstack run: node -r longstack/register, with a flag for every option. The program replaces this process
// where Node has process.execve (22.15 and later, not on Windows), and so keeps its signals, standard
// streams, process id and exit code; elsewhere it is a child, to which they are passed through.
// longstack doctor: prints trace.doctor() of a process that runs nothing else.

const { DEFAULTS } = require('./commands')
const { integer } = require('./flags')
const { variablesOf, wordsOf } = require('./node-options')
const { asJson, print } = require('./terminal')

/** @type {import('./commands').Main} operands: script and its arguments */
async function run (values, operands) {
  const env = { ...process.env, ...variablesOf(values) }
  const preloads = ['-r', require.resolve('../register')]
  const watches = { failMs: quietMs(values, 'fail-on-leak'), reportMs: quietMs(values, 'why-still-running') }
  if (watches.failMs !== undefined || watches.reportMs !== undefined) {
    preloads.push('-r', require.resolve('../leak-watch'))
    Object.assign(env, require('../leak-watch').leakWatchEnvironment(watches))
  }
  const nodeOptions = wordsOf(values['node-options'] ?? '', '--node-options').map(({ value }) => value)
  const separator = operands[0].startsWith('-') ? ['--'] : []
  const { replaceProcess } = require('./replace-process')
  return await replaceProcess([...nodeOptions, ...preloads, ...separator, ...operands], env)
}

/**
 * @param {Record<string, any>} values
 * @param {string} flag
 * @returns {number | undefined} undefined: not asked
 */
function quietMs (values, flag) {
  const value = values[flag]
  return value === undefined || value === true ? value && DEFAULTS.quietMs : integer(flag, value, 1)
}

/** @type {import('./commands').Main} */
async function doctor ({ json }) {
  const trace = require('../../index').enable()
  const { text, ...data } = trace.doctor()
  trace.disable()
  await print(json ? asJson(data) : `${text.trimEnd()}\n`)
}

module.exports = { doctor, run }
