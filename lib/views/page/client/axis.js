'use strict'

// A time axis: ticks that do not touch each other, on a logarithm as well, where round numbers come before others.

/* global d3 */

const { s } = require('./dom')
const { tick } = require('./format')

const ROOM_PX = 58 // of a label
const HEIGHT = 22

/** @param {any} scale @param {number} width @returns {number[]} */
function ticksOf (scale, width) {
  const most = Math.max(2, Math.floor(width / 90))
  if (scale.base === undefined) return apart(scale.ticks(most), scale)
  const [from, to] = scale.domain()
  const some = to / from < 20 ? d3.scaleLinear([from, to]).ticks(most * 2) : scale.ticks(most)
  return apart([...some].sort((a, b) => roughness(a) - roughness(b) || a - b), scale).sort((a, b) => a - b)
}

/** 1, 10, 100 first, then 5, then 2. @param {number} value */
function roughness (value) {
  const lead = value / 10 ** Math.floor(Math.log10(value) + 1e-9)
  const place = [1, 5, 2].findIndex((one) => Math.abs(lead - one) < 1e-6)
  return place === -1 ? 3 : place
}

/** @param {number[]} values the most welcome first @param {any} scale */
function apart (values, scale) {
  /** @type {number[]} */
  const kept = []
  for (const value of values) {
    if (kept.every((other) => Math.abs(scale(other) - scale(value)) >= ROOM_PX)) kept.push(value)
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
    if (at < 18) label.setAttribute('text-anchor', 'start')
    if (at > width - 18) label.setAttribute('text-anchor', 'end')
  }
  return s('svg', { class: 'axis', width, height: HEIGHT, 'aria-hidden': 'true' }, group)
}

module.exports = { axis, ticksOf }
