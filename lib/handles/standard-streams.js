'use strict'

// Pipes, terminals and signals by the part that they play: the standard streams of this process, those of its
// children, channels to other processes, the signals that are listened to.

const { Readable } = require('node:stream')
const { callNative, numberOf, ownerOf } = require('../node-objects')
const { hidden, inherits, isObject, own } = require('../objects')
const { isConnection } = require('./subject')

/** @typedef {import('./subject').Subject} Subject */

const { ReadableState } = /** @type {any} */ (Readable)

const names = ['standard input', 'standard output', 'standard error']

/**
 * Returns the descriptor of a standard stream of this process. libuv opens a terminal again, with another
 * descriptor (uv_tty_init in deps/uv/src/unix/tty.c); Node notes the original one on the stream.
 * @param {Subject} subject
 * @returns {0 | 1 | 2 | undefined}
 */
function standardDescriptor ({ object, handle, type }) {
  if (handle === undefined || !(type === 'TTYWRAP' || isConnection(type))) return undefined
  const noted = object === undefined || type !== 'TTYWRAP' ? undefined : own(object, 'fd')
  const fd = noted ?? callNative(handle, 'fd')
  return fd === 0 || fd === 1 || fd === 2 ? fd : undefined
}

/** @param {Subject} subject @returns {string | undefined} */
function standardNameOf (subject) {
  const fd = standardDescriptor(subject)
  return fd === undefined ? undefined : names[fd]
}

/**
 * Whether a standard stream reads, is about to, or writes. It has a reference from the beginning, but holds
 * no process that does neither.
 * @param {Subject} subject
 */
function isActiveStream ({ object, handle }) {
  if (handle === undefined) return false
  if (own(handle, 'reading') === true || Number(numberOf(handle, 'writeQueueSize')) > 0) return true
  const state = object === undefined ? undefined : own(object, '_readableState')
  if (!isObject(state) || !inherits(state, ReadableState.prototype)) return false
  const { flowing, readableListening } = /** @type {any} */ (state)
  return flowing === true || readableListening === true
}

/**
 * Describes a pipe between this process and a child or the parent.
 * @param {Subject} subject
 * @param {() => Iterable<object>} processHandles of the children
 * @returns {string} with a comma before it; empty where it is none
 */
function pipeDetail ({ object, handle }, processHandles) {
  const ownChannel = hidden(process, 'kChannelHandle')
  if (handle !== undefined && ownChannel === handle) return ', channel to the parent process'
  for (const processHandle of processHandles()) {
    const child = ownerOf(processHandle)
    if (child === undefined) continue
    const stdio = own(child, 'stdio')
    const index = object !== undefined && Array.isArray(stdio) ? stdio.indexOf(object) : -1
    const isChannel = handle !== undefined && hidden(child, 'kChannelHandle') === handle
    if (index === -1 && !isChannel) continue
    const part = isChannel ? 'channel to' : `${names[index] ?? `descriptor ${index}`} of`
    const pid = own(child, 'pid')
    return `, ${part} child process${typeof pid === 'number' ? ` ${pid}` : ''}`
  }
  return ''
}

/**
 * Names the signals that have listeners: Node does not note on a handle which is its own.
 * @returns {string} with a comma before it; empty where there are none
 */
function signalDetail () {
  const events = own(process, '_events')
  const signals = isObject(events) ? Object.keys(events).filter((name) => /^SIG[A-Z0-9]+$/.test(name)) : []
  return signals.length === 0 ? '' : `, ${signals.join(' or ')}`
}

module.exports = { isActiveStream, pipeDetail, signalDetail, standardDescriptor, standardNameOf }
