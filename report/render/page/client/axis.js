'use strict'

// A time axis with ticks that do not overlap; on a logarithmic one round numbers are preferred.

/* global d3 */

const { s } = require('./dom')
const { tick } = require('./format')

const CHAR_PX = 7.2 // of a label, at most on average
const GAP_PX = 12 // between labels, at least
const TICK_PX = 90 // average distance of ticks
const [HEIGHT, MARK_PX] = [22, 4]
const ROUND = [1, 5, 2, 3, 1.5, 7] // preferred ones first

/**
 * @param {any} scale
 * @param {number} width
 * @param {(value: any) => string} [format]
 * @returns {number[]} in ascending order
 */
function ticksOf (scale, width, format = tick) {
  /** @type {Array<{ value: number, start: number, end: number }>} */
  const kept = []
  for (const value of candidates(scale, Math.max(2, Math.floor(width / TICK_PX)))) {
    const [start, end] = extentOf(scale(value), format(value), width)
    const isFree = kept.every((other) => start >= other.end + GAP_PX || end <= other.start - GAP_PX)
    if (isFree) kept.push({ value, start, end })
  }
  return kept.map(({ value }) => value).sort((a, b) => a - b)
}

/**
 * Returns values to label, preferred ones first.
 * @param {any} scale
 * @param {number} max
 * @returns {number[]}
 */
function candidates (scale, max) {
  if (scale.base === undefined) return scale.ticks(max)
  const [low, high] = scale.domain()
  if (high / low < 3) return d3.scaleLinear([low, high], [0, 1]).ticks(max)
  const length = Math.ceil(Math.log10(high / low)) + 1
  const decades = Array.from({ length }, (_, i) => Math.floor(Math.log10(low)) + i)
  const round = ROUND.flatMap((lead) => decades.map((decade) => lead * 10 ** decade))
  return round.filter((value) => value >= low && value <= high)
}

/**
 * Returns where a label begins and ends; at an end of the axis it is moved inwards.
 * @param {number} x
 * @param {string} label
 * @param {number} width
 * @returns {[number, number]}
 */
function extentOf (x, label, width) {
  const length = label.length * CHAR_PX
  if (x < length / 2) return [x, x + length]
  return x > width - length / 2 ? [x - length, x] : [x - length / 2, x + length / 2]
}

/**
 * @param {any} scale
 * @param {number} width
 * @param {number[]} ticks
 * @param {'top' | 'bottom'} side of what it is for
 * @param {(value: any) => string} [format]
 */
function axis (scale, width, ticks, side, format = tick) {
  const [y, direction] = side === 'top' ? [HEIGHT - 1, -1] : [0.5, 1]
  const marks = ticks.map((value) => {
    const [x, label] = [scale(value), format(value)]
    const [start, end] = extentOf(x, label, width)
    const anchor = start === x ? 'start' : end === x ? 'end' : 'middle'
    return [
      s('line', { x1: x, x2: x, y1: y, y2: y + MARK_PX * direction }),
      s('text', {
        x, y: y + 2 * MARK_PX * direction, dy: side === 'top' ? '0' : '0.71em', 'text-anchor': anchor
      }, label)
    ]
  })
  const viewBox = `0 0 ${width} ${HEIGHT}`
  return s('svg', { class: 'axis', width, height: HEIGHT, viewBox, 'aria-hidden': 'true' },
    s('line', { x1: 0, x2: width, y1: y, y2: y }), marks)
}

/** @param {number} x @param {number} height */
const gridLine = (x, height) => s('line', { class: 'grid', x1: x, x2: x, y1: 0, y2: height })

module.exports = { axis, gridLine, ticksOf }
