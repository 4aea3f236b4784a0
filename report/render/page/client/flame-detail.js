'use strict'

// Describes the selected frame of a flame graph in words: its path, its figures, the requests behind it.

const { foreign, h } = require('./dom')
const { baseOf, changeOf, LEAVES, meansOf, partsOf, pathOf } = require('./flame-tree')
const { change, count, percent, time } = require('./format')

/**
 * @typedef {import('./flame-tree').Frame} Frame
 * @typedef {import('./flame').FlameOptions & { run: number, go: (frame: Frame) => void }} DetailOptions
 */

/** @type {Record<typeof LEAVES[number], string>} */
const titles = { ran: 'Ran', waited: 'Waited', delayed: 'Delayed', beside: 'Ran beside' }

/**
 * @param {Frame} frame
 * @param {Frame} root
 * @param {DetailOptions} options
 * @returns {any[]}
 */
function flameDetail (frame, root, options) {
  return [
    h('h3', {}, foreign(frame.name)),
    breadcrumbs(frame, options.go),
    figures(frame, root, options),
    frame.children.length > 0 && parts(frame),
    behind(frame, options)
  ].filter(Boolean)
}

/** @param {Frame} frame @param {(frame: Frame) => void} go */
function breadcrumbs (frame, go) {
  const ancestors = pathOf(frame).slice(0, -1)
  if (ancestors.length === 0) return undefined
  const link = (/** @type {Frame} */ ancestor) => h('button', {
    type: 'button', class: 'link', on: { click: () => go(ancestor) }
  }, foreign(ancestor.name))
  const items = ancestors.map((ancestor) => h('li', {}, link(ancestor)))
  return h('ol', { class: 'breadcrumbs', 'aria-label': 'Callers, outermost first' }, items)
}

/** @param {Frame} frame @param {Frame} root @param {DetailOptions} options */
function figures (frame, root, options) {
  const base = baseOf(frame)
  const mean = meansOf(frame)[options.run]
  const total = time(frame.ms)
  const times = frame.runs[options.run]?.count
  const isRequest = frame.kind === 'root' || frame.kind === 'route'
  /** @type {Array<[string, any] | false>} */
  const facts = [
    ['Total', frame === root ? total : `${total} · ${percent(frame.ms / root.ms)} of the whole`],
    frame !== base && base !== root && ['Of its route', percent(frame.ms / base.ms)],
    Number.isFinite(times) && [options.counted ?? (isRequest ? 'Requests' : 'Times'), count(times)],
    options.counted === undefined && ['Mean', `${time(mean)} per request`],
    frame.runs.length > 1 && ['Changed', comparison(frame, options)]
  ]
  return h('dl', { class: 'facts' }, facts.filter(Boolean).map((fact) => {
    const [name, value] = /** @type {[string, any]} */ (fact)
    return h('div', {}, h('dt', {}, name), h('dd', {}, value))
  }))
}

/** Compares the means per request of two runs. @param {Frame} frame @param {DetailOptions} options */
function comparison (frame, { labels = [] }) {
  const [before, after] = meansOf(frame)
  const { direction } = changeOf(frame)
  const style = direction === 'grows' ? 'slower' : direction === 'shrinks' ? 'faster' : 'same'
  const ratio = before > 0 && after > 0 ? change(before, after) : after > 0 ? 'new' : 'gone'
  return [h('b', { class: `change ${style}` }, ratio),
    ` ${time(before)} → ${time(after)} per request`,
    labels.length > 1 && h('small', {}, ' from ', foreign(labels[0]), ' to ', foreign(labels[1]))]
}

/** Divides a frame by what its leaves are. @param {Frame} frame */
function parts (frame) {
  const sums = partsOf(frame)
  const present = LEAVES.filter((kind) => sums[kind] > 0)
  if (present.length === 0) return undefined
  return h('dl', { class: 'parts' }, present.map((kind) => h('div', {},
    h('dt', {}, h('span', { class: `swatch frame ${kind}` }), titles[kind]),
    h('dd', {}, time(sums[kind]), h('small', {}, percent(sums[kind] / frame.ms))))))
}

/** Lists the slowest requests through a frame. @param {Frame} frame @param {DetailOptions} options */
function behind (frame, { requests, run }) {
  const ids = frame.runs[run]?.traceIds ?? []
  if (ids.length === 0) return undefined
  const items = ids.map((id) => {
    const request = requests?.(id)
    if (request === undefined) return h('li', {}, 'trace ', foreign(id, { class: 'code' }))
    return h('li', {}, h('button', { type: 'button', class: 'link', on: { click: request.open } },
      foreign(request.text)))
  })
  return h('div', { class: 'behind' }, h('h4', {}, 'Slowest requests behind it'), h('ul', {}, items))
}

module.exports = { flameDetail }
