'use strict'

// Creates elements; no other module does. Text always becomes a text node, a string never becomes markup.

/* global document, Node */

const { escapeInvisible } = require('./format')

const SVG = 'http://www.w3.org/2000/svg'

/**
 * @typedef {Node | string | number | undefined | false | any[]} Child
 * @typedef {Record<string, any>} Attributes by name; `on` holds listeners, `css` custom properties
 */

/** @param {Element} element @param {Attributes} attributes @param {Child[]} children */
function fill (element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    if (name === 'on') addListeners(element, value)
    else if (name === 'css') setProperties(/** @type {HTMLElement} */ (element), value)
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  add(element, children)
  return element
}

/** @param {Element} element @param {Record<string, (event: any) => void>} listeners */
function addListeners (element, listeners) {
  for (const [event, listener] of Object.entries(listeners)) element.addEventListener(event, listener)
}

/** @param {HTMLElement} element @param {Record<string, string>} properties */
function setProperties (element, properties) {
  for (const [property, value] of Object.entries(properties)) element.style.setProperty(property, value)
}

/** @param {Element} element @param {Child[]} children */
function add (element, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(element, child)
    else if (child instanceof Node) element.append(child)
    else if (child !== undefined && child !== false) element.append(escapeInvisible(child))
  }
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
 * Creates an element for text from files, whose writing direction does not affect the text around it.
 * @param {string} text
 * @param {Attributes} [attributes]
 */
function foreign (text, attributes = {}) {
  return h('bdi', attributes, text)
}

/** @param {string} id @param {string} title @param {...Child} children */
function section (id, title, ...children) {
  return h('section', { id }, h('h2', {}, title), ...children)
}

module.exports = { h, s, foreign, section }
