'use strict'

// Terminable runs of `vm`: with `timeout`, or with `breakOnSigint` on Ctrl-C, as in the REPL. V8 runs no
// `finally` in terminated code, but it does in the caller: Node ends the termination in
// ContextifyScript::EvalMachine (src/node_contextify.cc) and throws an error from there. So the wrapper of
// that function restores state set meanwhile. vm.Script, the functions of `vm` and the REPL all call it.

const { Script } = require('node:vm')
const guard = require('./guard')
const { restoreChange, saveChange } = require('../listeners')
const { wrap } = require('../wrap')
const { repair } = require('./installer')
const { emit } = require('./on')
const { endTerminable, startTerminable } = require('./settled-hook')

const { apply, getPrototypeOf } = Reflect

// Argument indexes (ContextifyScript::RunInContext in src/node_contextify.cc); either makes a run terminable
const TIMEOUT = 1 // -1: none
const BREAK_ON_SIGINT = 3

/**
 * Node modules that longstack loads on first use. If V8 terminates the loading of a module, it stays half
 * loaded, for the program too (`compileForInternalLoader` in Node's lib/internal/bootstrap/realm.js).
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
    } finally { // not `catch`: a message would show this line
      if (isTerminable) endTerminable(isOutermost) // while its step is current
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
