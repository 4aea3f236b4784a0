'use strict'

// A subject that does nothing is fast. After the figures are taken, each shows in the same child that it was at
// work: proofs[name]() gives what was seen; `ok` says whether that is what the subject is for.

const { executionAsyncResource } = require('node:async_hooks')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')

/**
 * @typedef {object} Proof
 * @property {boolean} ok
 * @property {string} [saw] what was seen instead
 * @property {Record<string, unknown>} [inForce] longstack's engine and mode
 */

/** Runs a callback in a timer that this named function set: its name belongs into a long stack. @param {() => void} callback */
function openedHere (callback) {
  setTimeout(callback, 1)
}

/** @returns {Promise<Proof>} */
async function longStack () {
  const stack = await new Promise((resolve) => openedHere(() => resolve(new Error('proof').stack)))
  return { ok: stack.includes('openedHere'), saw: stack }
}

/** One request to a server of this process. @param {() => void} [inside] called in the server's handler */
async function request (inside = () => {}) {
  const server = http.createServer((message, response) => {
    inside()
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  await new Promise((resolve, reject) => {
    http.get({ port, host: '127.0.0.1', agent: false }, (response) => response.resume().on('end', resolve)).on('error', reject)
  })
  server.close()
}

/** What an open interval looks like to a lister of handles. @param {() => void} list */
function withInterval (list) {
  const interval = setInterval(() => {}, 60_000)
  list()
  clearInterval(interval)
}

const proofs = {
  longStack,

  /** @returns {Promise<Proof>} */
  async longstack () {
    const { engine, engineWhy, mode, modeWhy, fault, dropped } = require('..').stats()
    const inForce = { engine, engineWhy, mode, modeWhy, fault, dropped }
    // A filter leaves a timer's own stack out: there the engine's word is enough.
    const { ok, saw } = process.env.LONGSTACK === undefined ? await longStack() : { ok: true, saw: '' }
    const { spans } = require('..').stats()
    if (spans !== undefined) await request()
    if (spans !== undefined && require('..').stats().spans.written === spans.written) return { ok: false, saw: 'no span was written', inForce }
    return fault === undefined ? { ok, saw, inForce } : { ok: false, saw: `a defect of longstack: ${fault}`, inForce }
  },

  /** @returns {Promise<Proof>} */
  async hooks () {
    await null
    return { ok: executionAsyncResource() instanceof Promise, saw: 'a promise that no hook knows of' }
  },

  /** @returns {Promise<Proof>} */
  async inspector () {
    const { session } = require('./preloads/inspector')
    session.post('Runtime.enable')
    /** @type {Promise<any>} */
    const logged = new Promise((resolve) => session.once('Runtime.consoleAPICalled', ({ params }) => resolve(params.stackTrace)))
    openedHere(() => console.log('proof'))
    const { parent, parentId: stackTraceId } = await logged
    const linked = parent ?? await new Promise((resolve) => session.post('Debugger.getStackTrace', { stackTraceId }, (_, answer) => resolve(answer?.stackTrace)))
    const saw = JSON.stringify(linked ?? null)
    return { ok: saw.includes('openedHere'), saw }
  },

  /** @returns {Promise<Proof>} */
  async whyIsNodeRunning () {
    const { default: why } = await import('why-is-node-running')
    let saw = ''
    withInterval(() => why({ error: (/** @type {unknown[]} */ ...args) => { saw += `${args.join(' ')}\n` } }))
    return { ok: saw.includes('proofs.js'), saw }
  },

  /** @returns {Promise<Proof>} */
  async wtfnode () {
    const wtf = require('wtfnode')
    let saw = ''
    for (const level of ['info', 'warn', 'error']) wtf.setLogger(level, (/** @type {unknown[]} */ ...args) => { saw += `${args.join(' ')}\n` })
    withInterval(() => wtf.dump())
    return { ok: saw.includes('proofs.js'), saw }
  },

  /** @returns {Promise<Proof>} */
  async blockedAt () {
    const { seen } = require('./preloads/blocked-at')
    openedHere(() => {
      const end = Date.now() + 600
      while (Date.now() < end);
    })
    await delay(700)
    const saw = seen.flat().join('\n')
    return { ok: saw.includes('openedHere'), saw }
  },

  /** @returns {Promise<Proof>} */
  async bubbleprof () {
    const folder = String(process.env.NODE_CLINIC_BUBBLEPROF_DATA_PATH)
    // The trace events come in their own time, the last of them at the end.
    const written = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('-stacktrace'))
    return { ok: written.some((name) => fs.statSync(path.join(folder, name)).size > 0), saw: `files: ${written.join(', ')}` }
  },

  /** @returns {Promise<Proof>} */
  async opentelemetry () {
    const { provider, counted } = require('./preloads/opentelemetry')
    await request()
    await provider.forceFlush()
    return { ok: counted.spans > 0, saw: `${counted.spans} spans` }
  },

  /** @returns {Promise<Proof>} */
  async ddTrace () {
    let active
    await request(() => { active = require('dd-trace').scope().active() })
    return { ok: active !== null && active !== undefined, saw: 'no span in a request' }
  }
}

module.exports = proofs
