'use strict'

// Unpacks the trees of critical paths that trees.js packed.

/** @typedef {import('./flame-tree').PathNode} PathNode */

const KINDS = ['root', 'route', 'frame', 'ran', 'waited', 'delayed', 'beside']

/**
 * @param {any} packed see PackedNode in trees.js
 * @param {string[]} names
 * @returns {PathNode}
 */
function unpack ([name, kind, ms, count, traceIds, children, byBucket], names) {
  return {
    name: names[name],
    kind: KINDS[kind],
    ms,
    count,
    traceIds: traceIds.map((/** @type {number} */ id) => names[id]),
    children: children.map((/** @type {any} */ child) => unpack(child, names)),
    byBucket
  }
}

module.exports = { KINDS, unpack }
