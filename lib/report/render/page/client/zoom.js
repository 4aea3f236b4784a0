'use strict'

// One view of a time axis for several drawings below each other. d3-zoom turns wheel, drag and fingers into a transform;
// buttons and keys do the same for those without a pointer. The wheel alone scrolls the page, as readers expect.

/* global d3 */

const { h } = require('./dom')

const MOST = 2000
const STEP = 1.6

/**
 * @param {object} options
 * @param {string} options.label what is zoomed
 * @param {() => number} options.width px of the drawing
 * @param {() => void} options.draw
 * @param {() => string} options.tell what is in sight now, in words
 */
function createZoom ({ label, width, draw, tell }) {
  let transform = d3.zoomIdentity
  /** @type {any[]} */
  let targets = []
  const told = h('span', { class: 'told', role: 'status' })
  const behaviour = d3.zoom()
    .scaleExtent([1, MOST])
    .extent(() => [[0, 0], [width(), 1]])
    .filter((/** @type {any} */ event) => (event.type === 'wheel' ? event.ctrlKey || event.metaKey : !event.button))
    .on('zoom', (/** @type {any} */ event) => move(event.transform))

  /** @param {any} next */
  function move (next) {
    const scale = Math.min(MOST, Math.max(1, next.k))
    const x = Math.min(0, Math.max(width() * (1 - scale), next.x))
    transform = d3.zoomIdentity.translate(x, 0).scale(scale)
    for (const target of targets) target.__zoom = transform // what d3 starts from, whichever of them is touched next
    draw()
    told.textContent = scale === 1 ? '' : tell()
    for (const button of resets) button.disabled = scale === 1
  }

  /** @param {number} factor */
  function scaleBy (factor) {
    const [middle, k] = [width() / 2, Math.min(MOST, Math.max(1, transform.k * factor))]
    move(d3.zoomIdentity.translate(middle - (middle - transform.x) * k / transform.k, 0).scale(k))
  }

  /** @param {number} part of the width */
  function shift (part) {
    move(d3.zoomIdentity.translate(transform.x - part * width(), 0).scale(transform.k))
  }

  const reset = () => move(d3.zoomIdentity)

  /** @type {Array<[string, string, string, () => void]>} */
  const actions = [
    ['−', 'Zoom out', '-', () => scaleBy(1 / STEP)],
    ['+', 'Zoom in', '+', () => scaleBy(STEP)],
    ['←', 'Move left', 'ArrowLeft', () => shift(-0.25)],
    ['→', 'Move right', 'ArrowRight', () => shift(0.25)],
    ['Reset', 'Reset zoom', '0', reset]
  ]

  /** @param {any} event */
  function onKey (event) {
    const action = actions.find(([, , key]) => key === event.key || (key === '+' && event.key === '='))
    if (action === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    action[3]()
  }

  const buttons = actions.map(([sign, name, key, act]) => h('button', {
    type: 'button', title: `${name} (${key})`, 'aria-label': `${name}: ${label}`, 'aria-keyshortcuts': key, on: { click: act }
  }, sign))
  const resets = buttons.filter((_, i) => i !== 1)
  for (const button of resets) button.disabled = true

  return {
    toolbar: h('div', { class: 'zoom', role: 'group', 'aria-label': `Zoom: ${label}`, on: { keydown: onKey } }, buttons, told),
    onKey,
    reset,
    /** @param {any} scale of the whole @returns {any} scale of what is in sight */
    view: (scale) => transform.rescaleX(scale),
    /** @param {any[]} nodes */
    attach (nodes) {
      targets = nodes
      d3.selectAll(nodes).call(behaviour)
      for (const target of targets) target.__zoom = transform
    },
    /** The width changed: what was in sight stays so. @param {number} ratio */
    resized (ratio) {
      move(d3.zoomIdentity.translate(transform.x * ratio, 0).scale(transform.k))
    }
  }
}

module.exports = { createZoom }
