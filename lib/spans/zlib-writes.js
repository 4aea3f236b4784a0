'use strict'

// A zlib stream has one resource for all that it is given, and no event says when a thread of the pool got a
// piece to work on. So the handle's `write` notes in which run of the request it was called: there the wait
// began that the stream's next callback ends.

const { ATTENTION, CURRENT_RUN, CURRENT_SPAN, TIMED, current } = require('../core/current')
const { RUN, SPAN, findResource } = require('../core/records')
const { source } = require('../core/source')
const { idOf } = require('../node-objects')
const { wrap } = require('../wrap')

const { apply, getPrototypeOf } = Reflect

/** what puts `write` back, by the prototype of a kind of stream @type {Map<object, () => boolean>} */
const wrapped = new Map()

/** @param {object} handle of a zlib stream, internal to Node */
function watchZlibWrites (handle) {
  const prototype = getPrototypeOf(handle)
  if (prototype === null || wrapped.has(prototype)) return
  const unwrap = wrap(prototype, 'write', (method) => ({
    /** @this {any} */
    write () {
      if ((current[ATTENTION] & TIMED) !== 0) noteWrite(this)
      return apply(method, this, arguments)
    }
  }).write)
  if (unwrap !== undefined) wrapped.set(prototype, unwrap)
}

/** Puts back what was there. */
function unwatchZlibWrites () {
  for (const [prototype, unwrap] of wrapped) if (unwrap()) wrapped.delete(prototype)
}

/** @param {any} handle */
function noteWrite (handle) {
  const record = findResource(idOf(handle) ?? 0)
  if (record === undefined) return
  const { words, offset } = record
  const isOwn = source.spanAt(current[CURRENT_SPAN])?.log === source.spanAt(words[offset + SPAN])?.log
  words[offset + RUN] = isOwn ? current[CURRENT_RUN] : 0
}

module.exports = { unwatchZlibWrites, watchZlibWrites }
