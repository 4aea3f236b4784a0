'use strict'

// Who is measured: how a child that runs a workload is started under each of them. Everything is loaded before the
// workload, as its users do. What a subject has to show as a proof of its work is in proofs.js.

const path = require('node:path')
const { pathToFileURL } = require('node:url')

/**
 * @typedef {object} Subject
 * @property {string} says what it is, in a few words
 * @property {(folder: string) => string[]} args of node; the folder is the child's own
 * @property {(folder: string) => Record<string, string>} env
 * @property {keyof typeof import('./proofs')} [proof]
 * @property {string[]} peers packages that it needs
 * @property {{ engine?: string, mode?: string }} [asks] what a longstack subject wants to be in force
 */

const register = path.join(__dirname, '..', 'lib', 'register.js')
const preload = (/** @type {string} */ name) => ['-r', path.join(__dirname, 'preloads', name)]
const inPeers = (/** @type {string} */ file) => path.join(__dirname, 'node_modules', file)

/**
 * @param {string} says
 * @param {string[] | ((folder: string) => string[])} args
 * @param {Partial<Omit<Subject, 'args' | 'env'>> & { env?: Record<string, string> | ((folder: string) => Record<string, string>) }} [more]
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
 * @param {Record<string, string> | ((folder: string) => Record<string, string>)} env
 * @param {{ engine?: string, mode?: string }} asks
 */
function longstack (says, env, asks) {
  return subject(says, ['-r', register], { env, asks, proof: 'longstack' })
}

/** @param {string} says @param {Record<string, string>} env @param {{ engine?: string, mode?: string }} asks */
function spans (says, env, asks) {
  return longstack(says, (folder) => ({ ...env, LONGSTACK_CAPTURE: 'native', LONGSTACK_SPANS: path.join(folder, 'spans.jsonl') }), { engine: 'native', ...asks })
}

/** @type {Record<string, Subject>} */
const subjects = {
  bare: subject('nothing preloaded', []),
  hooks: subject('empty init, before and after: the floor', preload('hooks.js'), { proof: 'hooks' }),

  'longstack-full': longstack('full, native engine', { LONGSTACK_CAPTURE: 'native' }, {
    engine: 'native', mode: 'full'
  }),
  'longstack-light': longstack('light, native engine', { LONGSTACK_CAPTURE: 'native', LONGSTACK_MODE: 'light' }, { engine: 'native', mode: 'light' }),
  'longstack-spans': spans('full, native engine, and spans to a file', {}, { mode: 'full' }),
  'longstack-light-spans': spans('light, native engine, and spans to a file', { LONGSTACK_MODE: 'light' }, { mode: 'light' }),
  'longstack-tcp': longstack('filter TCP', { LONGSTACK: 'TCP' }, { engine: 'native' }),
  'longstack-js': longstack('full, JavaScript engine', { LONGSTACK_CAPTURE: 'js' }, { engine: 'js', mode: 'full' }),

  trace: subject('long stack traces', preload('trace.js'), { peers: ['trace'], proof: 'longStack' }),
  longjohn: subject('long stack traces, no promises', preload('longjohn.js'), { peers: ['longjohn'], proof: 'longStack' }),
  inspector: subject('V8\'s async stacks, 32 deep', preload('inspector.js'), { proof: 'inspector' }),
  'why-is-node-running': subject('open handles and their stacks', ['--import', pathToFileURL(inPeers('why-is-node-running/include.js')).href],
    { peers: ['why-is-node-running'], proof: 'whyIsNodeRunning' }),
  wtfnode: subject('open handles and their stacks', preload('wtfnode.js'), { peers: ['wtfnode'], proof: 'wtfnode' }),
  'blocked-at': subject('stacks of what blocks the loop', preload('blocked-at.js'), { peers: ['blocked-at'], proof: 'blockedAt' }),
  bubbleprof: subject('collector of clinic bubbleprof', (folder) => [
    '-r', inPeers('@clinic/bubbleprof/injects/no-cluster.js'),
    '-r', inPeers('@clinic/bubbleprof/injects/logger.js'),
    '--trace-event-categories', 'node.async_hooks',
    '--trace-event-file-pattern', `${folder}/events-\${rotation}.log`
  ], { env: (folder) => ({ NODE_CLINIC_BUBBLEPROF_DATA_PATH: folder, NODE_CLINIC_BUBBLEPROF_NAME: 'run' }), peers: ['@clinic/bubbleprof'], proof: 'bubbleprof' }),
  opentelemetry: subject('http spans, exporter to nowhere, no stacks', preload('opentelemetry.js'), {
    peers: ['@opentelemetry/api', '@opentelemetry/instrumentation', '@opentelemetry/instrumentation-http', '@opentelemetry/sdk-trace-base', '@opentelemetry/sdk-trace-node'],
    proof: 'opentelemetry'
  }),
  'dd-trace': subject('spans, no agent to send them to, no stacks', preload('dd-trace.js'), {
    peers: ['dd-trace'],
    proof: 'ddTrace',
    env: (folder) => ({
      DD_TRACE_AGENT_URL: `unix://${path.join(folder, 'nobody.sock')}`,
      DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false',
      DD_REMOTE_CONFIGURATION_ENABLED: 'false',
      DD_CRASHTRACKING_ENABLED: 'false',
      DD_TRACE_STARTUP_LOGS: 'false'
    })
  })
}

module.exports = { subjects }
