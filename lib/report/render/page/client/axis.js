'use strict'

// A time axis with ticks that do not overlap; on a logarithmic one round numbers are preferred.

/* global d3 */

const { s } = require('./dom')
const { tick } = require('./format')

const LABEL_PX = 58
const TICK_PX = 90 // average distance of ticks
const EDGE_PX = 20
const HEIGHT = 22
const ROUND = [1, 5, 2, 3, 1.5, 7] // preferred ones first

/** @param {any} scale @param {number} width @returns {number[]} */
function ticksOf (scale, width) {
  const max = Math.max(2, Math.floor(width / TICK_PX))
  if (scale.base === undefined) return separated(scale.ticks(max), scale, width)
  const [low, high] = scale.domain()
  if (high / low < 3) return separated(d3.scaleLinear([low, high], [0, 1]).ticks(max), scale, width)
  const length = Math.ceil(Math.log10(high / low)) + 1
  const decades = Array.from({ length }, (_, i) => Math.floor(Math.log10(low)) + i)
  const round = ROUND.flatMap((lead) => decades.map((decade) => lead * 10 ** decade))
  return separated(round.filter((value) => value >= low && value <= high), scale, width).sort((a, b) => a - b)
}

/**
 * Drops values whose labels would overlap.
 * @param {number[]} values preferred ones first
 * @param {any} scale
 * @param {number} width
 */
function separated (values, scale, width) {
  // Labels at an end move inwards.
  const middle = (/** @type {number} */ value) => Math.max(EDGE_PX, Math.min(width - EDGE_PX, scale(value)))
  /** @type {number[]} */
  const kept = []
  for (const value of values) {
    if (kept.every((other) => Math.abs(middle(other) - middle(value)) >= LABEL_PX)) kept.push(value)
  }
  return kept
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
    if (x < EDGE_PX) label.setAttribute('text-anchor', 'start')
    if (x > width - EDGE_PX) label.setAttribute('text-anchor', 'end')
  }
  const viewBox = `0 0 ${width} ${HEIGHT}`
  return s('svg', { class: 'axis', width, height: HEIGHT, viewBox, 'aria-hidden': 'true' }, group)
}

module.exports = { axis, ticksOf }
