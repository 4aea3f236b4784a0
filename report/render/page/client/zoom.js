'use strict'

// One zoomed view of a time axis for several plots below each other. d3-zoom turns wheel, drag and touch into
// a transform; buttons and keys do the same without a pointer. The wheel alone scrolls the page, as
// everywhere.

/* global d3 */

const { h } = require('./dom')

const MAX_SCALE = 2000
const STEP = 1.6

/**
 * @param {object} options
 * @param {string} options.label of what is zoomed
 * @param {() => number} options.width px of a plot
 * @param {() => void} options.draw
 * @param {() => string} options.describe the visible range
 */
function createZoom ({ label, width, draw, describe }) {
  let transform = d3.zoomIdentity
  /** @type {any[]} */
  let targets = []
  const status = h('span', { class: 'told', role: 'status' })
  const behaviour = d3.zoom()
    .scaleExtent([1, MAX_SCALE])
    .extent(() => [[0, 0], [width(), 1]])
    .filter((/** @type {any} */ event) =>
      event.type === 'wheel' ? event.ctrlKey || event.metaKey : !event.button)
    .on('zoom', (/** @type {any} */ event) => move(event.transform.x, event.transform.k))

  /** @param {number} x px of the left end @param {number} scale */
  function move (x, scale) {
    const k = Math.min(MAX_SCALE, Math.max(1, scale))
    transform = d3.zoomIdentity.translate(Math.min(0, Math.max(width() * (1 - k), x)), 0).scale(k)
    for (const target of targets) target.__zoom = transform // d3 starts from it in any plot
    draw()
    status.textContent = k === 1 ? '' : describe()
    for (const button of buttons) button.disabled = k === 1 && button !== buttons[1]
  }

  /** @param {number} factor */
  function scaleBy (factor) {
    const [middle, k] = [width() / 2, Math.min(MAX_SCALE, Math.max(1, transform.k * factor))]
    move(middle - (middle - transform.x) * k / transform.k, k)
  }

  const shift = (/** @type {number} */ part) => move(transform.x - part * width(), transform.k)
  const reset = () => move(0, 1)

  /** @type {Array<[string, string, string, () => void]>} */
  const actions = [
    ['−', 'Zoom out', '-', () => scaleBy(1 / STEP)],
    ['+', 'Zoom in', '+', () => scaleBy(STEP)],
    ['←', 'Move left', 'ArrowLeft', () => shift(-0.25)],
    ['→', 'Move right', 'ArrowRight', () => shift(0.25)],
    ['Reset', 'Reset zoom', '0', reset]
  ]
  const buttons = actions.map(([sign, name, key, act]) => h('button', {
    type: 'button',
    title: `${name} (${key})`,
    'aria-label': `${name}: ${label}`,
    'aria-keyshortcuts': key,
    on: { click: act }
  }, sign))

  /** @param {any} event */
  function onKey (event) {
    const action = actions.find(([, , key]) => key === event.key || (key === '+' && event.key === '='))
    if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    action[3]()
  }

  const attributes = { class: 'zoom', role: 'group', 'aria-label': `Zoom: ${label}`, on: { keydown: onKey } }
  return {
    toolbar: h('div', attributes, buttons, status),
    /** @param {any} scale of everything @returns {any} scale of the visible range */
    view: (scale) => transform.rescaleX(scale),
    /** Zooms other plots, from the whole. @param {any[]} nodes */
    attach (nodes) {
      targets = nodes
      d3.selectAll(nodes).call(behaviour)
      reset()
    },
    /** Keeps the visible range after a change of the width. @param {number} ratio */
    resized: (ratio) => move(transform.x * ratio, transform.k)
  }
}

module.exports = { createZoom }
