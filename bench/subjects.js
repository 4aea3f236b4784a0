'use strict'

// Subjects to measure, with the options to start a child that runs a workload. Everything is loaded before
// the workload, as the subject's users do. proofs.js proves that a subject is active.

const path = require('node:path')
const { pathToFileURL } = require('node:url')

/**
 * @typedef {Record<string, string>} Variables environment variables
 *
 * @typedef {object} Subject
 * @property {string} says short description
 * @property {(directory: string) => string[]} args arguments of node; the directory is the child's own
 * @property {(directory: string) => Variables} env
 * @property {keyof typeof import('./proofs')} [proof]
 * @property {string[]} peers required packages
 * @property {string} [engine] required engine of a longstack subject
 */

const register = path.join(__dirname, '..', 'lib', 'register.js')
const preload = (/** @type {string} */ name) => ['-r', path.join(__dirname, 'preloads', name)]
const inPeers = (/** @type {string} */ file) => path.join(__dirname, 'node_modules', file)

/**
 * @param {string} says
 * @param {string[] | ((directory: string) => string[])} args
 * @param {Partial<Omit<Subject, 'args' | 'env'>> & { env?: Variables | Subject['env'] }} [more]
 * @returns {Subject}
 */
function subject (says, args, { env = {}, peers = [], ...more } = {}) {
  return {
    says,
    args: typeof args === 'function' ? args : () => args,
    env: typeof env === 'function' ? env : () => env,
    peers,
    ...more
  }
}

/**
 * @param {string} says
 * @param {Variables | Subject['env']} env
 * @param {string} engine
 */
function longstack (says, env, engine = 'native') {
  return subject(says, ['-r', register], { env, engine, proof: 'longstack' })
}

/** @type {Record<string, Subject>} */
const subjects = {
  bare: subject('nothing preloaded', []),
  hooks: subject('empty init, before and after: the floor', preload('hooks.js'), { proof: 'hooks' }),

  'longstack-full': longstack('native engine', { LONGSTACK_CAPTURE: 'native' }),
  'longstack-spans': longstack('native engine, and spans to a file', (directory) => ({
    LONGSTACK_CAPTURE: 'native', LONGSTACK_SPANS: path.join(directory, 'spans.jsonl')
  })),
  'longstack-tcp': longstack('filter TCP', { LONGSTACK: 'TCP' }),
  'longstack-js': longstack('JavaScript engine', { LONGSTACK_CAPTURE: 'js' }, 'js'),

  trace: subject('long stack traces', preload('trace.js'), { peers: ['trace'], proof: 'longStack' }),
  longjohn: subject('long stack traces, no promises', preload('longjohn.js'), {
    peers: ['longjohn'], proof: 'longStack'
  }),
  inspector: subject('V8\'s async stacks, 32 deep', preload('inspector.js'), { proof: 'inspector' }),
  'why-is-node-running': subject('open handles and their stacks', [
    '--import', pathToFileURL(inPeers('why-is-node-running/include.js')).href
  ], { peers: ['why-is-node-running'], proof: 'whyIsNodeRunning' }),
  wtfnode: subject('open handles and their stacks', preload('wtfnode.js'), {
    peers: ['wtfnode'], proof: 'wtfnode'
  }),
  'blocked-at': subject('stacks of blocking callbacks', preload('blocked-at.js'), {
    peers: ['blocked-at'], proof: 'blockedAt'
  }),
  bubbleprof: subject('collector of clinic bubbleprof', (directory) => [
    '-r', inPeers('@clinic/bubbleprof/injects/no-cluster.js'),
    '-r', inPeers('@clinic/bubbleprof/injects/logger.js'),
    '--trace-event-categories', 'node.async_hooks',
    '--trace-event-file-pattern', `${directory}/events-\${rotation}.log`
  ], {
    env: (directory) => ({ NODE_CLINIC_BUBBLEPROF_DATA_PATH: directory, NODE_CLINIC_BUBBLEPROF_NAME: 'run' }),
    peers: ['@clinic/bubbleprof'],
    proof: 'bubbleprof'
  }),
  opentelemetry: subject('http spans, exporter that drops them, no stacks', preload('opentelemetry.js'), {
    peers: [
      '@opentelemetry/api', '@opentelemetry/instrumentation', '@opentelemetry/instrumentation-http',
      '@opentelemetry/sdk-trace-base', '@opentelemetry/sdk-trace-node'
    ],
    proof: 'opentelemetry'
  }),
  'dd-trace': subject('spans, no agent that receives them, no stacks', preload('dd-trace.js'), {
    peers: ['dd-trace'],
    proof: 'ddTrace',
    env: (directory) => ({
      DD_TRACE_AGENT_URL: `unix://${path.join(directory, 'no-agent.sock')}`,
      DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false',
      DD_REMOTE_CONFIGURATION_ENABLED: 'false',
      DD_CRASHTRACKING_ENABLED: 'false',
      DD_TRACE_STARTUP_LOGS: 'false'
    })
  })
}

module.exports = { subjects }
