'use strict'

// Maps an object of the program to its resource: handle, type, context and entry. Nothing here runs code of
// the program.

const { types } = require('node:util')
const { OWN_WORK, contextTag } = require('../core/context')
const { createTag } = require('../core/tag')
const { handleOf, idOf, ownerOf, providerOf } = require('../node-objects')
const { hidden, isObject, own } = require('../objects')
const registry = require('../core/registry')
const { requestLabel } = require('./request-label')
const { handlesOfType, isResource, typeOf, typeOfRole } = require('./subject')

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('./subject').Subject} Subject
 */

/**
 * Facts reported earlier for an object. A handle opened before enabling has no entry that keeps them.
 * @type {ReturnType<typeof createTag<{ type: string, local: string | undefined, remote: string | undefined
 *   }>>}
 */
const reportedFacts = createTag()

const MAX_STEPS = 3 // from a response to its request to its socket

/**
 * Returns the resource behind an object.
 * @param {object} target
 * @returns {Subject}
 */
function find (target) {
  return subjectOf(connectionOf(target))
}

/**
 * Returns the context behind an object, or that of an outer resource if the filter excludes its type.
 * @param {object} target
 * @returns {Context | undefined}
 */
function findContext (target) {
  const object = connectionOf(target)
  const { context, handle } = subjectOf(object)
  return context ?? withoutOwnWork(contextTag.read(handle ?? object))
}

/**
 * Resolves a request or response to its connection, and a wrapper to the wrapped object.
 * @param {object} target
 * @returns {object}
 */
function connectionOf (target) {
  let object = target
  if (types.isProxy(object)) return sessionSocket(object) ?? object
  for (let step = 0; step < MAX_STEPS && !types.isNativeError(object); step++) {
    if (handleOf(object) !== undefined || idOf(object) !== undefined) break
    const next = ['socket', 'client', 'req'].map((name) => own(object, name)).find(isObject) ??
      hidden(object, 'kSocket', 'stream')
    if (!isObject(next)) break
    object = next
  }
  return object
}

/**
 * Returns the socket behind an HTTP/2 session.socket, which is a proxy that the session stores.
 * @param {object} proxy
 */
function sessionSocket (proxy) {
  for (const handle of handlesOfType('HTTP2SESSION')) {
    const session = ownerOf(handle)
    if (session !== undefined && hidden(session, 'proxySocket') === proxy) return hidden(session, 'socket')
  }
  return undefined
}

/** @param {object} object @returns {Subject} */
function subjectOf (object) {
  if (types.isProxy(object) || types.isNativeError(object)) {
    const visible = types.isProxy(object) ? undefined : object
    return { object: visible, handle: undefined, type: 'unknown', context: undefined, entry: undefined }
  }
  const handle = handleOf(object) ?? (isResource(object) ? object : undefined)
  const entry = registry.ofObject(object)
  const context = contextOf(handle ?? object) ?? entry?.context ?? contextOfWaiting(object)
  const isTyped = (handle !== undefined || entry !== undefined) && context?.type !== 'unknown'
  const type = (isTyped ? context?.type : undefined) ?? presentOrReportedType(handle, object)
  return { object, handle, type: typeOfRole(type, object), context, entry }
}

/** @param {object | undefined} handle @param {object} object */
function presentOrReportedType (handle, object) {
  const type = typeOf(handle, object)
  return type === 'unknown' ? reportedFacts.read(object)?.type ?? type : type
}

/**
 * Returns the resource's own context. Resources of a type that the filter excludes inherit an outer context,
 * whose chain would be wrong in a report.
 * @param {object} resource
 * @returns {Context | undefined}
 */
function contextOf (resource) {
  const context = withoutOwnWork(contextTag.read(resource))
  if (context === undefined) return undefined
  if (types.isPromise(resource)) return context.type === 'PROMISE' ? context : undefined
  const id = idOf(resource)
  if (id !== undefined) return id === context.asyncId ? context : undefined
  const type = providerOf(resource)
  return type === undefined || type === context.type ? context : undefined
}

/**
 * Returns the context of an object that waits for a connection: a queued request has its own resource, a
 * session has its socket.
 * @param {object} object a ClientRequest, an HTTP/2 stream or session
 */
function contextOfWaiting (object) {
  const queued = hidden(object, 'requestAsyncResource', 'kRequestAsyncResource')
  if (isObject(queued)) return contextOf(queued)
  const socket = typeOf(undefined, object) === 'HTTP2SESSION' ? hidden(object, 'socket') : undefined
  const handle = isObject(socket) ? handleOf(socket) : undefined
  return handle && contextOf(handle)
}

/**
 * Returns the current request on a connection. http keeps it on the socket; undici reports it through its
 * channels.
 * @param {object} socket
 * @param {import('../core/entry').Entry | undefined} entry
 * @returns {{ label: string, context: Context | undefined } | undefined}
 */
function userOf (socket, entry) {
  const message = own(socket, '_httpMessage')
  if (isObject(message)) {
    const incoming = own(message, 'req')
    const request = isObject(incoming) ? incoming : message
    return { label: requestLabel(request), context: contextOf(request) ?? contextOfWaiting(request) }
  }
  const use = entry?.use
  if (use === undefined || use.isOver || use.request.deref() === undefined) return undefined
  return { label: use.label, context: withoutOwnWork(use.context) }
}

/**
 * Whether the filter excludes a resource's type, so that it has only an outer context.
 * @param {object} resource
 */
function isFiltered (resource) {
  const context = contextTag.read(resource)
  return context !== undefined && context !== OWN_WORK && contextOf(resource) === undefined
}

/** @param {Context | undefined} context */
function withoutOwnWork (context) {
  return context === OWN_WORK ? undefined : context
}

module.exports = { contextOf, find, findContext, isFiltered, reportedFacts, userOf }
