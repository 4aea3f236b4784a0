// What the page uses of D3, as a global `d3`: the bundle has nothing else of it.

import * as d3 from './d3.mjs'
export { brushX } from 'd3-brush'
export { scaleLinear, scaleLog, scaleUtc } from 'd3-scale'
export { select, selectAll } from 'd3-selection'
export { area, curveMonotoneX, curveStep, line } from 'd3-shape'
export { zoom, zoomIdentity } from 'd3-zoom'

Object.assign(globalThis, { d3 })
