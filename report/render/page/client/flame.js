'use strict'

// Async flame graph: a calling-context tree of chains with the root on top. Widths are wall time along
// critical paths. d3-flame-graph is maintained but unsuitable: it writes its tooltip as markup, which the
// page's policy forbids, has one fill per frame instead of four kinds with patterns, and supports neither
// keys nor screen readers. Frames are elements, not drawn on a canvas: each is a named tree item, and only
// those wider than a pixel are created.

/* global d3, ResizeObserver */

const { axis, ticksOf } = require('./axis')
const { facts, foreign, h, legend, link, radioButtons } = require('./dom')
const {
  LEAVES, baseOf, changeOf, descend, layOut, meansOf, mergeTrees, neighbour, partsOf, pathOf, search
} = require('./flame-tree')
const { change, grouped, percent, time } = require('../../format')
const { allOf } = require('../../../aggregate/lists')
const { shortFrame } = require('../../../../lib/text')

/**
 * @typedef {import('./flame-tree').PathNode} PathNode
 * @typedef {import('./flame-tree').Frame} Frame
 *
 * @typedef {object} FlameOptions
 * @property {string[]} [labels] of two runs to compare
 * @property {string} title
 * @property {any[]} controls further controls for its toolbar
 * @property {string} [counted] unit of the tree's counts; default: requests
 * @property {(traceId: string) => { text: string, open: () => void } | undefined} [requests] behind a frame,
 *   if the page has their traces
 */

const ROW_PX = 22
const MIN_PX = 0.6 // narrower frames are not drawn
const LABEL_PX = 24 // narrower frames have no label
const KEYS = 'Arrow keys move: up to the caller, down to the largest part, sideways in the row. ' +
  'Enter or a click zooms in, Escape out.'
const CHANGES = {
  grows: { sign: '▲ ', text: '▲ grows', style: 'slower' },
  shrinks: { sign: '▼ ', text: '▼ shrinks', style: 'faster' },
  same: { sign: '', text: 'no change', style: 'same' }
}
/** @type {Record<string, [title: string, meaning: string]>} */
const MEANINGS = {
  ran: ['Ran', 'ran'],
  waited: ['Waited', 'waited'],
  delayed: ['Delayed', 'delayed: the event loop ran other code'],
  beside: ['Ran beside', 'ran beside: own code that the answer did not wait for']
}

class Flame {
  #options
  #chart
  #ruler = h('div', { class: 'flame-ruler' })
  #detail = h('div', { class: 'detail flame-detail' })
  #sum = h('span', { class: 'found', role: 'status' })
  #input
  #zoomOut
  #legend = h('div')
  #run // draws the widths of this run
  #width = 0
  /** @type {Frame} */
  #root
  /** @type {Frame} */
  #top // fills the width
  /** @type {Frame} */
  #selected
  /** @type {Map<Frame, any>} */
  #elements = new Map()
  /** @type {Set<Frame>} */
  #matches = new Set()

  /** @param {PathNode[]} trees one, or two to compare @param {FlameOptions} options */
  constructor (trees, options) {
    const { title, controls, labels } = options
    this.#options = options
    this.#run = trees.length - 1
    this.#root = this.#top = this.#selected = mergeTrees(trees)
    this.#chart = h('div', {
      class: 'flame-chart',
      role: 'tree',
      tabindex: 0,
      'aria-label': title,
      'aria-describedby': 'flame-keys',
      on: {
        click: (/** @type {any} */ event) => this.#click(event),
        keydown: (/** @type {any} */ event) => this.#press(event)
      }
    })
    this.#input = h('input', {
      type: 'search',
      size: 18,
      on: { input: () => this.#search(), keydown: (/** @type {any} */ event) => this.#searchKey(event) }
    })
    this.#zoomOut = h('button', { type: 'button', on: { click: () => this.#zoom(this.#root) } }, 'Zoom out')
    const widths = labels !== undefined && radioButtons('Widths of', 'widths',
      labels.map((label, run) => [String(run), label]), (run) => this.#drawWidthsOf(Number(run)), '1')
    this.element = h('figure', { class: 'flame' },
      h('div', { class: 'toolbar' }, controls, widths,
        h('label', { class: 'choice' }, 'Find frames ', this.#input), this.#zoomOut, this.#sum),
      this.#legend, this.#ruler, this.#chart, h('p', { class: 'note', id: 'flame-keys' }, KEYS), this.#detail)
    this.show(trees)
    new ResizeObserver(() => {
      if (this.#chart.clientWidth !== this.#width) this.#draw()
    }).observe(this.#chart)
  }

  /** Draws another tree or pair of trees. @param {PathNode[]} trees */
  show (trees) {
    const names = pathOf(this.#selected).filter(({ kind }) => kind !== 'root').map(({ name }) => name)
    this.#root = this.#top = mergeTrees(trees)
    layOut(this.#root, this.#run)
    const isInRoute = this.#root.kind !== 'root' && names[0] === this.#root.name
    this.#selected = descend(this.#root, isInRoute ? names.slice(1) : names)
    this.#legend.replaceChildren(this.#createLegend())
    this.#search()
    this.#select(this.#selected)
  }

  /**
   * Selects the last existing frame on a path, and zooms to it.
   * @param {string[]} names from the route, or from the level below the root
   */
  open (names) {
    const frame = descend(this.#root, names)
    this.#zoom(frame)
    this.#select(frame)
    this.#chart.focus({ preventScroll: true })
  }

  /** Creates a legend for the kinds and changes in the tree. */
  #createLegend () {
    const kinds = new Set(allOf(this.#root).map(({ kind }) => kind))
    const isComparison = this.#root.runs.length > 1
    return legend([
      ...LEAVES.filter((kind) => kinds.has(kind)).map((kind) => [`frame ${kind}`, MEANINGS[kind][1]]),
      ...(isComparison
        ? Object.entries(CHANGES).map(([direction, { text }]) => [`frame differential ${direction}`, text])
        : [])
    ])
  }

  /** @param {number} run */
  #drawWidthsOf (run) {
    this.#run = run
    layOut(this.#root, run)
    this.#search()
    this.#zoom(this.#top)
    this.#select(this.#selected)
  }

  #draw () {
    const width = this.#width = this.#chart.clientWidth
    if (width === 0) return
    const minMs = this.#top.ms * MIN_PX / width
    const path = pathOf(this.#top)
    const below = allOf(this.#top).filter((frame) => frame.ms >= minMs && frame.ms > 0)
    const visible = [...new Set([...path, ...below, ...pathOf(this.#selected)])]
    this.#elements = new Map(visible.map((frame, i) =>
      [frame, this.#createFrame(frame, i, path.includes(frame))]))
    this.#chart.style.setProperty('--rows', String(Math.max(...visible.map(({ depth }) => depth)) + 1))
    this.#chart.replaceChildren(...this.#elements.values())
    this.#zoomOut.disabled = this.#top === this.#root
    const scale = d3.scaleLinear([0, Math.max(this.#top.ms, 1e-6)], [0, width])
    this.#ruler.replaceChildren(axis(scale, width, ticksOf(scale, width), 'top'))
    this.#mark()
  }

  /** @param {Frame} frame @param {number} index @param {boolean} isAncestor drawn as wide as the graph */
  #createFrame (frame, index, isAncestor) {
    const { name, kind, runs, depth } = frame
    const share = isAncestor ? 1 : frame.ms / this.#top.ms
    const offset = isAncestor ? 0 : (frame.start - this.#top.start) / this.#top.ms
    const changes = runs.length > 1 ? changeOf(frame) : undefined
    const title = name === kind || kind === 'frame' || kind === 'root' ? name : `${kind}: ${name}`
    const styles = [
      'frame',
      kind,
      changes && `differential ${changes.direction}`,
      changes?.isStrong && 'strong',
      this.#matches.size > 0 && (this.#matches.has(frame) ? 'matched' : 'dimmed')
    ]
    const element = h('div', {
      class: styles.filter(Boolean).join(' '),
      id: `frame-${index}`,
      role: 'treeitem',
      'aria-level': depth + 1,
      'aria-label': `${title}, ${this.#figuresOf(frame)}`,
      title: `${name}\n${this.#figuresOf(frame)}`,
      css: { '--left': `${offset * 100}%`, '--width': `${share * 100}%`, '--row': String(depth) }
    }, share * this.#width >= LABEL_PX &&
      h('span', {}, changes && CHANGES[changes.direction].sign, foreign(shortFrame(name))))
    return Object.assign(element, { frame })
  }

  /** @param {Frame} frame */
  #figuresOf ({ ms, runs }) {
    const times = runs[this.#run]?.count
    const share = `${percent(ms / this.#root.ms)} of the whole`
    return [time(ms), share, Number.isFinite(times) && `${grouped(times)} times`].filter(Boolean).join(', ')
  }

  /** Marks the selected frame. */
  #mark () {
    for (const [frame, element] of this.#elements) {
      element.setAttribute('aria-selected', String(frame === this.#selected))
    }
    this.#chart.setAttribute('aria-activedescendant', this.#elements.get(this.#selected)?.id ?? '')
  }

  /** @param {Frame} frame */
  #select (frame) {
    this.#selected = frame
    if (!this.#elements.has(frame)) this.#draw()
    this.#mark()
    const { scrollTop, clientHeight } = this.#chart
    const y = frame.depth * ROW_PX
    if (y < scrollTop || y + ROW_PX > scrollTop + clientHeight) this.#chart.scrollTop = y - clientHeight / 2
    const go = (/** @type {Frame} */ next) => this.#goTo(next)
    this.#detail.replaceChildren(flameDetail(frame, this.#root, this.#run, this.#options, go))
  }

  /** Selects a frame, and zooms out if it is outside the zoomed part. @param {Frame} frame */
  #goTo (frame) {
    if (!pathOf(frame).includes(this.#top) && !pathOf(this.#top).includes(frame)) this.#zoom(this.#root)
    this.#select(frame)
  }

  /** Zooms to a frame; for a leaf, to its parent. @param {Frame} frame */
  #zoom (frame) {
    this.#top = frame.ms === 0 ? this.#root : frame.children.length > 0 ? frame : frame.parent ?? frame
    this.#draw()
  }

  /** @param {any} event */
  #click (event) {
    const frame = frameAt(event)
    if (frame === undefined) return
    this.#select(frame)
    if (frame.children.length > 0) this.#zoom(frame)
  }

  /** @param {any} event */
  #press (event) {
    const isKnown = /^(Arrow|Home|Enter|Escape)/.test(event.key)
    if (event.ctrlKey || event.metaKey || event.altKey || !isKnown) return
    event.preventDefault()
    if (event.key === 'Enter') return this.#zoom(this.#selected)
    if (event.key === 'Escape') this.#zoom(this.#root)
    const next = event.key === 'Escape' ? undefined : neighbour(this.#selected, event.key, this.#top)
    this.#goTo(next ?? this.#selected)
  }

  #search () {
    const { frames, ms } = search(this.#root, this.#input.value)
    this.#matches = frames
    this.#sum.textContent = this.#input.value.trim() === ''
      ? ''
      : `${grouped(frames.size)} found: ${time(ms)}, ${percent(ms / this.#root.ms || 0)}`
    this.#draw()
  }

  /** Goes to the next match on Enter, clears the field on Escape. @param {any} event */
  #searchKey (event) {
    if (event.key === 'Escape') {
      this.#input.value = ''
      this.#search()
    }
    if (event.key !== 'Enter') return
    const frames = [...this.#matches]
    const next = frames[frames.indexOf(this.#selected) + 1] ?? frames[0]
    if (next !== undefined) this.#goTo(next)
  }
}

/** @param {any} event @returns {Frame | undefined} */
const frameAt = ({ target }) => target.closest('.frame')?.frame

/**
 * Describes a frame: its path, its figures, the requests behind it.
 * @param {Frame} frame
 * @param {Frame} root
 * @param {number} run run that defines the widths
 * @param {FlameOptions} options
 * @param {(frame: Frame) => void} go selects another frame
 */
function flameDetail (frame, root, run, { counted, requests, labels = [] }, go) {
  const base = baseOf(frame)
  const { count: times, traceIds = [] } = frame.runs[run] ?? {}
  const total = time(frame.ms)
  const ofRequests = frame.kind === 'root' || frame.kind === 'route' ? 'Requests' : 'Times'
  const ancestors = pathOf(frame).slice(0, -1)
  const sums = partsOf(frame)
  const kinds = frame.children.length > 0 ? LEAVES.filter((kind) => sums[kind] > 0) : []
  return h('div', {},
    h('h3', {}, foreign(frame.name)),
    ancestors.length > 0 && h('ol', { class: 'breadcrumbs', 'aria-label': 'Callers, outermost first' },
      ancestors.map((ancestor) => h('li', {}, link(foreign(ancestor.name), () => go(ancestor))))),
    facts([
      ['Total', frame === root ? total : `${total} · ${percent(frame.ms / root.ms)} of the whole`],
      frame !== base && base !== root && ['Of its route', percent(frame.ms / base.ms)],
      Number.isFinite(times) && [counted ?? ofRequests, grouped(times)],
      counted === undefined && ['Mean', `${time(meansOf(frame)[run])} per request`],
      frame.runs.length > 1 && ['Changed', comparison(frame, labels)]
    ]),
    kinds.length > 0 && facts(kinds.map((kind) => [
      [h('span', { class: `swatch frame ${kind}` }), MEANINGS[kind][0]],
      [time(sums[kind]), h('small', {}, percent(sums[kind] / frame.ms))]
    ]), 'parts'),
    traceIds.length > 0 && h('div', { class: 'behind' }, h('h4', {}, 'Slowest requests behind it'),
      h('ul', {}, traceIds.map((id) => {
        const request = requests?.(id)
        return h('li', {}, request === undefined
          ? ['trace ', foreign(id, { class: 'code' })]
          : link(foreign(request.text), request.open))
      }))))
}

/** Compares the means per request of two runs. @param {Frame} frame @param {string[]} labels */
function comparison (frame, [first, second]) {
  const [before, after] = meansOf(frame)
  const ratio = before > 0 && after > 0 ? change(before, after) : after > 0 ? 'new' : 'gone'
  return [h('b', { class: `change ${CHANGES[changeOf(frame).direction].style}` }, ratio),
    ` ${time(before)} → ${time(after)} per request`,
    h('small', {}, ' from ', foreign(first), ' to ', foreign(second))]
}

module.exports = { Flame }
