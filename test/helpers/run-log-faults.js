'use strict'

// Consistency checks of a run log, whatever ran.

const layout = require('../../lib/core/run-log-words')

const {
  ARRIVED, BEGIN, CAME, END, POLL, RESUME, RUN, SENT, SERVER, SETTLED_BY_ANSWER
} = layout
const ROUNDING = 0.0011 // ms

/** @typedef {import('./shadow-log').Entry} Entry */

/**
 * Lists inconsistencies of a log.
 * @param {object} log
 * @param {Entry[]} log.entries
 * @param {{ causes: Record<string, number> }} [log.names] undefined if the causes in records are gone
 * @returns {string[]}
 */
function faultsOf ({ entries, names }) {
  const faults = []
  const byNumber = new Map(entries.map((entry) => [entry.number, entry]))
  const open = new Set()
  const ended = new Set()
  let time = 0
  entries.forEach((entry, i) => {
    const { a, kind, number, ref, registered, request, settled, x } = entry
    const fault = (text) => faults.push(`${text}: ${JSON.stringify(entry)}`)
    if (!(kind >= RUN && kind <= RESUME)) fault('no kind')
    if ([RUN, POLL, RESUME].includes(kind)) {
      const begin = kind === POLL ? entry.time - x : entry.time
      if (!(begin >= time - ROUNDING) || !(entry.time >= time)) fault(`time goes back, it was ${time}`)
      time = entry.time
    }
    for (const [name, run] of Object.entries({ registered, settled, caller: kind === RUN ? a : 0 })) {
      const isRun = run === 0 || (run < number && byNumber.get(run)?.kind === RUN)
      if (!isRun && run >= entries[0].number) fault(`${name} is no earlier run`)
    }
    const next = entries[i + 1]
    const previous = entries[i - 1]
    if (kind === POLL && next?.kind === RUN && next.time !== entry.time) fault('not before its run')
    if (kind === ARRIVED && (previous.kind !== RUN || previous.number !== registered)) fault('not behind its run')
    if (kind === ARRIVED && !(entry.time <= previous.time + ROUNDING)) fault('it came after it ran')
    const maker = kind === RUN ? byNumber.get(registered) : undefined
    if (maker !== undefined && names !== undefined) checkMaker(entry, maker, names, fault)
    if (kind === BEGIN) {
      if (request === 0 || open.has(request) || ended.has(request)) fault('it has begun before')
      open.add(request)
      const isThere = settled >= entries[0].number
      if (isThere && byNumber.get(settled)?.request !== request) fault('its first run is not its own')
      if (a === SERVER && settled === 0) fault('no first run')
    }
    if (kind === END && !open.delete(request)) fault('it has not begun')
    if (kind === END) ended.add(request)
    if ([SENT, CAME].includes(kind) && (ref >>> 1 === 0 || !(x >= -1))) fault('no connection')
    // Node's agent gives a reused connection a new asyncId
    const callback = kind === CAME ? byNumber.get(registered) : undefined
    const isConnection = callback?.b === ref >>> 1 || (callback?.flags & layout.CONNECTION) !== 0
    if (kind === CAME && !isConnection) fault('not in a callback of its connection')
    if (kind === SETTLED_BY_ANSWER && registered !== settled && x > time) fault('made after it was settled')
  })
  if (open.size > 0) faults.push(`open: ${[...open]}`)
  return faults
}

/** @param {number} ref @returns {boolean} */
const isApart = (ref) => ref < 0 && (ref & 1) !== 0 // of a request, or of a query on a connection

/**
 * Checks that a run was registered in a run of the step that created it, according to its record.
 * @param {Entry} run
 * @param {Entry} maker
 * @param {{ causes: Record<string, number> }} names
 * @param {(text: string) => void} fault
 */
function checkMaker (run, maker, { causes }, fault) {
  const cause = causes[run.number]
  // Data on a connection belongs to several steps; a callback of one continues as part of its request
  if (cause === 0 || isApart(run.ref) || isApart(cause)) return
  if (maker.ref !== cause) fault(`made by ${cause}, not by ${JSON.stringify(maker)}`)
}

module.exports = { faultsOf }
