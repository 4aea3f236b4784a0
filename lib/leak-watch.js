'use strict'

// longstack run --fail-on-leak: a preload after the register. The program's own work is done when nothing of it has run
// for a while, repeating timers aside, since its main script was over; what keeps it alive then is a leak. The watch
// itself keeps nothing alive: while its timer runs, something else does.

const { createHook, executionAsyncResource } = require('node:async_hooks')
const guard = require('./context/guard')
const { OWN_WORK, contextTag } = require('./context/context')
const { printLine } = require('./warnings')

const VARIABLE = '_LONGSTACK_LEAK_MS'
const CODE = 3
const STEPS = 8
const LATE = 20 // ms

/** @param {number} ms @returns {Record<string, string>} the environment that has the preload watch */
function ask (ms) {
  return { [VARIABLE]: String(ms) }
}

/** @param {number} ms */
function watch (ms) {
  const step = Math.max(1, ms / STEPS)
  let last = 0
  let looked = 0

  /** The resource of a timer is the timer itself. */
  function work () {
    const resource = /** @type {any} */ (executionAsyncResource())
    if (contextTag.read(resource) !== OWN_WORK && !(resource?._repeat > 0)) last = performance.now()
  }

  function look () {
    const now = performance.now()
    // Who looks late was stopped, or the machine is busy: the program had no chance to do anything either.
    if (now - looked > 2 * step + LATE) last = now
    looked = now
    if (now - last >= ms) return fail(ms)
    guard.run(() => setTimeout(look, step).unref())
  }

  const callbacks = { __proto__: null, before: work, after: work, trackPromises: false }
  createHook(/** @type {any} */ (callbacks)).enable()
  // Whatever the main script does at once comes before the first turn of the loop.
  guard.run(() => setImmediate(() => {
    last = looked = performance.now()
    look()
  }).unref())
}

/** @param {number} ms */
function fail (ms) {
  const text = guard.run(() => story(ms))
  printLine(text.trimEnd())
  process.exit(CODE)
}

/** @param {number} ms */
function story (ms) {
  const { trace } = require('./shared')
  const open = trace.handles().filter(({ referenced }) => referenced !== false)
  const head = `longstack: the program has done nothing for ${ms} ms, and does not end.`
  if (open.length > 0) return `${head}\n${require('./format/paint').paint(require('./format/handles').summary(open))}`
  return `${head} What keeps it alive is not known: ${process.getActiveResourcesInfo().join(', ') || 'nothing that Node names'}.`
}

const asked = process.env[VARIABLE]
if (asked !== undefined) {
  delete process.env[VARIABLE]
  watch(Number(asked))
}

module.exports = { ask }
