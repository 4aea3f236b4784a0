'use strict'

// Registry entry of an open resource.

const { createTag } = require('./tag')

const OWNER_LOOKUPS = 4 // number of a handle's events that are examined for its owner

/**
 * @typedef {import('./context').Context} Context
 *
 * @typedef {object} Use a request on a connection
 * @property {WeakRef<object>} request
 * @property {string} label
 * @property {Context | undefined} context the step that made it
 * @property {boolean} isOver
 */

class Entry {
  /** @param {Context} context @param {object} resource */
  constructor (context, resource) {
    this.context = context
    this.resource = new WeakRef(resource)
    /** last data in either direction, response or event; ms of the clock @type {number} */
    this.activeAt = context.time
    /** @type {string | undefined} */
    this.local = undefined
    /** @type {string | undefined} */
    this.remote = undefined
    /** @type {Use | undefined} */
    this.use = undefined
    /** the program's object is tagged with this entry @type {boolean} */
    this.isOwnerKnown = context.type === 'Timeout'
    /** remaining events to examine for the owner, as a bare handle has none @type {number} */
    this.ownerLookups = OWNER_LOOKUPS
    /** the program's object, if the handle does not lead to it @type {WeakRef<object> | undefined} */
    this.owner = undefined
    /** session of a stream: activity of the stream is activity of the session @type {Entry | undefined} */
    this.session = undefined
    /** accepted connection: entry of the TLS connection on top of it @type {Entry | undefined} */
    this.above = undefined
    /** a connection that a server accepted */
    this.isAccepted = false
    /** a connection that the program opened */
    this.isClient = false
    // Undefined, not NaN: V8 allocates a heap object for each number that is not a small integer.
    /** references of the current ask, see core/asks.js, and of the last write; 0: none or unknown */
    this.ask = this.lastAsk = 0
    /** last write of the program, ms of the clock @type {number | undefined} */
    this.writeTime = undefined
    /** several flows have had concurrent queries */
    this.isShared = false
    /** when several queries were sent at once, whole ms of the clock; 0: never */
    this.dueSince = 0
    /** earlier queries were not seen and may still get a response: ms of the clock, 0: none */
    this.unseenUntil = 0
    /** connection of the program: it has begun to connect */
    this.hasTraffic = false
    /** the program has sent a query on it, not only its driver; while runs are logged */
    this.isAsked = false
    /** written bytes wait until the connection is open; while runs are logged */
    this.isWritten = this.isHeld = false
    /** next sweep of this entry, whole ms of the clock */
    this.sweepAt = 0
    /** tracing was off for some time */
    this.hadGap = false
    /** bytes in and out when tracing was disabled, if counted @type {string | undefined} */
    this.bytesAtGap = undefined
  }
}

/** @type {ReturnType<typeof createTag<Entry>>} tag on the program's object */
const entryTag = createTag()

module.exports = { Entry, entryTag }
