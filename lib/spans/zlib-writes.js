'use strict'

// A zlib stream has one resource for all that it is given, and no event says when a thread of the pool got a
// piece to work on. So the handle's `write` notes in which run of the request it was called: there the wait
// began that the stream's next callback ends.

const { CURRENT_RUN, CURRENT_SPAN, current } = require('../context/current')
const { RUN, SPAN, readWord, writeWord } = require('../context/records')
const { spanAt } = require('./identities')

const { apply, defineProperty } = Reflect

/**
 * @param {any} handle of a zlib stream, internal to Node
 * @param {number} ref of its record
 */
function noteZlibWrites (handle, ref) {
  const method = handle.write
  if (typeof method !== 'function') return
  const { write } = {
    /** @this {any} */
    write () {
      const isOwn = spanAt(current[CURRENT_SPAN])?.log === spanAt(readWord(ref, SPAN))?.log
      writeWord(ref, RUN, isOwn ? current[CURRENT_RUN] : 0)
      return apply(method, this, arguments)
    }
  }
  defineProperty(handle, 'write', { value: write, writable: true, configurable: true })
}

module.exports = { noteZlibWrites }
