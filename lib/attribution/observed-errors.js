'use strict'

// Notes about an error from before its stack was read. With the error's frames they are all the evidence for
// attribution.

const { root, typeOfStep } = require('../core/context')
const { createTag } = require('../core/tag')
const { on } = require('../core/on')
const { isAnyObject, own } = require('../objects')
const { locate } = require('../core/allocation-clock')
const { Rejections, contextOfStep } = require('./flows')

const { isNativeError, isProxy } = require('node:util').types
const MAX_MEMBERS = 16 // of an AggregateError
const MAX_VALUES = 64 // rejections with a value that is no object, per iteration of the event loop

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('./flows').RecordedStep} RecordedStep
 *
 * @typedef {object} Escape an error that nothing caught
 * @property {Context} context that threw it or rejected its promise
 * @property {boolean} isRejection whether the context rejected
 */

/** The notes about one error. */
class ObservedError {
  constructor () {
    /** context of the callback that made it @type {Context | undefined} */
    this.maker = undefined
    /** made by Node's native code before that callback, so it has no frames that ran */
    this.isNative = false
    /** @type {Rejections | undefined} */
    this.rejections = undefined
    /** reference of the last promise that was rejected with it, the unhandled one; 0 if there is none */
    this.lastPromise = 0
    /** @type {Escape | undefined} */
    this.escape = undefined
    /** context in which Node passed it to nextTick @type {Context | undefined} */
    this.handedOverBy = undefined
    /** the hops that were appended to its stack @type {import('../stacks/chain').PrintedHop[] | undefined} */
    this.hops = undefined
  }
}

/**
 * Invisible tag on the error itself: a WeakMap makes a read of `.stack` 2 µs slower (bench/errors.js).
 * @type {ReturnType<typeof createTag<ObservedError>>}
 */
const tag = createTag()

/**
 * Observes an error now, while the allocation clock may still know it.
 * @param {object} error
 * @returns {ObservedError}
 */
function observe (error) {
  let observed = tag.read(error)
  if (observed === undefined) tag.write(error, observed = new ObservedError())
  if (observed.maker === undefined) noteMaker(error, observed)
  return observed
}

/** Observes a possible error, even if the program's stack is full. @param {unknown} value */
function observeQuietly (value) {
  try {
    if (isAnyObject(value)) observe(value)
  } catch {}
}

/**
 * Observes the errors that an error carries, while the allocation clock may still know them.
 * @param {object} error
 */
function observeRelated (error) {
  if (!isNativeError(error)) return // also excludes proxies, which run traps of the program
  const cause = own(error, 'cause')
  if (typeof cause === 'object' && cause !== null) observe(cause)
  const members = own(error, 'errors')
  if (!Array.isArray(members) || isProxy(members)) return
  for (let i = 0; i < Math.min(members.length, MAX_MEMBERS); i++) {
    const member = own(members, i)
    if (typeof member === 'object' && member !== null) observe(member)
  }
}

/** @param {unknown} error @returns {ObservedError | undefined} */
const get = (error) => isAnyObject(error) ? tag.read(error) : undefined

/**
 * Notes the context that rejected with an error.
 * @param {object} error
 * @param {Context} context
 * @param {RecordedStep} promise
 */
function noteRejection (error, context, promise) {
  const observed = observe(error)
  if (promise.ref !== 0) observed.lastPromise = promise.ref
  if (observed.rejections !== undefined) return observed.rejections.note(context, promise)
  observeRelated(error)
  observed.rejections = new Rejections(context, promise)
}

/**
 * Notes an error that nothing caught; the first time counts.
 * @param {unknown} error
 * @param {Escape} escape
 */
function noteEscape (error, escape) {
  if (typeof error !== 'object' || error === null) return
  observe(error).escape ??= escape
  observeRelated(error)
}

/**
 * Rejections of this iteration with values that are no objects. Values have no identity to tag, but Node
 * reports them in the same iteration.
 * @type {Array<{ reason: unknown, context: Context }>}
 */
let values = []

/**
 * Notes the context that rejected with a value that is no object.
 * @param {unknown} reason
 * @param {Context} context
 * @param {RecordedStep} record
 */
function noteRejectedValue (reason, context, record) {
  if (typeof reason === 'function') return // the program may define its text
  if (values.length > MAX_VALUES) return
  const promise = contextOfStep(record)
  const isInner = promise?.parent === context || context === root
  values.push({ reason, context: isInner ? promise ?? context : context })
}

/**
 * Returns the context that rejected with a value, given the error that Node made of the unhandled value
 * (lib/internal/process/promises.js).
 * @param {any} error
 * @returns {Context | undefined} undefined if several contexts may have
 */
function rejecterOfValue (error) {
  if (values.length === 0 || values.length > MAX_VALUES) return undefined
  if (typeof error !== 'object' || error === null) return undefined
  if (own(error, 'code') !== 'ERR_UNHANDLED_REJECTION') return undefined
  const message = String(own(error, 'message'))
  const matches = values.filter(({ reason }) => message.endsWith(`"${String(reason)}".`))
  return matches.length === 1 ? matches[0].context : undefined
}

/**
 * Notes the callback in which an error was made, by the allocation clock.
 * @param {object} error
 * @param {ObservedError} observed
 */
function noteMaker (error, observed) {
  const allocation = locate(error)
  if (allocation === undefined) return
  // Between two callbacks Node's native code makes the error that it passes to the second one.
  const isNative = allocation.chain === 0
  const step = isNative ? allocation.next : allocation
  if (step === undefined || step.chain === 0 || (isNative && !isReportedBy(error, step))) return
  observed.maker = contextOfStep(step)
  observed.isNative = isNative
}

/**
 * Whether an error reports a failed system call of the kind that a file request makes.
 * @param {object} error
 * @param {RecordedStep} request
 */
function isReportedBy (error, { chain, ref }) {
  const call = Object.getOwnPropertyDescriptor(error, 'syscall')?.value
  return typeof call === 'string' && fileCalls.has(call) && fileRequests.has(typeOfStep(chain, ref))
}

const fileRequests = new Set(['FSREQCALLBACK', 'FSREQPROMISE'])

const fileCalls = new Set([
  'open', 'read', 'write', 'stat', 'fstat', 'lstat', 'scandir', 'mkdir', 'rmdir', 'unlink', 'rename',
  'access', 'close', 'realpath', 'readlink', 'symlink', 'link', 'chmod', 'fchmod', 'lchmod', 'chown',
  'fchown', 'lchown', 'utime', 'futime', 'lutime', 'truncate', 'ftruncate', 'copyfile', 'opendir',
  'mkdtemp', 'fsync', 'fdatasync', 'statfs', 'rm'
])

on('passedToTick', (error, context) => { observe(error).handedOverBy ??= context })
on('iteration', () => { if (values.length > 0) values = [] })
on('rejected', (reason, context, promise) => {
  if (isAnyObject(reason)) noteRejection(reason, context, promise)
  else noteRejectedValue(reason, context, promise)
})

module.exports = {
  get,
  noteEscape,
  observe,
  observeQuietly,
  rejecterOfValue
}
