'use strict'

// Bars of a Chrome trace, in whole microseconds, so that every viewer reads them exactly, and the tracks on
// which they nest: trace viewers drop a slice that begins within another and ends after it.

/**
 * @typedef {import('./chrome-trace').TraceSpan} TraceSpan
 *
 * @typedef {object} Bar a span, or a run or wait of it
 * @property {TraceSpan} span
 * @property {number} start in µs
 * @property {number} end
 * @property {string} [ran] type of a callback
 * @property {import('./wait-gaps').WaitGap} [gap] the wait, or that which the run ended
 * @property {number} tid its track
 */

const ROUNDING_US = 3 // by which two runs of one thread seem to overlap

/** @param {Bar} a @param {Bar} b */
function inOrder (a, b) {
  return a.start - b.start || b.end - a.end
}

/**
 * Cuts runs that end a little after the next run of their thread began: the times in a file are rounded.
 * @param {Bar[]} runs in order
 * @param {(bar: Bar) => string} key equal for runs of one thread
 */
function cutOverlaps (runs, key) {
  /** @type {Map<string, Bar[]>} */
  const threads = new Map()
  for (const run of runs) {
    const open = (threads.get(key(run)) ?? []).filter(({ end }) => end > run.start)
    for (const previous of open) {
      const isRounded = run.start > previous.start && previous.end - run.start <= ROUNDING_US
      if (isRounded) previous.end = run.start
    }
    open.push(run)
    threads.set(key(run), open.filter(({ end }) => end > run.start))
  }
}

/**
 * Gives each bar a track: the first in which it is nested in an open bar, or no bar is open.
 * @param {Bar[]} bars in order
 * @param {object} options
 * @param {(bar: Bar) => string} options.key equal for bars that may share tracks
 * @param {number} options.first tid
 * @param {boolean} [options.isMixed] bars of different traces may be nested
 */
function setTracks (bars, { key, first, isMixed = false }) {
  /** @type {Map<string, Array<{ tid: number, open: Bar[] }>>} */
  const groups = new Map()
  let tid = first
  for (const bar of bars) {
    const lanes = groups.get(key(bar)) ?? []
    groups.set(key(bar), lanes)
    for (const { open } of lanes) while (open.length > 0 && open[open.length - 1].end <= bar.start) open.pop()
    let lane = lanes.find(({ open }) => open.length > 0 && isNested(bar, open[open.length - 1], isMixed)) ??
      lanes.find(({ open }) => open.length === 0)
    if (lane === undefined) lanes.push(lane = { tid: tid++, open: [] })
    lane.open.push(bar)
    bar.tid = lane.tid
  }
}

/** @param {Bar} bar @param {Bar} outer @param {boolean} isMixed */
function isNested (bar, outer, isMixed) {
  return bar.end <= outer.end && (isMixed || bar.span.traceId === outer.span.traceId)
}

module.exports = { cutOverlaps, inOrder, setTracks }
