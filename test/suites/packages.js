'use strict'

// The packages that carry their tests, and how each is run: a process per file of tests.

const fs = require('node:fs')
const path = require('node:path')
const { parseTap, parseTape, parseMocha, parseLines } = require('./parsers')

/**
 * @typedef {object} Package
 * @property {string} name
 * @property {boolean} [inCI] its tests are steady and quick: they run with ours, the others by compare.js
 * @property {number} minPassed tests that an intact suite passes without longstack, on every version of Node
 * @property {'node:test' | 'tap' | 'tape' | 'lines' | 'mocha'} runner
 * @property {RegExp} [files] of its folder
 * @property {RegExp} [except] what they have in common: needs a network, or measures time
 * @property {string[]} [sample] the files that run where not all do, by default none
 * @property {number} [minSample] tests of the sample that pass, by default minPassed
 * @property {import('./modes').Mode[]} [modes] of CI: on Node 20, and on later versions; by default full
 * @property {string[]} [flags] of node
 * @property {boolean} [keepsStacks] compares whole stacks: runs with LONGSTACK_ERRORS=off
 */

/** @type {Package[]} */
const packages = [
  { name: 'promises-aplus-tests', inCI: true, modes: ['full', 'js'], minPassed: 872, runner: 'mocha', sample: ['promise-adapter.js'] },
  { name: 'light-my-request', inCI: true, modes: ['full', 'js'], minPassed: 184, runner: 'node:test', sample: ['test/index.test.js'], minSample: 130 },
  {
    name: 'fastify',
    inCI: true,
    minPassed: 2400,
    minSample: 420,
    runner: 'node:test',
    sample: ['als', 'async-await', 'async_hooks', 'close', 'diagnostics-channel/async-request', 'handler-timeout',
      'hooks', 'hooks-async', 'http2/closing', 'https/https', 'internals/hook-runner', 'logger/logging',
      'reply-error', 'route-hooks', 'set-error-handler', 'stream.1', 'upgrade', 'web-api'
    ].map((name) => `test/${name}.test.js`)
  },
  { name: 'avvio', inCI: true, modes: ['full', 'spans'], minPassed: 280, minSample: 10, runner: 'node:test', except: /plugin-timeout/, sample: ['test/async-await.test.js', 'test/errors.test.js'] },
  { // meta.js has a limit of 50 ms
    name: 'aedes', inCI: true, minPassed: 265, runner: 'node:test', files: /^test\/[^/]+\.js$/, except: /helper|utils|toxiproxy|meta/
  },
  { name: 'mqemitter', inCI: true, modes: ['spans', 'js'], minPassed: 30, runner: 'node:test', files: /^test\/test\.js$/, sample: ['test/test.js'] },
  { name: 'process-warning', inCI: true, modes: ['js'], minPassed: 20, runner: 'node:test', except: /jest/ },
  { name: '@fastify/middie', inCI: true, minPassed: 140, runner: 'node:test' },
  { name: '@fastify/websocket', inCI: true, minPassed: 60, runner: 'node:test' },
  { name: '@fastify/busboy', inCI: true, minPassed: 250, runner: 'node:test' },
  { name: 'on-exit-leak-free', inCI: true, modes: ['spans'], minPassed: 10, runner: 'tap', flags: ['--expose-gc'] },
  { name: 'continuation-local-storage', inCI: true, modes: ['full', 'spans'], minPassed: 280, minSample: 25, runner: 'tap', files: /\.tap\.js$/, sample: ['test/promises.tap.js', 'test/timers.tap.js'] },
  { name: 'async-listener', inCI: true, minPassed: 20, runner: 'tap', files: /^test\/[^/]+\.tap\.js$/, except: /http-request/ },
  { name: 'emitter-listener', inCI: true, minPassed: 5, runner: 'tap', files: /\.tap\.js$/ },
  { name: 'shimmer', inCI: true, minPassed: 20, runner: 'tap', files: /\.tap\.js$/ },
  { name: 'stack-chain', inCI: true, modes: ['js', 'spans'], minPassed: 30, minSample: 8, runner: 'tap', files: /^test\/simple\/.*\.js$/, keepsStacks: true, sample: ['test/simple/filter.js'] },
  { name: 'tape', inCI: true, modes: ['js', 'full'], minPassed: 100, minSample: 2, runner: 'tap', files: /^test\/[^/]+\.js$/, except: /common\.js/, keepsStacks: true, sample: ['test/throws.js'] },
  { name: 'abstract-level', inCI: true, minPassed: 6000, runner: 'tape', files: /^test\/self\.js$/, sample: ['test/self.js'] },
  { name: 'fastq', inCI: true, minPassed: 200, runner: 'tape', files: /^test\/test\.js$/, sample: ['test/test.js'] },
  { name: 'split2', inCI: true, minPassed: 50, runner: 'tape', files: /^test\.js$/ },
  { name: 'duplexify', inCI: true, minPassed: 35, runner: 'tape', files: /^test\.js$/, sample: ['test.js'] },
  { name: 'thunky', inCI: true, minPassed: 15, runner: 'tape', files: /^test\.js$/ },
  { name: 'retimer', inCI: true, minPassed: 5, runner: 'tape', files: /^test\.js$/ },
  { name: 'reusify', inCI: true, minPassed: 15, runner: 'tape', files: /^test\.js$/ },
  { name: 'pump', inCI: true, minPassed: 1, runner: 'lines', files: /^test-node\.js$/ },
  // Long, measure time, or need a machine of their own: by compare.js only.
  { name: 'close-with-grace', minPassed: 20, runner: 'tape', files: /^test\/close\.test\.js$/ },
  { name: 'sonic-boom', minPassed: 150, runner: 'node:test' },
  { name: 'thread-stream', minPassed: 50, runner: 'node:test', except: /string-limit|bundlers/, flags: ['--expose-gc'] },
  { name: 'async-cache-dedupe', minPassed: 120, runner: 'node:test', except: /browser|cloudflare|redis/ },
  { name: 'find-my-way', minPassed: 550, runner: 'node:test' },
  { name: '@fastify/under-pressure', minPassed: 40, runner: 'node:test' },
  { name: '@fastify/multipart', minPassed: 100, runner: 'node:test' },
  { name: '@fastify/reply-from', minPassed: 100, runner: 'node:test' },
  { name: 'pino', minPassed: 400, runner: 'node:test', except: /\/(jest|types)\/|transport\/(big|module-link)/ }
]

const parsers = { 'node:test': parseTap, tap: parseTap, tape: parseTape, lines: parseLines, mocha: parseMocha }

/**
 * Describes how a package is compared.
 * @param {Package} description
 * @param {string} modules the node_modules folder that holds it
 * @param {boolean} [all] all of its files, else its sample
 * @returns {import('../helpers/compare-suites').Suite}
 */
function suiteOf (description, modules, all = true) {
  const { name, runner, files: pattern, except, sample = [], flags = [], keepsStacks } = description
  const parse = parsers[runner]
  if (runner === 'mocha') {
    const options = ['--reporter', 'json', '--timeout', '10000'] // of mocha: a machine may be busy
    return {
      cwd: modules,
      files: [path.relative(modules, path.join(__dirname, 'promise-adapter.js'))],
      command: (file) => ['--unhandled-rejections=none', `${name}/lib/cli.js`, file, ...options],
      parse
    }
  }
  const cwd = path.join(modules, name)
  return {
    cwd,
    files: all ? filesOf(cwd, pattern, except) : sample,
    command: (file) => [...flags, ...(runner === 'node:test' ? ['--test-reporter=tap'] : []), file],
    parse,
    keepsStacks
  }
}

/**
 * @param {string} directory
 * @param {RegExp} [pattern]
 * @param {RegExp} [except]
 * @returns {string[]} with slashes
 */
function filesOf (directory, pattern = /^test\/.*\.test\.m?js$/, except = /^$/) {
  return fs.readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll(path.sep, '/'))
    .filter((file) => pattern.test(file) && !except.test(file) && !file.includes('node_modules/'))
    .sort()
}

module.exports = { filesOf, packages, parsers, suiteOf }
