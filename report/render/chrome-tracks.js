'use strict'

// Bars of a Chrome trace, in whole microseconds, so that every viewer reads them exactly, and the tracks on
// which they nest: trace viewers drop a slice that begins within another and ends after it. Ten thousands of
// bars may be open at once, so that none of them is compared with all others.

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
const MAX_LOOKS = 100 // open bars that a bar is compared with

/** @typedef {{ tid: number, open: Bar[] }} Track open: each nested in the one before */

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
    threads.set(key(run), open.filter(({ end }) => end > run.start).slice(-MAX_LOOKS))
  }
}

/**
 * Gives each bar a track: one in which it is nested in an open bar, or the first in which no bar is open.
 * @param {Bar[]} bars in order
 * @param {object} options
 * @param {(bar: Bar) => string} options.key equal for bars that may share tracks
 * @param {number} options.first tid
 * @param {boolean} [options.isMixed] bars of different traces may be nested
 */
function setTracks (bars, { key, first, isMixed = false }) {
  let nextTid = first
  for (const group of groupsOf(bars, key)) {
    const tracks = new Tracks(nextTid, isMixed)
    const byEnd = group.filter(({ start, end }) => start < end).sort((a, b) => a.end - b.end)
    let closed = 0
    for (const bar of group) {
      for (; closed < byEnd.length && byEnd[closed].end <= bar.start; closed++) tracks.close(byEnd[closed])
      tracks.place(bar)
    }
    nextTid = tracks.nextTid
  }
}

/** @param {Bar[]} bars @param {(bar: Bar) => string} key @returns {Iterable<Bar[]>} */
function groupsOf (bars, key) {
  /** @type {Map<string, Bar[]>} */
  const groups = new Map()
  for (const bar of bars) {
    const group = groups.get(key(bar))
    if (group === undefined) groups.set(key(bar), [bar])
    else group.push(bar)
  }
  return groups.values()
}

/** The tracks of one group of bars. */
class Tracks {
  nextTid
  #firstTid
  #isMixed
  /** by tid, from the first on @type {Track[]} */
  #tracks = []
  /** without an open bar, the first one last @type {Track[]} */
  #free = []
  /** with open bars, by the trace of the innermost @type {Map<string, Set<Track>>} */
  #busy = new Map()

  /** @param {number} firstTid @param {boolean} isMixed bars of different traces may be nested */
  constructor (firstTid, isMixed) {
    this.nextTid = this.#firstTid = firstTid
    this.#isMixed = isMixed
  }

  /** Sets the track of a bar. @param {Bar} bar that begins no sooner than those before */
  place (bar) {
    const outer = this.#findOuter(bar)
    const track = outer ?? this.#free.pop() ?? this.#create()
    bar.tid = track.tid
    if (bar.end === bar.start) { // ended as well: the next one may be here
      if (outer === undefined) this.#free.push(track)
      return
    }
    if (outer !== undefined) this.#leave(outer)
    track.open.push(bar)
    this.#enter(track)
  }

  /** @param {Bar} bar that has ended, as all have that are nested in it */
  close (bar) {
    const track = this.#tracks[bar.tid - this.#firstTid]
    const { open } = track
    if (open.length === 0 || open[open.length - 1].end > bar.end) return // closed with the one around it
    this.#leave(track)
    while (open.length > 0 && open[open.length - 1].end <= bar.end) open.pop()
    if (open.length === 0) this.#release(track)
    else this.#enter(track)
  }

  /** @param {Bar} bar @returns {Track | undefined} a track with an open bar in which this one is nested */
  #findOuter (bar) {
    let looks = 0
    for (const track of this.#busy.get(this.#keyOf(bar)) ?? []) {
      if (bar.end <= track.open[track.open.length - 1].end) return track
      if (++looks === MAX_LOOKS) return undefined
    }
    return undefined
  }

  /** @param {Bar} bar */
  #keyOf (bar) {
    return this.#isMixed ? '' : bar.span.traceId
  }

  /** @param {Track} track */
  #enter (track) {
    const key = this.#keyOf(track.open[track.open.length - 1])
    const tracks = this.#busy.get(key)
    if (tracks === undefined) this.#busy.set(key, new Set([track]))
    else tracks.add(track)
  }

  /** @param {Track} track */
  #leave (track) {
    const key = this.#keyOf(track.open[track.open.length - 1])
    const tracks = this.#busy.get(key)
    tracks?.delete(track)
    if (tracks?.size === 0) this.#busy.delete(key)
  }

  /** Notes that a track has no open bar. @param {Track} track */
  #release (track) {
    let low = 0
    let high = this.#free.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#free[middle].tid > track.tid) low = middle + 1
      else high = middle
    }
    this.#free.splice(low, 0, track)
  }

  /** @returns {Track} */
  #create () {
    const track = { tid: this.nextTid++, open: [] }
    this.#tracks.push(track)
    return track
  }
}

module.exports = { cutOverlaps, inOrder, setTracks }
