'use strict'

// The only place where elements are made. Text becomes a text node, always; there is no way from a string to markup.

/* global document, Node */

const { shown } = require('./format')

const SVG = 'http://www.w3.org/2000/svg'

/**
 * @typedef {Node | string | number | undefined | false | any[]} Child
 * @typedef {Record<string, any>} Attributes names of attributes; `on` holds listeners, `css` custom properties
 */

/** @param {Element} element @param {Attributes} attributes @param {Child[]} children */
function fill (element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    if (name === 'on') for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener)
    else if (name === 'css') for (const [property, one] of Object.entries(value)) /** @type {HTMLElement} */ (element).style.setProperty(property, one)
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  add(element, children)
  return element
}

/** @param {Element} element @param {Child[]} children */
function add (element, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(element, child)
    else if (child instanceof Node) element.append(child)
    else if (child !== undefined && child !== false) element.append(shown(child))
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

/** Foreign text in a line of others: its direction stays its own. @param {string} text @param {Attributes} [attributes] */
function foreign (text, attributes = {}) {
  return h('bdi', attributes, text)
}

/** @param {string} id @param {string} title @param {...Child} children */
function section (id, title, ...children) {
  return h('section', { id }, h('h2', {}, title), ...children)
}

module.exports = { h, s, foreign, section }
