'use strict'

// Creates all elements of the page. Text always becomes a text node, never markup.

/* global document, Node */

const { escapeInvisible } = require('./pack')

const SVG = 'http://www.w3.org/2000/svg'

/**
 * @typedef {Node | string | number | undefined | false | any[]} Child
 * @typedef {Record<string, any>} Attributes by name; `on` holds listeners, `css` custom properties
 */

/**
 * Sets attributes and appends children.
 * @param {any} element
 * @param {Attributes} attributes
 * @param {Child[]} [children]
 */
function fill (element, attributes, children = []) {
  const { on = {}, css = {}, ...others } = attributes
  for (const [name, value] of Object.entries(others)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value)
  }
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener)
  for (const [property, value] of Object.entries(css)) element.style.setProperty(property, value)
  for (const child of children.flat(Infinity)) {
    if (child instanceof Node) element.append(child)
    else if (child !== undefined && child !== false) element.append(escapeInvisible(child))
  }
  return element
}

/**
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {any} an HTMLElement
 */
function h (tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children)
}

/**
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {any} an SVGElement
 */
function s (tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children)
}

/**
 * Creates an element for text from files that isolates its writing direction from the surrounding text.
 * @param {string} text
 * @param {Attributes} [attributes]
 */
const foreign = (text, attributes = {}) => h('bdi', attributes, text)

/** @param {string} id @param {string} title @param {...Child} children */
const section = (id, title, ...children) => h('section', { id }, h('h2', {}, title), children)

/** Scrolls to a section. @param {string} id */
const moveTo = (id) => document.getElementById(id)?.scrollIntoView()

/**
 * Creates a button that looks like a link.
 * @param {Child} content
 * @param {() => void} open
 * @param {Attributes} [attributes]
 */
function link (content, open, { class: style = '', ...attributes } = {}) {
  const button = { type: 'button', class: `link ${style}`.trim(), ...attributes, on: { click: open } }
  return h('button', button, content)
}

/**
 * Lists names and values.
 * @param {Array<[Child, Child] | undefined | false>} pairs
 * @param {string} [style]
 */
function facts (pairs, style = 'facts') {
  const items = pairs.map((pair) => pair && h('div', {}, h('dt', {}, pair[0]), h('dd', {}, pair[1])))
  return h('dl', { class: style }, items)
}

/** Creates a legend of colours. @param {any[][]} entries style and text */
function legend (entries) {
  const items = entries.map(([style, ...text]) => h('li', {}, h('span', { class: `swatch ${style}` }), text))
  return h('ul', { class: 'legend' }, items)
}

/** @param {string} text @param {string} [style] */
const badge = (text, style = '') => h('span', { class: `badge ${style}` }, text)

/**
 * Creates radio buttons.
 * @param {string} title
 * @param {string} name
 * @param {string[][]} options value and text
 * @param {(value: string) => void} select
 * @param {string} [selected]
 */
function radioButtons (title, name, options, select, selected = options[0][0]) {
  const labels = options.map(([value, text]) => h('label', {}, h('input', {
    type: 'radio', name, value, checked: value === selected, on: { change: () => select(value) }
  }), h('span', {}, text)))
  return h('fieldset', { class: `choice ${name}` }, h('legend', {}, title), labels)
}

/**
 * Creates the colour scheme switch. The choice is not stored: all pages opened from files share one storage.
 */
function themes () {
  const choices = [['auto', 'Auto'], ['light', 'Light'], ['dark', 'Dark']]
  return radioButtons('Colours', 'theme', choices, (name) => {
    document.documentElement.dataset.theme = name
  })
}

/**
 * Renders a long stack: hops are emphasized, frames outside the program's own code are dimmed.
 * @param {string} text
 */
function stack (text) {
  const lines = text.split('\n').map((line) => h('span', { class: kindOf(line) }, `${line}\n`))
  return h('pre', { class: 'stack', tabindex: 0, 'aria-label': 'Stack' }, lines)
}

/** @param {string} line */
function kindOf (line) {
  if (/^\s*── /.test(line)) return 'hop'
  if (!/^\s+at /.test(line)) return 'head'
  return /\bnode:|node_modules/.test(line) ? 'foreign' : undefined
}

/** Renders a stack that is initially collapsed. @param {string | undefined} text @param {string} [title] */
const folded = (text, title = 'Stack') => text && h('details', {}, h('summary', {}, title), stack(text))

module.exports = {
  badge, facts, fill, folded, foreign, h, legend, link, moveTo, radioButtons, s, section, stack, themes
}
