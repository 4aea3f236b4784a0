'use strict'

// A time axis: ticks that do not touch each other, on a logarithm as well, where round numbers come before others.

/* global d3 */

const { s } = require('./dom')
const { tick } = require('./format')

const ROOM_PX = 58 // of a label
const EDGE_PX = 20
const HEIGHT = 22
const ROUND = [1, 5, 2, 3, 1.5, 7] // the most welcome first

/** @param {any} scale @param {number} width @returns {number[]} */
function ticksOf (scale, width) {
  const most = Math.max(2, Math.floor(width / 90))
  if (scale.base === undefined) return apart(scale.ticks(most), scale, width)
  const [from, to] = scale.domain()
  if (to / from < 3) return apart(d3.scaleLinear([from, to], [0, 1]).ticks(most), scale, width)
  const decades = Array.from({ length: Math.ceil(Math.log10(to / from)) + 1 }, (_, i) => Math.floor(Math.log10(from)) + i)
  const round = ROUND.flatMap((lead) => decades.map((decade) => lead * 10 ** decade)).filter((value) => value >= from && value <= to)
  return apart(round, scale, width).sort((a, b) => a - b)
}

/** @param {number[]} values the most welcome first @param {any} scale @param {number} width */
function apart (values, scale, width) {
  const middle = (/** @type {number} */ value) => Math.max(EDGE_PX, Math.min(width - EDGE_PX, scale(value))) // labels at an end move inwards
  /** @type {number[]} */
  const kept = []
  for (const value of values) {
    if (kept.every((other) => Math.abs(middle(other) - middle(value)) >= ROOM_PX)) kept.push(value)
  }
  return kept
}

/** @param {any} scale @param {number} width @param {number[]} ticks @param {'top' | 'bottom'} side */
function axis (scale, width, ticks, side) {
  const draw = (side === 'top' ? d3.axisTop : d3.axisBottom)(scale).tickValues(ticks).tickFormat(tick).tickSize(4).tickPadding(4)
  const group = s('g', { transform: `translate(0,${side === 'top' ? HEIGHT - 1 : 0.5})` })
  d3.select(group).call(draw)
  for (const label of group.querySelectorAll('text')) {
    const at = Number(/\(([^,)]+)/.exec(label.parentNode.getAttribute('transform'))?.[1])
    if (at < EDGE_PX) label.setAttribute('text-anchor', 'start')
    if (at > width - EDGE_PX) label.setAttribute('text-anchor', 'end')
  }
  return s('svg', { class: 'axis', width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, 'aria-hidden': 'true' }, group)
}

module.exports = { axis, ticksOf }
