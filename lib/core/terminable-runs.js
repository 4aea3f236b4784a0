'use strict'

// Runs of `vm` that may be terminated: by `timeout`, or by Ctrl-C with `breakOnSigint`, as in the REPL. V8
// runs no `finally` in what it terminates, but it does in what called it: Node ends the termination in
// ContextifyScript::EvalMachine (src/node_contextify.cc), and throws an error from there. So that function is
// wrapped, and puts back what was set in between. All methods of vm.Script call it, and so do the functions
// of `vm` and the REPL.

const { Script } = require('node:vm')
const guard = require('./guard')
const { restoreChange, saveChange } = require('../listeners')
const { wrap } = require('../wrap')
const { repair } = require('./installer')
const { emit } = require('./on')
const { endTerminable, startTerminable } = require('./settled-hook')

const { apply, getPrototypeOf } = Reflect

// Arguments (ContextifyScript::RunInContext in src/node_contextify.cc); a run with neither is not terminated
const TIMEOUT = 1 // -1: none
const BREAK_ON_SIGINT = 3

/**
 * Modules of Node that longstack loads when it is first asked: one whose loading is terminated stays half
 * loaded, for the program, too (`compileForInternalLoader` in Node's lib/internal/bootstrap/realm.js).
 */
const askedFor = ['net', 'os', 'perf_hooks', 'stream', 'tty', 'url', 'worker_threads']
let isLoaded = false

function loadBuiltIns () {
  if (isLoaded) return
  try {
    for (const name of askedFor) require(`node:${name}`)
    isLoaded = true
  } catch {} // the stack is full
}

const owner = /** @type {object} */ (getPrototypeOf(Script.prototype))
/** @type {(() => boolean) | undefined} */
let unwrap

/** @param {Function} method */
const make = (method) => ({
  /** @this {any} */
  runInContext () {
    const saved = guard.save()
    const change = saveChange()
    const isTerminable = arguments[TIMEOUT] > 0 || arguments[BREAK_ON_SIGINT] === true
    if (isTerminable) guard.run(loadBuiltIns)
    const isOutermost = isTerminable && startTerminable()
    let hasReturned = false
    try {
      const value = apply(method, this, arguments)
      hasReturned = true
      emit('contextRan')
      return value
    } finally { // not `catch`: a message would tell of this line
      if (isTerminable) endTerminable(isOutermost) // in its step
      if (!hasReturned) {
        guard.restore(saved)
        restoreChange(change)
        if (isTerminable) repair()
      }
    }
  }
}).runInContext

function enable () {
  unwrap ??= wrap(owner, 'runInContext', make)
}

function disable () {
  if (unwrap?.()) unwrap = undefined
}

module.exports = { disable, enable }
