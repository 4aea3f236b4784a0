'use strict'

// Continues chains in threads and processes that this one creates, and begins its own chains with its
// parent's. The code for it is loaded with the first thread or process.

const guard = require('../core/guard')
const { on } = require('../core/on')
const { handleOf } = require('../node-objects')
const { own } = require('../objects')
const { ownManifest } = require('../platform')
const { ensureHeadroomToLoad } = require('../stacks/stack-headroom')
const warnings = require('../warnings')
const channels = require('../requests/channels')

/** @type {typeof import('./thread-messages') | undefined} */
let messages
/** @type {typeof import('./child-processes') | undefined} */
let childProcesses

const loadMessages = () => (messages ??= require('./thread-messages'))

on('opened', (context, resource) => {
  if (context.type === 'MESSAGEPORT') loadMessages().portMade(context, resource)
  if (context.type !== 'WORKER') return
  warnings.share()
  require('./passed-chains').passToWorker(context, resource)
})

channels.subscribe([
  ['worker_threads', ({ worker }) => loadMessages().watchWorker(worker, handleOf(worker))],
  ['child_process', (message) => {
    ensureHeadroomToLoad()
    childProcesses ??= require('./child-processes')
    childProcesses.constructed(message.process)
  }]
])

/**
 * Makes messages of the parent thread begin with the chain of their sender. Does nothing if another preload
 * came first, since the program may have sent or taken messages in it.
 */
function joinParentThread () {
  const preloads = own(process, '_preload_modules')
  const first = Array.isArray(preloads) ? own(preloads, '0') : undefined
  if (first === undefined || isRegister(first)) guard.run(() => loadMessages().watchParent())
}

/** @param {unknown} preload */
function isRegister (preload) {
  if (typeof preload !== 'string') return false
  return /(longstack|lib)[\\/]register(\.js)?$/.test(preload) || preload === `${ownManifest().name}/register`
}

on('stopped', () => {
  messages?.stop()
  childProcesses?.unwatch()
})

module.exports = { joinParentThread }
