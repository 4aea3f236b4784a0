'use strict'

// Describes the selected frame of a flame graph in words: its path, its figures, the requests behind it.

const { facts, foreign, h, link } = require('./dom')
const { LEAVES, baseOf, changeOf, meansOf, partsOf, pathOf } = require('./flame-tree')
const { change, count, percent, time } = require('./format')

/** @typedef {import('./flame-tree').Frame} Frame */

const CHANGES = [
  { direction: 'grows', sign: '▲ ', text: '▲ grows', style: 'slower' },
  { direction: 'shrinks', sign: '▼ ', text: '▼ shrinks', style: 'faster' },
  { direction: 'same', sign: '', text: 'no change', style: 'same' }
]
/** @type {Record<string, [title: string, meaning: string]>} */
const MEANINGS = {
  ran: ['Ran', 'ran'],
  waited: ['Waited', 'waited'],
  delayed: ['Delayed', 'delayed: the event loop ran other code'],
  beside: ['Ran beside', 'ran beside: own code that the answer did not wait for']
}

/** @param {Frame} frame @returns {any} */
const ofChange = (frame) => CHANGES.find(({ direction }) => direction === changeOf(frame).direction)

/**
 * @param {Frame} frame
 * @param {Frame} root
 * @param {number} run whose widths are drawn
 * @param {import('./flame').FlameOptions} options
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
      Number.isFinite(times) && [counted ?? ofRequests, count(times)],
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
  return [h('b', { class: `change ${ofChange(frame).style}` }, ratio),
    ` ${time(before)} → ${time(after)} per request`,
    h('small', {}, ' from ', foreign(first), ' to ', foreign(second))]
}

module.exports = { CHANGES, MEANINGS, flameDetail, ofChange }
