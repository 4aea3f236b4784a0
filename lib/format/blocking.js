'use strict'

// Formats blocking callbacks for a terminal. A place that blocks again gets one line, and the whole text on
// the 10th, 100th, 1,000th time.

const { formatDuration, clean, shortFrame } = require('../text')

/**
 * @typedef {import('../blocked/blocking-callback').BlockedEvent} BlockedEvent
 * @typedef {{ name: string }} Named
 */

const MAX_PLACES = 1000 // remembered

class BlockingTexts {
  /** number of blocks per place, latest last @type {Map<string, number>} */
  #counts = new Map()
  /** start and place of the callback already reported while it ran @type {string | undefined} */
  #inside

  /**
   * @param {BlockedEvent} event
   * @param {Named | undefined} span that contains it
   * @returns {string}
   */
  format (event, span) {
    const frames = framesOf(event)
    if (frames.length === 0) return wholeText(event, span, 1)
    const place = [...new Set(frames.map(nameOf))].join()
    const began = `${event.startUnixMs} ${place}`
    const isTold = !event.stillRunning && this.#inside === began
    this.#inside = event.stillRunning ? began : undefined
    const times = (this.#counts.get(place) ?? 0) + (isTold ? 0 : 1)
    this.#counts.delete(place)
    this.#counts.set(place, times)
    if (this.#counts.size > MAX_PLACES) this.#counts.delete(String(this.#counts.keys().next().value))
    if (!isTold && /^10*$/.test(String(times))) return wholeText(event, span, times)
    const { functionName, fileName, lineNumber } = frames[0]
    const innermost = shortFrame(`${functionName || '<anonymous>'} (${fileName}:${lineNumber}:0)`)
    return `${headline(event, span, times)}, at ${clean(innermost)}`
  }
}

/** Returns frames inside, else frames of the chain; only user frames if any. @param {BlockedEvent} event */
function framesOf ({ frames, chain }) {
  const all = frames.length > 0 ? frames : chain.flatMap((hop) => hop.frames)
  const own = all.filter(({ kind }) => kind === 'user')
  return own.length > 0 ? own : all
}

/** @param {import('../stacks/chain').HopFrame} frame @returns {string} its function, at any line */
function nameOf ({ functionName, fileName, lineNumber }) {
  return functionName ? `${functionName} ${fileName}` : `(anonymous) ${fileName}:${lineNumber}`
}

/** @param {BlockedEvent} event @param {Named | undefined} span @param {number} times */
function wholeText (event, span, times) {
  const lines = [headline(event, span, times), ...remarks(event), event.stack]
  return lines.filter((line) => line !== '').join('\n')
}

/** @param {BlockedEvent} event @param {Named | undefined} span @param {number} times */
function headline ({ ms, stillRunning }, span, times) {
  const again = times === 1 ? '' : ' again'
  const blocker = span === undefined ? '' : ` by ${clean(span.name)}`
  const count = times === 1 ? '' : `, the ${times}${suffixOf(times)} time`
  const duration = formatDuration(ms)
  if (stillRunning) return `the event loop is blocked${again}${blocker}, for ${duration} so far${count}`
  return `the event loop was blocked${again} for ${duration}${blocker}${count}`
}

/** @param {number} number @returns {string} st, nd, rd or th */
function suffixOf (number) {
  const isTeen = number % 100 > 10 && number % 100 < 14
  return isTeen ? 'th' : ['th', 'st', 'nd', 'rd'][number % 10] ?? 'th'
}

/** @param {BlockedEvent} event */
function remarks ({ samples, sampledLate }) {
  if (samples === 0) return ['  no sample inside, as in one long native call; its caller:']
  if (sampledLate === undefined) return []
  const late = formatDuration(sampledLate)
  return [`  sampled ${late} late, for example after a native call or a garbage collection:`]
}

module.exports = { BlockingTexts }
