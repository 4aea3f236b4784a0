'use strict'

// Orphans: handles made while nothing executes. fs makes the handle of an opened file or directory before it
// enters the callback, or resolves the promise, of the opening call. HTTP/2 makes the stream of a request
// before it enters the session's callback. The next step that runs claims the orphan. If something else runs
// in between, the head of the request came in pieces, and its cause is unknown.

const { adopt, cachedContext, contextAt, OWN_WORK } = require('./context')
const { ATTENTION, CURRENT_CHAIN, ORPHANED, current } = require('./current')
const {
  CAUSE, CHAIN, CHAIN_BITS, FLAGS, NO_CHAIN, OWN_WORK_CHAIN, PASSED, findRecord
} = require('./records')
const capture = require('../stacks/capture')

const types = new Set(['FILEHANDLE', 'DIRHANDLE', 'HTTP2STREAM'])

/** reference of the handle, 0: none */
let orphan = 0
let orphanType = ''

/**
 * Makes the running callback, promise or session the cause of the handle made just before.
 * @param {number} ref
 */
function claim (ref) {
  if (orphan === 0) return
  const handle = orphan
  disown()
  if (handle === ref) return
  if (orphanType === 'FILEHANDLE' && cachedContext(handle) === undefined) return claimFile(handle, ref)
  const orphaned = contextAt(handle)
  const context = contextAt(ref)
  const isHttp2 = orphanType === 'HTTP2STREAM'
  if (orphaned === undefined || context === undefined) return
  if (context === orphaned || context === OWN_WORK) return
  if (!isHttp2 || context.type === 'HTTP2SESSION') adopt(orphaned, context)
}

/**
 * Claims a file without a context: a server opens too many files to make a context for each.
 * @param {number} handle
 * @param {number} ref
 */
function claimFile (handle, ref) {
  const file = findRecord(handle)
  const opener = findRecord(ref)
  if (file === undefined || opener === undefined) return
  const parent = opener.words[opener.offset + CHAIN]
  const own = capture.partsOf(file.words[file.offset + CHAIN])
  if (parent === NO_CHAIN || parent === OWN_WORK_CHAIN || own === undefined) return
  const joined = capture.intern(parent, own[1], own[2]) & CHAIN_BITS
  if (joined === NO_CHAIN) return
  file.words[file.offset + CHAIN] = joined
  const isPassed = (opener.words[opener.offset + FLAGS] & PASSED) !== 0
  file.words[file.offset + CAUSE] = isPassed ? opener.words[opener.offset + CAUSE] : ref
}

/** Gives up the orphan: the running step is not its cause. */
function disown () {
  orphan = 0
  current[ATTENTION] &= ~ORPHANED
}

/**
 * Notes a handle if it is an orphan.
 * @param {number} asyncId
 * @param {string} type
 * @param {number} trigger
 */
function note (asyncId, type, trigger) {
  if (current[CURRENT_CHAIN] !== NO_CHAIN || trigger !== 0 || !types.has(type)) return
  orphan = asyncId << 1
  orphanType = type
  current[ATTENTION] |= ORPHANED
}

module.exports = { claim, disown, note }
