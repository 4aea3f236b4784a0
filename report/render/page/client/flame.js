'use strict'

// The async flame graph: a calling-context tree of chains, root on top. Widths are wall time along critical
// paths. Drawn here and not by d3-flame-graph, which is alive, but writes its tooltip as markup (the page's
// policy forbids that), has one fill for a frame (not four kinds with patterns), and knows neither keys nor
// screen readers. What it would save is the layout, ten lines in flame-tree.js. Elements, not a canvas: a
// frame is a tree item with a name, and at most those that are wider than a pixel are drawn.

/* global d3, ResizeObserver */

const { axis, ticksOf } = require('./axis')
const { radioButtons } = require('./choices')
const { foreign, h } = require('./dom')
const { flameDetail } = require('./flame-detail')
const { figuresOf, frameElement, legendOf } = require('./flame-frame')
const { allOf, follow, layOut, mergeTrees, neighbour, pathOf, search } = require('./flame-tree')
const { count, percent, time } = require('./format')

/**
 * @typedef {import('./flame-tree').PathNode} PathNode
 * @typedef {import('./flame-tree').Frame} Frame
 *
 * @typedef {object} FlameOptions
 * @property {PathNode} [compareTree] of the second run; the change is to it
 * @property {string[]} [labels] of the two runs
 * @property {string} [title]
 * @property {any[]} [controls] more of them for its toolbar
 * @property {string} [counted] what the counts of the tree are; default: requests
 * @property {(frame: Frame) => void} [onSelect]
 * @property {(traceId: string) => { text: string, open: () => void } | undefined} [requests] behind a frame,
 *   as far as the page has their traces
 */

const ROW_PX = 22
const MIN_PX = 0.6 // narrower frames are not drawn
const KEYS = 'Arrow keys move: up to the caller, down to the largest part, sideways in the row. ' +
  'Enter or a click zooms in, Escape out.'

let flames = 0

class Flame {
  #id = `flame-${++flames}`
  #options
  #chart
  #ruler = h('div', { class: 'flame-ruler' })
  #detail = h('div', { class: 'detail flame-detail' })
  #tip = h('div', { class: 'tip', 'aria-hidden': 'true', hidden: true })
  #sum = h('span', { class: 'found', role: 'status' })
  #input
  #resetButton
  #legend = h('ul', { class: 'legend' })
  #run = 0 // whose widths are drawn
  #width = 0
  /** @type {Frame} */
  #root
  /** @type {Frame} */
  #top // fills the width
  /** @type {Frame} */
  #selected
  /** @type {Map<any, Frame>} */
  #frames = new Map()
  /** @type {Map<Frame, any>} */
  #elements = new Map()
  /** @type {ReturnType<typeof search>} */
  #matches = { frames: new Set(), ms: 0 }

  /** @param {PathNode} tree @param {FlameOptions} options */
  constructor (tree, options) {
    this.#options = options
    this.#chart = h('div', {
      class: 'flame-chart',
      role: 'tree',
      tabindex: 0,
      'aria-label': options.title ?? 'Critical paths',
      'aria-describedby': `${this.#id}-keys`,
      on: {
        click: (/** @type {any} */ event) => this.#click(event),
        keydown: (/** @type {any} */ event) => this.#press(event),
        pointermove: (/** @type {any} */ event) => this.#point(event),
        pointerleave: () => { this.#tip.hidden = true }
      }
    })
    this.#input = h('input', {
      type: 'search',
      size: 18,
      on: { input: () => this.#search(), keydown: (/** @type {any} */ event) => this.#searchKey(event) }
    })
    const zoomOut = () => this.#zoom(this.#root)
    this.#resetButton = h('button', { type: 'button', on: { click: zoomOut } }, 'Zoom out')
    this.element = h('figure', { class: 'flame' }, this.#toolbar(), this.#legend, this.#ruler, this.#chart,
      h('p', { class: 'note', id: `${this.#id}-keys` }, KEYS), this.#detail, this.#tip)
    this.#root = this.#top = this.#selected = mergeTrees([tree])
    this.show(tree, options.compareTree)
    new ResizeObserver(() => {
      if (this.#chart.clientWidth !== this.#width) this.#draw()
    }).observe(this.#chart)
  }

  #toolbar () {
    const { labels, compareTree, controls = [] } = this.#options
    const widths = compareTree !== undefined && radioButtons('Widths of', `${this.#id}-run`,
      (labels ?? ['first run', 'second run']).map((label, i) => [String(i), label]), '1',
      (run) => this.#widthsOf(Number(run)))
    const field = h('label', { class: 'choice' }, 'Find frames ', this.#input)
    return h('div', { class: 'toolbar' }, controls, widths, field, this.#resetButton, this.#sum)
  }

  /**
   * Draws another tree, or another pair of them.
   * @param {PathNode} tree
   * @param {PathNode} [compareTree]
   */
  show (tree, compareTree) {
    const names = pathOf(this.#selected).filter(({ kind }) => kind !== 'root').map(({ name }) => name)
    if (compareTree !== undefined && this.#root.runs.length === 1) this.#run = 1
    if (compareTree === undefined) this.#run = 0
    this.#root = mergeTrees(compareTree === undefined ? [tree] : [tree, compareTree])
    layOut(this.#root, this.#run)
    this.#top = this.#root
    const isInRoute = this.#root.kind !== 'root' && names[0] === this.#root.name
    this.#selected = follow(this.#root, isInRoute ? names.slice(1) : names).frame
    this.#legend.replaceChildren(...legendOf(this.#root))
    this.#find()
    this.#draw()
    this.#select(this.#selected)
  }

  /**
   * Selects the frame at the end of a path, as far as there is one, and makes it as wide as can be.
   * @param {string[]} names from the route, or what is below the root
   * @returns {boolean} whether all of the path is there
   */
  select (names) {
    const { frame, isComplete } = follow(this.#root, names)
    this.#zoom(frame.children.length > 0 ? frame : frame.parent ?? frame)
    this.#select(frame)
    return isComplete
  }

  focus () {
    this.#chart.focus({ preventScroll: true })
  }

  /** @param {number} run */
  #widthsOf (run) {
    this.#run = run
    layOut(this.#root, run)
    this.#find()
    this.#zoom(this.#top.ms > 0 ? this.#top : this.#root)
    this.#select(this.#selected)
  }

  #draw () {
    const width = this.#width = this.#chart.clientWidth
    if (width === 0) return
    const minMs = this.#top.ms * MIN_PX / width
    const path = pathOf(this.#top)
    const below = allOf(this.#top).filter((frame) => frame.ms >= minMs && frame.ms > 0)
    const visible = new Set([...path, ...below, ...pathOf(this.#selected)])
    this.#frames.clear()
    this.#elements.clear()
    let depth = 0
    const view = {
      root: this.#root, top: this.#top, run: this.#run, matches: this.#matches.frames, width
    }
    for (const frame of visible) {
      const element = frameElement(frame, path.includes(frame), view)
      element.id = `${this.#id}-${this.#elements.size}`
      this.#frames.set(element, frame)
      this.#elements.set(frame, element)
      depth = Math.max(depth, frame.depth)
    }
    this.#chart.style.setProperty('--rows', String(depth + 1))
    this.#chart.replaceChildren(...this.#elements.values())
    this.#resetButton.disabled = this.#top === this.#root
    const scale = d3.scaleLinear([0, Math.max(this.#top.ms, 1e-6)], [0, width])
    this.#ruler.replaceChildren(axis(scale, width, ticksOf(scale, width), 'top'))
    this.#mark()
  }

  /** Marks the selected frame. */
  #mark () {
    for (const [frame, element] of this.#elements) {
      element.setAttribute('aria-selected', String(frame === this.#selected))
    }
    const id = this.#elements.get(this.#selected)?.id
    if (id === undefined) this.#chart.removeAttribute('aria-activedescendant')
    else this.#chart.setAttribute('aria-activedescendant', id)
  }

  /** @param {Frame} frame */
  #select (frame) {
    this.#selected = frame
    if (!this.#elements.has(frame)) this.#draw()
    this.#mark()
    const element = this.#elements.get(frame)
    const { scrollTop, clientHeight } = this.#chart
    const y = frame.depth * ROW_PX
    if (element && (y < scrollTop || y + ROW_PX > scrollTop + clientHeight)) {
      this.#chart.scrollTop = y - clientHeight / 2
    }
    const go = (/** @type {Frame} */ next) => { this.#goTo(next) }
    this.#detail.replaceChildren(...flameDetail(frame, this.#root, { ...this.#options, run: this.#run, go }))
    this.#options.onSelect?.(frame)
  }

  /** Selects a frame and shows it if it is outside of what is zoomed. @param {Frame} frame */
  #goTo (frame) {
    if (!pathOf(frame).includes(this.#top) && !pathOf(this.#top).includes(frame)) this.#zoom(this.#root)
    this.#select(frame)
  }

  /** Makes a frame as wide as the graph; of a leaf, its parent. @param {Frame} frame */
  #zoom (frame) {
    this.#top = frame.ms === 0 ? this.#root : frame.children.length > 0 ? frame : frame.parent ?? frame
    this.#draw()
  }

  /** @param {any} event */
  #click (event) {
    const frame = this.#frames.get(event.target.closest('.frame'))
    if (frame === undefined) return
    this.#select(frame)
    if (frame.children.length > 0) this.#zoom(frame)
  }

  /** @param {any} event */
  #press (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (event.key === 'Enter') this.#zoom(this.#selected)
    else if (event.key === 'Escape') this.#zoomOut()
    else if (!/^(Arrow|Home)/.test(event.key)) return
    else {
      const next = neighbour(this.#selected, event.key, this.#top)
      if (next !== undefined) this.#goTo(next)
    }
    event.preventDefault()
  }

  #zoomOut () {
    this.#zoom(this.#root)
    this.#select(this.#selected)
  }

  #search () {
    this.#find()
    this.#draw()
  }

  #find () {
    this.#matches = search(this.#root, this.#input.value)
    const { frames: { size }, ms } = this.#matches
    if (this.#input.value.trim() === '') this.#sum.textContent = ''
    else this.#sum.textContent = `${count(size)} found: ${time(ms)}, ${percent(ms / this.#root.ms || 0)}`
  }

  /** Goes to the next match with Enter, empties the field with Escape. @param {any} event */
  #searchKey (event) {
    if (event.key === 'Escape') {
      this.#input.value = ''
      this.#search()
    }
    if (event.key !== 'Enter') return
    const frames = [...this.#matches.frames]
    const next = frames[frames.indexOf(this.#selected) + 1] ?? frames[0]
    if (next !== undefined) this.#goTo(next)
  }

  /** @param {any} event */
  #point (event) {
    const frame = this.#frames.get(event.target.closest('.frame'))
    const tip = this.#tip
    tip.hidden = frame === undefined
    if (frame === undefined) return
    tip.replaceChildren(h('b', {}, foreign(frame.name)), h('p', {}, figuresOf(frame, this.#root, this.#run)))
    const box = this.element.getBoundingClientRect()
    const x = Math.min(event.clientX - box.left + 14, box.width - tip.offsetWidth - 4)
    tip.style.setProperty('--x', `${Math.max(0, x)}px`)
    tip.style.setProperty('--y', `${event.clientY - box.top + 18}px`)
  }
}

/**
 * Creates a flame graph.
 * @param {PathNode} tree
 * @param {FlameOptions} [options]
 */
function createFlame (tree, options = {}) {
  return new Flame(tree, options)
}

module.exports = { createFlame }
