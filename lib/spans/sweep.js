'use strict'

// Ends spans that have nothing left to end by: what reports ends may miss one, and no span is to be open for
// ever. What is over has to be so in two sweeps, since its report may still be to come.

const { allOpen } = require('./identities')

const MIN_AGE = 1000 // ms that a span has been open: most end before, and are not looked at
/** @type {import('./spans').End} */
const UNKNOWN_END = { end: 'unknown' }

/** @typedef {import('./span').Span} Span */

/** @param {(span: Span, ending: import('./spans').End) => void} end */
function createSweep (end) {
  let isSweeping = false

  /** @param {Span} span that is open @param {number} time @param {boolean} isLast */
  function lookAt (span, time, isLast) {
    const { subject } = span
    if (subject === undefined) return end(span, UNKNOWN_END)
    const finishSpan = span.look(span, subject)
    if (finishSpan === undefined) span.aliveAt = time
    if (finishSpan !== undefined && (span.isOver || isLast)) finishSpan()
    span.isOver = finishSpan !== undefined
    if (!span.ended && !span.isOver) span.weaken()
  }

  return {
    /**
     * @param {number} time ms of the clock
     * @param {boolean} isLast no sweep comes after this: it looks at all
     */
    run (time, isLast) {
      isSweeping = true
      try {
        allOpen().forEach((span) => {
          if (!span.ended && (isLast || time - span.start >= MIN_AGE)) lookAt(span, time, isLast)
        })
      } finally {
        isSweeping = false
      }
    },

    /**
     * Notes in a span that ends how late that may be, where a sweep found it.
     * @param {Span} span
     * @param {number} time ms of the clock
     */
    noteMargin (span, time) {
      if (!isSweeping) return
      span.attributes['longstack.end_margin_ms'] = Math.ceil(time - Math.max(span.aliveAt, span.start))
    }
  }
}

module.exports = { createSweep }
