'use strict'

// Formats what a request waits for as text. Data in, string out; reports use it, too.

const { clean, shortFrame } = require('../text')

/** @param {{ at: string | undefined, label: string }} wait @returns {string} operation and place */
function placeOf ({ at: place, label }) {
  return place === undefined ? clean(label) : `${clean(label)} at ${clean(shortFrame(place))}`
}

/**
 * Describes a request for which nothing is pending.
 * @param {import('../handles/stopped-requests').LastStep} last what it started last
 * @param {boolean} [isOver] the process has ended
 */
function stoppedText ({ at: place, label }, isOver = false) {
  const last = place === undefined ? '' : ` (last: ${placeOf({ at: place, label: label ?? 'a call' })})`
  const [was, could] = isOver ? ['was', 'could'] : ['is', 'can']
  return `no await, timer, handle or operation of it ${was} pending${last}: ` +
    `only other code ${could} respond to it`
}

module.exports = { placeOf, stoppedText }
