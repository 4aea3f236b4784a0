'use strict'

// The call sites of an error as text and as frames. V8 writes a line in about half a microsecond, and the formatter, source
// maps and attribution all read it: it is written once for each list of call sites.

const { parseFrame } = require('./frames')

/** @typedef {{ lines: string[], frames: import('./frames').Frame[] }} Written */

/** @type {WeakMap<NodeJS.CallSite[], Written>} */
const written = new WeakMap()

/**
 * Returns the lines of call sites as V8 prints them, without "    at ", and the frames read from them.
 * @param {NodeJS.CallSite[]} sites never changed afterwards
 * @returns {Written}
 */
function readSites (sites) {
  let known = written.get(sites)
  if (known === undefined) {
    const lines = sites.map(String)
    written.set(sites, known = { lines, frames: lines.map(parseFrame) })
  }
  return known
}

module.exports = { readSites }
