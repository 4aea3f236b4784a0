'use strict'

// Makes the recorder of spans, and has it hear of what happens.

const { frameDuring, recorder: blockedRecorder } = require('../blocked/wanted')
const { errorStack } = require('../attribution/error-hops')
const { now } = require('../context/clock')
const guard = require('../context/guard')
const { typeOfStep } = require('../context/context')
const { placeStack } = require('../format/chain-texts')
const registry = require('../handles/registry')
const currentStep = require('../hooks/current-step')
const { failed } = require('../hooks/faults')
const { callbackListeners, on } = require('../hooks/on')
const { servedRequests } = require('../hooks/served')
const { read: readSettlements } = require('../hooks/settlements')
const stepSpans = require('../hooks/step-spans')
const { handleOf, idOf, underlyingHandle } = require('../node-objects')
const { isAnyObject } = require('../objects')
const channels = require('../requests/channels')
const { createRequestLayer } = require('../requests/layer')
const { settings } = require('../settings')
const { warn } = require('../warnings')
const { LoopTime } = require('./loop-time')
const { createSpanRecorder } = require('./recorder')
const { pathOf, siteOf } = require('./sites')

const SWEEP_MS = 1000

/** @typedef {typeof asyncLayer} AsyncLayer */
const asyncLayer = { ...currentStep, ...stepSpans, readSettlements }

/** @param {import('../listeners').Listeners<any>} listeners of `span` */
function connectRecorder (listeners) {
  const loop = new LoopTime(typeOfStep)
  const recorder = createSpanRecorder({
    asyncLayer,
    loop,
    now,
    warn,
    options: () => settings.options,
    listeners,
    failed,
    stack: placeStack,
    pathOf,
    siteOf,
    errorStack,
    contextOfRequest: currentStep.contextOfRequest,
    koaRoutes: servedRequests().loadKoaRoutes(),
    frameAt: frameDuring,
    handlesOf,
    listenToRequests
  })
  blockedRecorder.record = recorder.recordBlocking
  let sweepAt = 0
  on('iteration', (time) => {
    if (time < sweepAt) return
    sweepAt = time + SWEEP_MS
    guard.run(() => recorder.sweep(time))
  })
  on('rejected', (reason, { span }) => {
    if (span !== undefined && isAnyObject(reason)) recorder.noteRejection(reason, span)
  })
  on('escaped', (error, { span }) => {
    if (span !== undefined) recorder.recordException(span, error)
  })
  return recorder
}

/**
 * Listens to Node's requests for the recorder, and to timers that stay.
 * @param {import('./http-spans').HttpSpans} httpSpans
 * @param {(timer: import('../handles/entry').Entry) => void} noteTimer
 * @returns {{ enable: () => void, disable: () => void }}
 */
function listenToRequests (httpSpans, noteTimer) {
  const layer = createRequestLayer({
    listener: { ...httpSpans, asyncIdsOf },
    callbackListeners,
    isSelected: (type) => settings.isSelected(type),
    propagates: () => settings.options.propagate,
    spanOf: stepSpans.spanOf,
    setSpan: stepSpans.setSpan
  })
  const removals = [
    channels.subscribe(layer.subscriptions),
    on('opened', layer.opened),
    on('connecting', (context, { resource }) => layer.connecting(context, resource.deref()))
  ]
  if (layer.ticked !== undefined) removals.push(on('ticked', layer.ticked))
  return {
    enable () {
      layer.enable()
      registry.listenToTimers(noteTimer)
    },
    disable () {
      for (const remove of removals) remove()
      layer.disable()
      callbackListeners.clear() // of connections that stay open: tracing may go on without spans
      registry.listenToTimers(undefined)
    }
  }
}

/** Returns a socket's own handle, and what lies below it under TLS. @param {object} socket */
function handlesOf (socket) {
  const handle = handleOf(socket)
  return [handle, underlyingHandle(handle)].filter((handle) => handle !== undefined)
}

/** Returns the async ids on which a socket runs: its own, and those of its handles. @param {object} socket */
function asyncIdsOf (socket) {
  const handle = handleOf(socket)
  const ids = [idOf(socket), handle && idOf(handle), handle && idOf(underlyingHandle(handle))]
  return [...new Set(ids.filter((id) => id !== undefined))]
}

module.exports = { connectRecorder }
