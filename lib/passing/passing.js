'use strict'

// Has chains go on in threads and processes that this one makes, and begin with those of what made it. What
// does it is loaded with the first of them.

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
 * Has messages of the thread that made this one begin with the chain of their sender. Not where the program
 * can have sent or taken some before: another preload came first.
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
