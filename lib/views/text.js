'use strict'

// Hops as text. Data in, string out. Frames look exactly as V8 prints them; the line between two hops starts
// with something that no parser of stacks takes for a frame.

/** @typedef {import('../stacks/chain').PrintedHop} PrintedHop */

/** @type {Record<string, string>} */
const remarks = {
  settled: 'settled here',
  reader: 'reader: only where .stack was read is known',
  worker: 'in the parent thread',
  early: 'early'
}

/**
 * @param {PrintedHop} hop
 * @param {PrintedHop} [before] the hop above, which may have said it already
 * @param {boolean} [timeless] without its age
 */
function separator (hop, before, timeless = false) {
  const parts = [clean(hop.label) + (hop.repeats > 1 ? ` × ${hop.repeats}` : ''), hop.type, ...(timeless || hop.ageMs === undefined ? [] : [`${age(hop.ageMs)} earlier`])]
  if (hop.label === hop.type) parts.shift()
  const remark = before !== undefined && before.origin === hop.origin ? hop.origin === 'registered' ? undefined : hop.origin : remarks[hop.origin]
  if (remark !== undefined) parts.push(remark)
  return `  ── ${parts.join(' · ')} ──`
}

/** @param {PrintedHop[]} hops @param {boolean} [timeless] without ages @returns {string} lines; empty for no hops */
function text (hops, timeless = false) {
  return hops.map((hop, i) => [separator(hop, hops[i - 1], timeless), ...hop.lines].join('\n')).join('\n')
}

/** A time as a person says it. @param {number} ms */
function age (ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`
  return `${(ms / 3_600_000).toFixed(1)} h`
}

/**
 * Shortens a frame to what a person looks for: `load (/app/lib/pool.js:34:9) via pg` to `load (pool.js:34) via pg`.
 * @param {string} frame
 */
function shortFrame (frame) {
  const inside = frame.replace(/\((?:.*[/\\])?([^/\\]*?:\d+):\d+\)/, '($1)')
  return inside === frame ? frame.replace(/^(?:.*[/\\])?([^/\\()]*?:\d+):\d+(?= via |$)/, '$1') : inside
}

/** Takes control and bidi characters out of what others wrote. @param {string} foreign */
function clean (foreign) {
  return foreign.replace(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, '?')
}

module.exports = { text, separator, age, clean, shortFrame }
