'use strict'

// Reads Chrome trace events by the rules of Perfetto's trace processor (importers/json, and slice_tracker.cc
// and flow_tracker.cc in importers/common): sorted by time, ties in file order; a slice that overlaps another
// is dropped; an arrow's end is bound to the slice that began last on its track.

/**
 * @typedef {object} Slice
 * @property {string} name
 * @property {string} cat
 * @property {number} start
 * @property {number} end
 * @property {string} track
 * @property {Slice | undefined} parent
 * @property {Record<string, any>} args
 */

/**
 * @typedef {object} Trace
 * @property {Slice[]} slices
 * @property {Array<{ name: string, out: Slice, in: Slice }>} flows
 * @property {string[]} errors
 * @property {Map<string, string>} threads names by track
 * @property {Map<number, string>} processes names by pid
 */

/** @param {any[]} events */
function processTrace (events) {
  /** @type {Map<string, Slice[]>} */
  const stacks = new Map()
  /** @type {Map<string, Slice>} */
  const sources = new Map()
  /** @type {Trace} */
  const read = { slices: [], flows: [], errors: [], threads: new Map(), processes: new Map() }
  for (const event of events.filter(({ ph }) => ph === 'M')) {
    if (event.name === 'thread_name') read.threads.set(`${event.pid} ${event.tid}`, event.args.name)
    if (event.name === 'process_name') read.processes.set(event.pid, event.args.name)
  }
  const timed = events.filter(({ ph }) => ph !== 'M')
  for (const event of timed) if (!Number.isSafeInteger(event.ts)) read.errors.push(`time ${event.ts} is no integer`)
  for (const event of timed.map((one, i) => ({ ...one, i })).sort((a, b) => a.ts - b.ts || a.i - b.i)) {
    const track = `${event.pid} ${event.tid}`
    const stack = stacks.get(track) ?? []
    stacks.set(track, stack)
    if (event.ph === 'X') begin(event, track, stack)
    else bind(event, stack.at(-1))
  }
  return read

  /** @param {any} event @param {string} track @param {Slice[]} stack */
  function begin ({ name, cat, ts, dur, args }, track, stack) {
    const end = ts + dur
    for (let open = stack.at(-1); open !== undefined; open = stack.at(-1)) {
      const isInstants = open.start === open.end && dur === 0
      if (open.end < ts || (open.end === ts && !isInstants)) stack.pop()
      else if (ts < open.end && end > open.end) return read.errors.push(`${name} at ${ts} crosses ${open.name} until ${open.end}`)
      else break
    }
    const slice = { name, cat, start: ts, end, track, parent: stack.at(-1), args }
    stack.push(slice)
    read.slices.push(slice)
  }

  /** @param {any} event @param {Slice | undefined} slice */
  function bind ({ ph, bp, id, cat, name, ts }, slice) {
    const key = `${cat} ${name} ${id}`
    if (slice === undefined) return read.errors.push(`${key}: no enclosing slice`)
    if (slice.start > ts || slice.end < ts) return read.errors.push(`${key} at ${ts} is bound to ${slice.name}, which is not there`)
    if (ph === 's') {
      if (sources.has(key)) return read.errors.push(`${key} begins twice`)
      return sources.set(key, slice)
    }
    if (ph === 'f' && bp !== 'e') return read.errors.push(`${key} is bound to what follows`)
    const out = sources.get(key)
    if (out === undefined) return read.errors.push(`${key}: ${ph} without start`)
    read.flows.push({ name, out, in: slice })
    sources.set(key, slice)
  }
}

module.exports = { processTrace }
