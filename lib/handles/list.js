'use strict'

// Open resources: those in the registry, and those from before longstack was enabled, which only Node lists.

const { isProxy } = require('node:util').types
const { OWN_WORK, contextTag } = require('../core/context')
const { getOrAdd } = require('../group-by')
const { handleOf, ownerOf } = require('../node-objects')
const { isObject, own } = require('../objects')
const { descriptors, openerContext } = require('./descriptors')
const { contextOf } = require('./find')
const registry = require('../core/registry')
const { DESCRIPTOR } = require('../subsystems')
const { isOpen } = require('./state')
const {
  handlesOfType, isResource, isShared, standardDescriptor, typeOf, typeOfRole
} = require('./subject')

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('./subject').Subject} Subject
 */

/** Requests on a handle that is itself listed. */
const handleRequests = [
  'FILEHANDLECLOSEREQ', 'TCPCONNECTWRAP', 'PIPECONNECTWRAP', 'WRITEWRAP', 'SHUTDOWNWRAP', 'UDPSENDWRAP',
  'HTTP2PING', 'HTTP2SETTINGS'
]

/** Node's files that create timers for the program. */
const timerModule = /^node:(internal\/)?(timers|abort_controller|util)\b/

/** Resources per piece of work. */
const STRIDE = 100

/**
 * Lists open resources.
 * @param {(type: string) => boolean} isSelected
 * @returns {Subject[]}
 */
function list (isSelected) {
  return [...walk(isSelected)].filter((subject) => subject !== undefined)
}

/**
 * Lists the same with pauses, in which the event loop may run.
 * @param {(type: string) => boolean} isSelected
 * @returns {Generator<import('./subject').Subject | undefined, void>} undefined: a pause
 */
function * walk (isSelected) {
  const { owners, wrapped, shared } = yield * nodeHandles()
  /** by chain number @type {Map<number, boolean>} */
  const programChains = new Map()
  const isHidden = (/** @type {object} */ handle) => wrapped.has(handle) && isSelected('TLSWRAP')
  for (const [i, entry] of registry.list().entries()) {
    if (i % STRIDE === 0) yield undefined
    const handle = entry.resource.deref()
    if (handle === undefined) continue
    const { context } = entry
    const holder = owners.get(handle) ?? entry.owner?.deref() ?? ownerOf(handle)
    owners.delete(handle)
    const isOfCluster = holder !== undefined && shared.delete(holder)
    const owner = isOfCluster ? undefined : holder
    const type = typeOfRole(context.type, owner)
    if (!isSelected(type) || isHidden(handle)) continue
    const object = owner ?? (type === 'MESSAGEPORT' ? handle : undefined)
    const subject = { object, handle, type, context, entry, isShared: isOfCluster }
    if (isOpen(subject) === true && isOfProgram(context, handle, programChains) && !isOutput(subject)) {
      yield subject
    }
  }
  if (isSelected('Timeout')) yield * timers(programChains)
  for (const [handle, object] of owners) {
    if (contextTag.read(handle) === OWN_WORK) continue
    const context = contextOf(handle)
    const isTyped = context !== undefined && context.type !== 'unknown'
    const type = typeOfRole(isTyped ? context.type : typeOf(handle, object), object)
    if (!isSelected(type) || handleRequests.includes(type) || isHidden(handle)) continue
    const owner = object === handle ? undefined : object
    const subject = { object: owner, handle, type, context, entry: undefined }
    if (!isOutput(subject)) yield subject
  }
  for (const object of shared) {
    const type = typeOf(undefined, object)
    if (!isSelected(type)) continue
    yield { object, handle: undefined, type, context: undefined, entry: undefined, isShared: true }
  }
  if (isSelected(DESCRIPTOR)) yield * withoutResource()
}

/** Lists file descriptors without a resource. @returns {ReturnType<typeof walk>} */
function * withoutResource () {
  let count = 0
  for (const descriptor of descriptors()) {
    if (count++ % STRIDE === 0) yield undefined
    if (descriptor === undefined) continue
    const context = openerContext(descriptor)
    yield { object: undefined, handle: undefined, type: DESCRIPTOR, context, entry: undefined, descriptor }
  }
}

/** Selects resources with an opener that may be known. @param {string} type */
const isTraced = (type) => type !== DESCRIPTOR

/** @param {Map<number, boolean>} programChains @returns {ReturnType<typeof walk>} */
function * timers (programChains) {
  for (const [i, timer] of registry.timersOfProgram().entries()) {
    if (i % STRIDE === 0) yield undefined
    const entry = registry.ofTimer(timer)
    if (entry === undefined) continue
    const { context } = entry
    const subject = { object: timer, handle: timer, type: 'Timeout', context, entry }
    if (isOpen(subject) === true && isOfProgram(context, timer, programChains)) yield subject
  }
}

/**
 * Returns the handles that Node lists, and those below TLS, which form one connection with it.
 * @returns {Generator<undefined, { owners: Map<object, object>, wrapped: Set<object>,
 *   shared: Set<object> }>} owners: the program's object for a handle; shared: see `isShared`
 */
function * nodeHandles () {
  const owners = new Map()
  const shared = new Set()
  const node = /** @type {any} */ (process)
  for (const [i, object] of node._getActiveHandles().concat(node._getActiveRequests()).entries()) {
    if (i % STRIDE === 0) yield
    if (isProxy(object)) continue
    const handle = handleOf(object) ?? (isHandle(object) ? object : undefined)
    if (handle !== undefined) owners.set(handle, object) // a closing object no longer has a handle
    else if (isShared(object)) shared.add(object)
  }
  const wrapped = new Set()
  for (const [i, handle] of [...handlesOfType('TLSWRAP'), ...owners.keys()].entries()) {
    if (i % STRIDE === 0) yield
    const parent = own(handle, '_parent')
    const socket = ownerOf(handle)
    if (!isObject(parent) || socket === undefined || handleOf(socket) !== handle) continue
    wrapped.add(parent)
    owners.set(parent, socket)
  }
  return { owners, wrapped, shared }
}

/** Whether an object that Node lists is itself a handle. @param {object} object */
const isHandle = (object) => isResource(object) || typeOf(undefined, object) === 'MESSAGEPORT'

/**
 * Whether the program created it, not Node internally (timers of sockets, ports of workers).
 * @param {Context} context
 * @param {object} handle
 * @param {Map<number, boolean>} known by chain
 */
function isOfProgram (context, handle, known) {
  if (context.type !== 'Timeout' && context.type !== 'MESSAGEPORT') return true
  return getOrAdd(known, context.chain, () => isMadeByProgram(context))
}

/** Whether the program created a timer or a port, by its stack. @param {Context} context */
function isMadeByProgram (context) {
  const frames = (context.stack?.frames ?? [])
    .filter((frame) => frame.kind !== 'own' && frame.fileName !== undefined)
  const first = frames.findIndex((frame) => frame.kind !== 'core')
  const calls = frames.slice(0, first === -1 ? frames.length : first)
  if (context.type === 'MESSAGEPORT') return calls.every((call) => call.fileName !== 'node:internal/worker')
  if (first === -1) return frames.length === 0
  return calls.every(({ fileName, functionName }) => {
    return timerModule.test(String(fileName)) && functionName !== 'setUnrefTimeout'
  })
}

/**
 * Whether it is standard output or error, which Node itself opens in every process.
 * @param {Subject} subject
 */
function isOutput (subject) {
  const fd = standardDescriptor(subject)
  return fd === 1 || fd === 2
}

/**
 * Runs a generator to completion.
 * @template T
 * @param {Generator<unknown, T, void>} pieces
 * @returns {T}
 */
function drain (pieces) {
  for (;;) {
    const { done, value } = pieces.next()
    if (done) return value
  }
}

module.exports = { drain, isTraced, list, walk }
