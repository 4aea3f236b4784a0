'use strict'

// Notes who ends or destroys streams and messages, who sends their headers and who aborts: methods of Node's
// are wrapped, since no channel reports it and no hook does before it matters. What a wrapper adds is a
// property that is read, but for the call that changes the state: that captures a stack.

const process = require('node:process')
const { transferableAbortController, types } = require('node:util')
const guard = require('../core/guard')
const { on } = require('../core/on')
const { ended } = require('../core/served-requests')
const changes = require('../core/state-changes')
const { isObject, own } = require('../objects')
const { wrapAll } = require('../wrap')

/**
 * by codes of errors: the states that these come of
 * @type {Record<string, import('../core/state-changes').State[]>}
 */
const statesByCode = {
  __proto__: /** @type {any} */ (null),
  ERR_STREAM_WRITE_AFTER_END: ['ended', 'destroyed'],
  ERR_STREAM_DESTROYED: ['destroyed', 'ended']
}

/** @typedef {(self: any, args: IArguments, above: Function) => void} Before called before a method */

/** Returns what bears the notes of an object: a response has the shape that Node knows. @param {any} self */
const bearerOf = (self) => isObject(self.req) ? self.req : self

/** @type {Before} */
function ends (self, _, above) {
  if (self.finished === true || self._writableState?.ending === true) return
  const bearer = bearerOf(self)
  const chain = changes.note('ended', bearer, `${nounOf(self)}.end`, above)
  if (bearer !== self && chain !== 0) ended(bearer, chain)
}

/** @type {Before} */
function destroys (self, args, above) {
  const error = args[0]
  const { _readableState: readable, _writableState: writable } = self
  const isDestroyed = (writable ?? readable ?? self).destroyed === true
  if (isDestroyed) return
  if (isObject(error) && !types.isProxy(error)) linkError(error, self)
  // Node destroys what has come to its end
  const isOver = readable?.endEmitted === true && writable?.finished !== false
  if (!isOver) changes.note('destroyed', bearerOf(self), `${nounOf(self)}.destroy`, above)
}

/** Headers are put in order, to be sent. @type {Before} */
function stores (self, _, above) {
  if (changes.isNoted('ended', bearerOf(self))) return // by end(), which calls this
  changes.note('sent', bearerOf(self), `${nounOf(self)}.writeHead`, above)
}

/** Headers are changed, or sent. @type {Before} */
function changesHeaders (self) {
  if (typeof self._header === 'string') changes.fail(changes.changeOf(bearerOf(self), ['sent', 'ended']))
}

/** @type {Before} */
function aborts (self, [reason], above) {
  const { signal } = self
  if (signal.aborted) return
  changes.note('aborted', signal, 'controller.abort', above)
  if (isObject(reason)) changes.link(reason, changes.changeOf(signal, ['aborted']))
}

/** Links the reason that Node makes. @param {any} self */
function aborted ({ signal }) {
  if (isObject(signal.reason)) changes.link(signal.reason, changes.changeOf(signal, ['aborted']))
}

/**
 * Links an error to what was done to an object before.
 * @param {object} error
 * @param {object} object
 */
function linkError (error, object) {
  const states = statesByCode[String(own(error, 'code'))]
  if (states !== undefined) changes.link(error, changes.changeOf(bearerOf(object), states))
}

/** @param {any} object @returns {string} what a person calls it */
function nounOf (object) {
  if (isObject(object.req)) return 'response'
  if (typeof object.getHeader === 'function') return 'request'
  return object._host !== undefined || object._sockname !== undefined ? 'socket' : 'stream'
}

/** puts all back @type {Array<() => void>} */
let restores = []
let isHttpWrapped = false
let isOn = false

/**
 * Wraps methods that owners have as their own.
 * @param {object[]} owners
 * @param {string[]} names
 * @param {Before} before
 * @param {(self: any) => void} [done] called behind it
 */
function wrapMethods (owners, names, before, done) {
  restores.push(wrapAll(owners, names, (self, args, above) => {
    if (isOn) before(self, args, above)
  }, done && ((self) => { if (isOn) done(self) })))
}

/** Returns the prototype of AbortController: to read that global itself changes its property. */
const controllerPrototype = () => guard.run(() => Object.getPrototypeOf(transferableAbortController()))

function enable () {
  isOn = true
  if (restores.length === 0) {
    const { Duplex, Readable, Writable } = require('node:stream')
    wrapMethods([Writable.prototype, Duplex.prototype], ['end'], ends)
    wrapMethods([Readable.prototype, Writable.prototype, Duplex.prototype], ['destroy'], destroys)
    wrapMethods([controllerPrototype()], ['abort'], aborts, aborted)
  }
  enableHttp()
}

/** Called whenever the program may have loaded http since. */
function enableHttp () {
  if (isHttpWrapped || !isOn || !isLoaded('_http_outgoing')) return
  isHttpWrapped = true
  const { ClientRequest, OutgoingMessage, ServerResponse } = /** @type {any} */ (require('node:http'))
  const { prototype } = OutgoingMessage
  wrapMethods([prototype], ['end'], ends)
  wrapMethods([prototype], ['_storeHeader'], stores)
  wrapMethods([prototype, ClientRequest.prototype], ['destroy'], destroys)
  wrapMethods([prototype], ['setHeader', 'appendHeader', 'removeHeader'], changesHeaders)
  wrapMethods([ServerResponse.prototype], ['writeHead', 'writeHeader'], changesHeaders)
}

function disable () {
  isOn = isHttpWrapped = false
  for (const restore of restores) restore()
  restores = []
}

/** Returns whether the program has loaded a module of Node's. @param {string} name */
function isLoaded (name) {
  const list = /** @type {any} */ (process).moduleLoadList
  return !Array.isArray(list) || list.includes(`NativeModule ${name}`)
}

on('passedToTick', (error, _, subject) => {
  if (isObject(subject) && subject !== error) linkError(error, subject)
})

module.exports = { disable, enable, enableHttp }
