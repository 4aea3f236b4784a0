'use strict'

// A time axis with ticks that do not overlap; on a logarithmic one round numbers are preferred.

/* global d3 */

const { s } = require('./dom')
const { tick } = require('./format')

const CHAR_PX = 7.2 // of a label, at most on average
const GAP_PX = 12 // between labels, at least
const TICK_PX = 90 // average distance of ticks
const HEIGHT = 22
const ROUND = [1, 5, 2, 3, 1.5, 7] // preferred ones first

/**
 * @param {any} scale
 * @param {number} width
 * @param {(value: any) => string} [format]
 * @returns {number[]}
 */
function ticksOf (scale, width, format = tick) {
  const max = Math.max(2, Math.floor(width / TICK_PX))
  if (scale.base === undefined) return separated(scale.ticks(max), scale, width, format)
  const [low, high] = scale.domain()
  if (high / low < 3) {
    return separated(d3.scaleLinear([low, high], [0, 1]).ticks(max), scale, width, format)
  }
  const length = Math.ceil(Math.log10(high / low)) + 1
  const decades = Array.from({ length }, (_, i) => Math.floor(Math.log10(low)) + i)
  const round = ROUND.flatMap((lead) => decades.map((decade) => lead * 10 ** decade))
  const visible = round.filter((value) => value >= low && value <= high)
  return separated(visible, scale, width, format).sort((a, b) => a - b)
}

/**
 * Drops values whose labels would overlap.
 * @param {number[]} values preferred ones first
 * @param {any} scale
 * @param {number} width
 * @param {(value: any) => string} format
 */
function separated (values, scale, width, format) {
  /** @type {Array<{ value: number, start: number, end: number }>} */
  const kept = []
  for (const value of values) {
    const [start, end] = extentOf(scale(value), format(value), width)
    const isFree = kept.every((other) => start >= other.end + GAP_PX || end <= other.start - GAP_PX)
    if (isFree) kept.push({ value, start, end })
  }
  return kept.map(({ value }) => value)
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
 * @param {'top' | 'bottom'} side
 * @param {(value: any) => string} [format]
 */
function axis (scale, width, ticks, side, format = tick) {
  const base = (side === 'top' ? d3.axisTop : d3.axisBottom)(scale)
  const draw = base.tickValues(ticks).tickFormat(format).tickSize(4).tickPadding(4)
  const group = s('g', { transform: `translate(0,${side === 'top' ? HEIGHT - 1 : 0.5})` })
  d3.select(group).call(draw)
  for (const label of group.querySelectorAll('text')) {
    const x = Number(/\(([^,)]+)/.exec(label.parentNode.getAttribute('transform'))?.[1])
    const [start, end] = extentOf(x, label.textContent, width)
    if (start === x) label.setAttribute('text-anchor', 'start')
    else if (end === x) label.setAttribute('text-anchor', 'end')
  }
  const viewBox = `0 0 ${width} ${HEIGHT}`
  return s('svg', { class: 'axis', width, height: HEIGHT, viewBox, 'aria-hidden': 'true' }, group)
}

module.exports = { axis, ticksOf }
