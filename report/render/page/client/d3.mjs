// The parts of D3 that the page uses, as a global `d3`; the bundle contains nothing else of D3.

import * as d3 from './d3.mjs'
export { brushX } from 'd3-brush'
export { scaleLinear, scaleLog, scaleUtc } from 'd3-scale'
export { select, selectAll } from 'd3-selection'
export { area, curveMonotoneX, curveStep, line } from 'd3-shape'
export { zoom, zoomIdentity } from 'd3-zoom'

Object.assign(globalThis, { d3 })
