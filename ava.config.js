'use strict'

const os = require('node:os')
const path = require('node:path')
const { loadBinding } = require('./lib/stacks/binding')
const { strict } = require('./test/helpers/installed')
const { testFiles } = require('./test/helpers/scope')
const { timeFactor } = require('./test/helpers/time-factor')

/** The files that take longest, longest first: one that began last would run alone at the end. */
const slowest = [
  'package/transparent-suites', 'faults/workers', 'report/verdict', 'blocked/blocked',
  'blocked/blocked-away', 'examples/bench', 'examples/articles-servers', 'examples/articles',
  'layouts/matrix', 'package/types', 'package/registry', 'package/install', 'attribution/random-programs',
  'spans/spans-load', 'native/native-fire', 'sinks/sinks-turns', 'report/page-browser', 'sinks/otlp',
  'sinks/otlp-jaeger', 'package/invisible', 'spans/spans-web', 'chains/memory', 'chains/overflow',
  'spans/spans-time', 'attribution/attribution', 'spans/critical-path', 'spans/spans',
  'native/native-matches-js', 'stacks/patched-builtins', 'stacks/odd-errors', 'chains/modes',
  'chains/without-promises', 'transparency/objects'
].map((name) => path.join(__dirname, 'test', `${name}.test.js`))

/** @param {string} file @returns {number} */
function rank (file) {
  const index = slowest.indexOf(file)
  return index === -1 ? slowest.length : index
}

/** @returns {Record<string, string>} without the addon, what `ENGINE=js npx ava` does */
function environment () {
  const { failure } = loadBinding()
  if (failure === undefined || process.env.ENGINE !== undefined || strict) return {}
  console.error(`The native engine is not tested, there is no addon for this Node: ${failure.code}`)
  return { ENGINE: 'js' }
}

module.exports = {
  // Tests mostly wait for processes that they start: with one more at a time, CI is done within the hour
  ...(strict && { concurrency: os.availableParallelism() + 1 }),
  environmentVariables: environment(),
  files: testFiles(),
  sortTestFiles: (a, b) => rank(a) - rank(b) || (a < b ? -1 : 1),
  timeout: `${5 * timeFactor}m`,
  workerThreads: false
}
