'use strict'

// How longstack works, in few lines and without it: node -r ./examples/essence.js app.js

const { createHook } = require('node:async_hooks')
const { subscribe } = require('node:diagnostics_channel')

/** asyncId → context: who it is, the stack that made it, the context that this ran in */
const contexts = new Map()
/** the contexts that callbacks left, the outermost first: callbacks may run within others */
const left = []
let current // the context of the callback that runs
let busy = false // in a hook: what it makes itself is not recorded
let since = 0

const now = () => performance.now()

function guarded (work) {
  return (...args) => {
    if (busy) return
    busy = true
    try { work(...args) } catch {} // a hook that throws ends the program
    busy = false
  }
}

createHook({
  init: guarded((uid, type, triggerId) => {
    const parent = current ?? contexts.get(triggerId)
    contexts.set(uid, { uid, type, at: now(), stack: captureStack(), parent, request: parent?.request })
  }),
  before: guarded((uid) => {
    charge()
    left.push(current)
    current = contexts.get(uid)
  }),
  after: guarded(() => {
    charge()
    current = left.pop()
  }),
  destroy: guarded((uid) => contexts.delete(uid)) // those that it led to keep it
}).enable()

/** Charges the time since the last call to the request that ran. */
function charge () {
  const time = now()
  if (current?.request !== undefined) current.request.ms += time - since
  since = time
}

// A request that a server got: what its callback leads to from here on is part of it.
subscribe('http.server.request.start', guarded(({ request }) => {
  charge()
  current = { ...current, parent: current, request: { name: `${request.method} ${request.url}`, ms: 0 } }
}))
subscribe('http.server.response.finish', guarded(() => {
  charge()
  const { request } = current ?? {}
  if (request !== undefined) console.error(`${request.name} ran ${request.ms.toFixed(1)} ms`)
}))

/** The frames of the program, as text. */
function captureStack () {
  const { prepareStackTrace: installed } = Error
  Error.prepareStackTrace = (_, frames) => frames
  const { stack } = new Error('not thrown')
  Error.prepareStackTrace = installed
  const isOfProgram = (file = 'node:') => !file.startsWith('node:') && file !== __filename
  return stack.filter((frame) => isOfProgram(frame.getFileName())).map((frame) => `    at ${frame}`)
}

// The stack of an error goes on with those of the contexts that led to it.
Error.prepareStackTrace = (error, frames) => {
  const lines = [String(error), ...frames.map((frame) => `    at ${frame}`)]
  for (let context = current; context !== undefined; context = context.parent) {
    if (context.stack.length === 0) continue // Node's own step
    lines.push(`  ── ${context.type} · ${Math.round(now() - context.at)} ms earlier ──`, ...context.stack)
  }
  return lines.join('\n')
}
