'use strict'

// From an object of the program to its resource: handle, type, context and entry. Nothing here runs code of
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
 * What was reported of an object before: a handle from before enabling has no entry that keeps it.
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
 * Returns the context behind an object: that of an outer resource where the filter leaves out its own.
 * @param {object} target
 * @returns {Context | undefined}
 */
function findContext (target) {
  const object = connectionOf(target)
  const { context, handle } = subjectOf(object)
  return context ?? withoutOwnWork(contextTag.read(handle ?? object))
}

/**
 * Goes from a request or response to its connection, from a wrapper to what it wraps.
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
 * Returns the socket behind session.socket of HTTP/2, a proxy that its session knows.
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
 * Returns the context of a resource itself. Where a filter leaves a type out, its resources pass on an outer
 * context, whose chain would be wrong in a report.
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
 * Returns the context of what waits for a connection: a request has a resource in the queue, a session its
 * socket.
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
 * Returns the request on a connection now. http keeps it on the socket; undici reports it through its
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
 * Whether the filter leaves out the type of a resource, so that it has only an outer context.
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
