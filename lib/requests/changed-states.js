'use strict'

// Notes which call ends or destroys a stream or message, sends its headers, or aborts. Node's methods are
// wrapped, since no channel reports these calls and no hook reports them in time. A wrapper costs one
// property read; only the call that changes the state captures a stack.

const process = require('node:process')
const { getEventListeners } = require('node:events')
const { transferableAbortController, types } = require('node:util')
const { contextTag } = require('../core/context')
const guard = require('../core/guard')
const { on } = require('../core/on')
const { streamResponded } = require('../core/served-requests')
const changes = require('../core/state-changes')
const { handleOf } = require('../node-objects')
const { className, findProperty, hidden, isObject, own } = require('../objects')
const { wrap, wrapAll } = require('../wrap')
const { findPrototypes } = require('./packaged-streams')

const { apply, getPrototypeOf, ownKeys } = Reflect
const { deref } = WeakRef.prototype
const { changesOf, requestOf } = changes

/** @typedef {(self: any, first: any, above: Function) => void} Before runs before a method */

/** Hop names: V8 hashes each string once. @type {Record<string, Record<string, string>>} */
const calls = {}
for (const noun of ['request', 'response', 'socket', 'stream']) {
  const methods = ['destroy', 'end', 'respond', 'writeHead']
  calls[noun] = Object.fromEntries(methods.map((method) => [method, `${noun}.${method}`]))
}

/**
 * Notes the call that changes the state of an object.
 * @param {import('../core/state-changes').State} state
 * @param {object} self
 * @param {string} method
 * @param {Function} above
 */
function note (state, self, method, above) {
  const noted = changesOf(self)
  const isResponse = noted.request !== 0 || requestOf(self) !== undefined
  const noun = isResponse ? 'response' : nounOf(self)
  if (!changes.note(state, noted, calls[noun][method], above)) return
  changes.remember(self, noted.request)
  if (isHttp2Wrapped && !isResponse) streamResponded(self, self)
}

/** @type {Before} */
function ends (self, _, above) {
  if (!isObject(self)) return
  const isFinished = own(self, 'finished')
  if (isFinished === true) return
  if (isFinished === undefined && stateOf(self, '_writableState')?.ending === true) return
  note('ended', self, 'end', above)
}

/** @type {Before} */
function destroys (self, error, above) {
  if (!isObject(self)) return
  const readable = stateOf(self, '_readableState')
  const writable = stateOf(self, '_writableState')
  const state = writable ?? readable
  if ((state === undefined ? own(self, 'destroyed') : state.destroyed) === true) return
  if (isObject(error)) linkDestroying(error, self)
  // Node destroys finished streams by itself
  const isOver = readable?.endEmitted === true && writable?.finished !== false
  if (!isOver) note('destroyed', self, 'destroy', above)
}

/**
 * Links the error passed to destroy(), before Node reads its stack.
 * @param {object} error
 * @param {object} self
 */
function linkDestroying (error, self) {
  const signal = aborting?.deref()
  if (signal !== undefined) linkReason(signal)
  linkError(error, self)
  const call = callOf(self)
  if (call !== undefined) changes.linkSubject(error, call)
}

/**
 * Returns the call that made a request, or a connection still being opened; once open, others may use it.
 * @param {object} self the destroyed object
 * @returns {import('../core/context').Context | undefined}
 */
function callOf (self) {
  const request = contextTag.read(self)
  if (request?.type === 'REQUEST') return request
  const isCall = own(self, 'connecting') === true || className(self) === 'ClientHttp2Stream'
  const handle = isCall ? handleOf(self) : undefined
  return handle === undefined ? requestWithin(self) : contextTag.read(handle)
}

/**
 * Returns the call that made the request of a response, or of a stream with which a package wraps one.
 * @param {object} stream
 * @returns {import('../core/context').Context | undefined}
 */
function requestWithin (stream) {
  for (const key of ownKeys(stream)) {
    const value = own(stream, key)
    const context = isObject(value) ? contextTag.read(value) : undefined
    if (context?.type === 'REQUEST') return context
  }
  return undefined
}

/**
 * Links the error of an aborted request to its call. Undici then destroys the body with this error; the body
 * has no other link to the request.
 * @param {object} request of undici
 * @param {unknown} error
 */
function undiciFailed (request, error) {
  const signal = aborting?.deref()
  const call = signal && isObject(error) ? contextTag.read(request) : undefined
  if (call !== undefined) changes.linkSubject(/** @type {object} */ (error), call)
}

/** Returns Node's state of a stream. @param {object} stream @param {string} name @returns {any} */
function stateOf (stream, name) {
  const state = own(stream, name)
  return isObject(state) ? state : undefined
}

/** Headers are about to be serialized. @type {Before} */
function stores (self, _, above) {
  if (!isObject(self)) return
  if (changesOf(self).ended === undefined) note('sent', self, 'writeHead', above) // end() calls this
}

/** An HTTP/2 stream sends its headers. @type {Before} */
function responds (self, _, above) {
  if (isObject(self) && !isObject(hidden(self, 'sent-headers'))) note('sent', self, 'respond', above)
}

/** @type {Before} */
function aborts (self, reason, above) {
  const signal = read(self, 'signal')
  if (read(signal, 'aborted')) return
  changes.note('aborted', changesOf(signal), 'controller.abort', above)
  if (isObject(reason)) changes.link(reason, changes.changeOf(signal, ['aborted']))
  else aborting = new WeakRef(signal)
  changes.setAborted(listenersOf(signal), reason)
}

/** Returns all abort listeners, also through AbortSignal.any. @param {any} signal @returns {unknown[]} */
function listenersOf (signal) {
  const dependants = hidden(signal, 'kDependantSignals')
  const signals = types.isSet(dependants) ? Array.from(dependants, (each) => apply(deref, each, [])) : []
  return [signal, ...signals].flatMap((each) => each === undefined ? [] : getEventListeners(each, 'abort'))
}

/** Runs after abort(). @param {any} self */
function aborted (self) {
  aborting = undefined
  changes.setAborted([])
  linkReason(read(self, 'signal'))
}

/** Links the reason that Node creates. @param {object} signal */
function linkReason (signal) {
  const reason = read(signal, 'reason')
  if (isObject(reason)) changes.link(reason, changes.changeOf(signal, ['aborted']))
}

/** signal of the abort() in progress, which has a reason by then @type {WeakRef<object> | undefined} */
let aborting
/** @type {Map<string, (() => any) | undefined>} */
const getters = new Map()

/**
 * Reads a property through Node's getter, not one of the program.
 * @param {any} self an AbortController or its signal
 * @param {string} name
 */
function read (self, name) {
  return apply(/** @type {() => any} */ (getters.get(name)), self, [])
}

/**
 * Links an error to an earlier state change of an object.
 * @param {object} error
 * @param {object} object
 */
function linkError (error, object) {
  const states = changes.statesByCode[String(own(error, 'code'))]
  if (states !== undefined) changes.link(error, changes.changeOf(object, states))
}

/** @param {object} object not a response @returns {string} its common name */
function nounOf (object) {
  if (own(object, '_header') !== undefined) return 'request'
  return own(object, '_host') !== undefined || own(object, '_sockname') !== undefined ? 'socket' : 'stream'
}

/** restore the methods @type {Array<() => void>} */
let restores = []
let isHttpWrapped = false
let isHttp2Wrapped = false
let isOn = false
let stopWaiting = () => {}

/**
 * Wraps own methods of objects.
 * @param {object[]} owners
 * @param {string[]} names
 * @param {Before} before
 * @param {(self: any) => void} [done] runs after the method
 */
function wrapMethods (owners, names, before, done) {
  restores.push(wrapAll(owners, names, (self, first, above) => {
    if (isOn) before(self, first, above)
  }, done && ((self) => { if (isOn) done(self) })))
}

/**
 * Notes the call that adds an abort listener.
 * @param {unknown} self
 * @param {unknown} listener
 * @param {Function} above
 */
function listens (self, listener, above) {
  if (!isObject(self) || className(self) !== 'AbortSignal') return
  if (typeof listener === 'function') changes.noteListener(listener, above)
}

/**
 * Wraps addEventListener, to note the calls that add abort listeners.
 * @param {object} prototype of EventTarget
 */
function wrapListening (prototype) {
  const unwrap = wrap(prototype, 'addEventListener', (method) => {
    const { addEventListener } = {
      /** @this {unknown} @param {unknown} type @param {unknown} listener */
      addEventListener (type, listener) {
        try {
          if (isOn && type === 'abort') listens(this, listener, addEventListener)
        } catch {} // the stack may be full
        return apply(method, this, arguments)
      }
    }
    return addEventListener
  })
  if (unwrap !== undefined) restores.push(unwrap)
}

/** Wraps abort(). Reading the global AbortController would change its property. */
function wrapAbort () {
  const controller = guard.run(() => transferableAbortController())
  getters.set('signal', findProperty(controller, 'signal')?.get)
  const signal = read(controller, 'signal')
  for (const name of ['aborted', 'reason']) getters.set(name, findProperty(signal, name)?.get)
  const prototype = /** @type {object} */ (getPrototypeOf(controller))
  wrapMethods([prototype], ['abort'], aborts, aborted)
  wrapListening(/** @type {any} */ (getPrototypeOf(/** @type {any} */ (getPrototypeOf(signal)))))
}

function enable () {
  isOn = true
  if (restores.length === 0) {
    const { Duplex, Readable, Writable } = require('node:stream')
    wrapStreams([Readable, Writable, Duplex].map(({ prototype }) => prototype))
    wrapAbort()
  }
  stopWaiting()
  stopWaiting = on('iteration', wrapPackages) // the main script has run
  enableHttp()
}

/** @param {object[]} prototypes of streams */
function wrapStreams (prototypes) {
  wrapMethods(prototypes, ['end'], ends)
  wrapMethods(prototypes, ['destroy'], destroys)
}

/** Called whenever the program may have loaded http. */
function enableHttp () {
  if (isHttpWrapped || !isOn || !isLoaded('_http_outgoing')) return
  isHttpWrapped = true
  const { ClientRequest, OutgoingMessage } = /** @type {any} */ (require('node:http'))
  wrapMethods([OutgoingMessage.prototype], ['end'], ends)
  wrapMethods([OutgoingMessage.prototype], ['_storeHeader'], stores)
  wrapMethods([OutgoingMessage.prototype, ClientRequest.prototype], ['destroy'], destroys)
}

/** The prototype is only reachable from a stream. @param {object} stream of HTTP/2 */
function enableHttp2 (stream) {
  if (isHttp2Wrapped || !isOn) return
  isHttp2Wrapped = true
  const prototype = /** @type {object} */ (getPrototypeOf(stream))
  wrapMethods([prototype], ['respond', 'respondWithFD', 'respondWithFile'], responds)
}

/** Wraps the streams of packages, once, when the program has probably loaded them. */
function wrapPackages () {
  stopWaiting()
  if (!isOn) return
  const prototypes = findPrototypes()
  if (prototypes.length > 0) wrapStreams(prototypes)
}

function disable () {
  isOn = isHttpWrapped = isHttp2Wrapped = false
  stopWaiting()
  for (const restore of restores) restore()
  restores = []
}

/** Returns whether the program has loaded a built-in module. @param {string} name */
function isLoaded (name) {
  const list = /** @type {any} */ (process).moduleLoadList
  return !Array.isArray(list) || list.includes(`NativeModule ${name}`)
}

on('passedToTick', (error, _, subject) => {
  if (isObject(subject) && subject !== error) linkError(error, subject)
})
on('streamServed', enableHttp2)

module.exports = { disable, enable, enableHttp, undiciFailed, wrapPackages }
