'use strict'

// How longstack works, in a few lines and without it: node -r ./examples/essence.js app.js

const { createHook } = require('node:async_hooks')
const { subscribe } = require('node:diagnostics_channel')

/** asyncId → context: its identity, its creation stack, the context that it was created in */
const contexts = new Map()
/** contexts to return to, outermost first: callbacks may be nested */
const left = []
let current // context of the running callback
let busy = false // a hook is running: resources that it creates are not recorded
let since = 0

const now = () => performance.now()

function guarded (work) {
  return (...args) => {
    if (busy) return
    busy = true
    try { work(...args) } catch {} // a hook that throws would end the program
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
  destroy: guarded((uid) => contexts.delete(uid)) // contexts that descend from it keep it
}).enable()

/** Adds the time since the last call to the running request. */
function charge () {
  const time = now()
  if (current?.request !== undefined) current.request.ms += time - since
  since = time
}

// A request received by a server: everything that its callback leads to is part of it.
subscribe('http.server.request.start', guarded(({ request }) => {
  charge()
  current = { ...current, parent: current, request: { name: `${request.method} ${request.url}`, ms: 0 } }
}))
subscribe('http.server.response.finish', guarded(() => {
  charge()
  const { request } = current ?? {}
  if (request !== undefined) console.error(`${request.name} ran ${request.ms.toFixed(1)} ms`)
}))

/** Returns the program's frames, as text. */
function captureStack () {
  const { prepareStackTrace: installed } = Error
  Error.prepareStackTrace = (_, frames) => frames
  const { stack } = new Error('not thrown')
  Error.prepareStackTrace = installed
  const isOfProgram = (file = 'node:') => !file.startsWith('node:') && file !== __filename
  return stack.filter((frame) => isOfProgram(frame.getFileName())).map((frame) => `    at ${frame}`)
}

// The stack of an error continues with the stacks of the contexts that led to it.
Error.prepareStackTrace = (error, frames) => {
  const lines = [String(error), ...frames.map((frame) => `    at ${frame}`)]
  for (let context = current; context !== undefined; context = context.parent) {
    if (context.stack.length === 0) continue // Node's own step
    lines.push(`  ── ${context.type} · ${Math.round(now() - context.at)} ms earlier ──`, ...context.stack)
  }
  return lines.join('\n')
}
