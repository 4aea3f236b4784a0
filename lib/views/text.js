'use strict'

// Hops as text. Data in, string out. Frames look exactly as V8 prints them; the line between two hops starts
// with something that no parser of stacks takes for a frame.

/** @typedef {import('../stacks/chain').PrintedHop} PrintedHop */

/** @type {Record<string, string>} */
const remarks = {
  settled: 'settled here',
  rejected: 'rejected here',
  thrown: 'thrown here',
  reader: 'reader: only where .stack was read is known',
  worker: 'in the parent thread',
  early: 'early'
}

/** Before the label of the first hop of a story that is told besides. @type {Record<string, string>} */
const by = { awaited: 'awaited by', used: 'used by', written: 'last written by' }

/** Origins that are said once, if at all. */
const told = new Set(['registered', 'rejected', 'thrown', 'awaited', 'used', 'written'])

/**
 * @param {PrintedHop} hop
 * @param {PrintedHop} [before] the hop above, which may have said it already
 * @param {boolean} [timeless] without its age
 */
function separator (hop, before, timeless = false) {
  const isFirst = before === undefined || before.origin !== hop.origin
  let line = isFirst && by[hop.origin] !== undefined ? `  ── ${by[hop.origin]}` : '  ──'
  if (hop.label !== hop.type) line += ` ${clean(hop.label)}${hop.repeats > 1 ? ` × ${hop.repeats}` : ''} ·`
  line += ` ${clean(hop.type)}`
  if (!timeless && !Number.isNaN(hop.ageMs)) line += ` · ${age(hop.ageMs)} earlier`
  const remark = isFirst ? remarks[hop.origin] : told.has(hop.origin) ? undefined : hop.origin
  return `${line}${remark === undefined ? '' : ` · ${remark}`} ──`
}

/** @param {PrintedHop[]} hops @param {boolean} [timeless] without ages @returns {string} lines; empty for no hops */
function text (hops, timeless = false) {
  let lines = ''
  for (let i = 0; i < hops.length; i++) {
    lines += `${i === 0 ? '' : '\n'}${separator(hops[i], hops[i - 1], timeless)}`
    for (const line of hops[i].lines) lines += `\n${line}`
  }
  return lines
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
  let cleaned = ''
  let start = 0
  for (let i = 0; i < foreign.length; i++) {
    if (!isHarmful(foreign.charCodeAt(i))) continue
    cleaned += `${foreign.slice(start, i)}?`
    start = i + 1
  }
  return start === 0 ? foreign : cleaned + foreign.slice(start)
}

/** No regular expression: see stacks/scan.js. @param {number} code of a UTF-16 unit */
function isHarmful (code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return true
  if (code < 0x61c) return false
  if (code === 0x61c || code === 0x200e || code === 0x200f) return true
  return (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)
}

module.exports = { text, separator, age, clean, shortFrame }
