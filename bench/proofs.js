'use strict'

// Proves that a subject is active, because an inactive one is fast. After the measurement, proofs[name]()
// runs in the same child and returns its observation; `ok` is true if the subject does its job.

const { executionAsyncResource } = require('node:async_hooks')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')

/**
 * @typedef {object} Proof
 * @property {boolean} ok
 * @property {string} [observed] printed if not ok
 * @property {Record<string, unknown>} [inForce] longstack's engine
 */

/** Calls back from a timer; a long stack contains the name of this function. @param {() => void} callback */
function startProofTimer (callback) {
  setTimeout(callback, 1)
}

/** @returns {Promise<Proof>} */
async function longStack () {
  const stack = await new Promise((resolve) => startProofTimer(() => resolve(new Error('proof').stack)))
  return { ok: stack.includes('startProofTimer'), observed: stack }
}

/** Sends a request to a server in this process. @param {() => void} [handler] called by the server */
async function sendRequest (handler = () => {}) {
  const server = http.createServer((message, response) => {
    handler()
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  await new Promise((resolve, reject) => {
    const onResponse = (/** @type {http.IncomingMessage} */ response) => response.resume().on('end', resolve)
    http.get({ port, host: '127.0.0.1', agent: false }, onResponse).on('error', reject)
  })
  server.close()
}

/** Calls `list` while an interval is open. @param {() => void} list */
function withInterval (list) {
  const interval = setInterval(() => {}, 60_000)
  list()
  clearInterval(interval)
}

const proofs = {
  longStack,

  /** @returns {Promise<Proof>} */
  async longstack () {
    const { engine, engineWhy, fault, dropped } = require('..').stats()
    const inForce = { engine, engineWhy, fault, dropped }
    // A filter omits the stack of a timer; then the reported engine is sufficient.
    const hasFilter = process.env.LONGSTACK !== undefined
    const { ok, observed } = hasFilter ? { ok: true, observed: '' } : await longStack()
    const { spans } = require('..').stats()
    if (spans !== undefined) {
      await sendRequest()
      const written = require('..').stats().spans?.written
      if (written === spans.written) return { ok: false, observed: 'no span was written', inForce }
    }
    if (fault === undefined) return { ok, observed, inForce }
    return { ok: false, observed: `a defect of longstack: ${fault}`, inForce }
  },

  /** @returns {Promise<Proof>} */
  async hooks () {
    await null
    return { ok: executionAsyncResource() instanceof Promise, observed: 'a promise that no hook observed' }
  },

  /** @returns {Promise<Proof>} */
  async inspector () {
    const { session } = require('./preloads/inspector')
    session.post('Runtime.enable')
    /** @type {Promise<any>} */
    const logged = new Promise((resolve) => {
      session.once('Runtime.consoleAPICalled', ({ params }) => resolve(params.stackTrace))
    })
    startProofTimer(() => console.log('proof'))
    const { parent, parentId: stackTraceId } = await logged
    const linked = parent ?? await new Promise((resolve) => {
      session.post('Debugger.getStackTrace', { stackTraceId }, (_, answer) => resolve(answer?.stackTrace))
    })
    const observed = JSON.stringify(linked ?? null)
    return { ok: observed.includes('startProofTimer'), observed }
  },

  /** @returns {Promise<Proof>} */
  async whyIsNodeRunning () {
    const { default: why } = await import('why-is-node-running')
    let observed = ''
    const error = (/** @type {unknown[]} */ ...args) => { observed += `${args.join(' ')}\n` }
    withInterval(() => why({ error }))
    return { ok: observed.includes('proofs.js'), observed }
  },

  /** @returns {Promise<Proof>} */
  async wtfnode () {
    const wtf = require('wtfnode')
    let observed = ''
    const log = (/** @type {unknown[]} */ ...args) => { observed += `${args.join(' ')}\n` }
    for (const level of ['info', 'warn', 'error']) wtf.setLogger(level, log)
    withInterval(() => wtf.dump())
    return { ok: observed.includes('proofs.js'), observed }
  },

  /** @returns {Promise<Proof>} */
  async blockedAt () {
    const { stacks } = require('./preloads/blocked-at')
    startProofTimer(() => {
      const end = Date.now() + 600
      while (Date.now() < end);
    })
    await delay(700)
    const observed = stacks.flat().join('\n')
    return { ok: observed.includes('startProofTimer'), observed }
  },

  /** @returns {Promise<Proof>} */
  async bubbleprof () {
    const directory = String(process.env.NODE_CLINIC_BUBBLEPROF_DATA_PATH)
    // Trace events are ignored: Node writes them asynchronously, the last ones at exit.
    const files = fs.readdirSync(directory, { recursive: true, encoding: 'utf8' })
    const written = files.filter((name) => name.endsWith('-stacktrace'))
    const ok = written.some((name) => fs.statSync(path.join(directory, name)).size > 0)
    return { ok, observed: `files: ${written.join(', ')}` }
  },

  /** @returns {Promise<Proof>} */
  async opentelemetry () {
    const { provider, exported } = require('./preloads/opentelemetry')
    await sendRequest()
    await provider.forceFlush()
    return { ok: exported.spans > 0, observed: `${exported.spans} spans` }
  },

  /** @returns {Promise<Proof>} */
  async ddTrace () {
    let active
    await sendRequest(() => { active = require('dd-trace').scope().active() })
    return { ok: active !== null && active !== undefined, observed: 'no span in a request' }
  }
}

module.exports = proofs
