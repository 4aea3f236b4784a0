'use strict'

// What the registry keeps of an open resource.

const { createTag } = require('./tag')

const OWNER_LOOKUPS = 4 // events of a handle on which its owner is looked for

/**
 * @typedef {import('./context').Context} Context
 *
 * @typedef {object} Use a request on a connection
 * @property {WeakRef<object>} request
 * @property {string} label
 * @property {Context | undefined} context that made it
 * @property {boolean} isOver
 */

class Entry {
  /** @param {Context} context @param {object} resource */
  constructor (context, resource) {
    this.context = context
    this.resource = new WeakRef(resource)
    /** ms of the clock: the last time that data went either way, an answer or an event came @type {number} */
    this.activeAt = context.time
    /** @type {string | undefined} */
    this.local = undefined
    /** @type {string | undefined} */
    this.remote = undefined
    /** @type {Use | undefined} */
    this.use = undefined
    /** the object that the program holds has its tag @type {boolean} */
    this.isOwnerKnown = context.type === 'Timeout'
    /** how many events may still look for the owner: a bare handle has none @type {number} */
    this.ownerLookups = OWNER_LOOKUPS
    /** the object of the program, where the handle does not lead to it @type {WeakRef<object> | undefined} */
    this.owner = undefined
    /** the session of a stream: activity of one is activity of the other @type {Entry | undefined} */
    this.session = undefined
    /** that of the TLS connection on an accepted one @type {Entry | undefined} */
    this.above = undefined
    /** a connection that a server accepted */
    this.isAccepted = false
    /** a connection that the program has made */
    this.isClient = false
    // Undefined, not NaN: V8 has an object on its heap for each number that is no small integer.
    /** references of the present ask, see core/asks.js, and of the last write; 0: none, or not known */
    this.ask = this.lastAsk = 0
    /** when the program wrote last, ms of the clock @type {number | undefined} */
    this.writeTime = undefined
    /** several flows have asked at once */
    this.isShared = false
    /** when several questions were asked at once, whole ms of the clock; 0: never */
    this.dueSince = 0
    /** what was asked until then was not seen, and may still be answered: ms of the clock, 0: nothing */
    this.unseenUntil = 0
    /** of a connection of the program: it has begun to connect */
    this.hasTraffic = false
    /** the program has asked on it, not its driver alone, while runs are logged */
    this.isAsked = false
    /** something was written on it, and it goes out once the connection is there; while runs are logged */
    this.isWritten = this.isHeld = false
    /** when it is to be looked at next, whole ms of the clock */
    this.sweepAt = 0
    /** tracing was off for a while */
    this.hadGap = false
    /** bytes in and out when tracing was disabled, where they are counted @type {string | undefined} */
    this.bytesAtGap = undefined
  }
}

/** @type {ReturnType<typeof createTag<Entry>>} on the object that a program holds */
const entryTag = createTag()

module.exports = { Entry, entryTag }
