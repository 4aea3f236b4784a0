'use strict'

// node -r longstack/register app.js: tracing is on from the first line, with options from the environment.
// The main thread reports an invalid option in one line, and the program still runs. It also runs if tracing
// cannot start: NODE_OPTIONS preloads this file into any program on any Node version. So this file uses the
// syntax of Node 12, and loads nothing before it has checked the version.

const MIN_MAJOR = 20
const NOT_PERMITTED = 'the permission model keeps its files from it (--allow-fs-read)'
const MAX_REASON = 200 // characters

/** @type {import('./start').Started | undefined} */
let started

function start () {
  started = require('./start')
  const { shared, options, warnings } = started
  if (shared.tracer.enabled()) return
  if (warnings.isUnsafeVersion(process.versions.node)) {
    warnings.printFromMainThread(`on Node ${process.version} a caught stack overflow is fatal while async ` +
      'hooks are on (CVE-2025-59466); update Node.')
  }
  shared.tracer.apply(options.environmentOptions())
  if (!require('./passing/threads').isMainThread()) shared.tracer.joinParentThread()
  if (started.prepare !== undefined) started.prepare()
}

/** Reverts a failed start. */
function undo () {
  try {
    if (started !== undefined) started.shared.tracer.disable()
  } catch {}
}

/** Prints one line from the main thread; requires no other file of longstack. @param {string} reason */
function printOff (reason) {
  try {
    if (!require('worker_threads').isMainThread) return
    require('fs').writeSync(2, `longstack: off, ${reason}. The program runs without it.\n`)
  } catch {}
}

/** @param {any} error */
function reasonOf (error) {
  try {
    if (error.code === 'ERR_ACCESS_DENIED') return NOT_PERMITTED
    return String(error.message).split('\n', 1)[0].slice(0, MAX_REASON).replace(/\.$/, '')
  } catch {
    return 'an error that cannot be shown'
  }
}

if (Number(process.versions.node.split('.', 1)[0]) < MIN_MAJOR) {
  printOff(`Node ${process.version} is too old: ${MIN_MAJOR} or later is needed`)
} else {
  try {
    start()
  } catch (error) {
    undo()
    printOff(`it cannot start: ${reasonOf(error)}`)
  }
}
