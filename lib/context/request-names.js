'use strict'

// Names of the requests that servers received: `GET /config`. The record of a request (records.js) holds the
// number of its name, since most requests repeat. Bounded: names of requests received long ago are forgotten.
//
// No query string, and no text longer than LENGTH, is kept.

// Distinct names before numbering starts again; older numbers stay valid for as many more. A power of two
const TEXTS = 1 << 12
const LENGTH = 200 // characters of a path
const METHOD = 32 // characters of a method: HTTP/2 lets a client make them up

/** numbers of names, by method, then path @type {Map<string, Map<string, number>>} */
let numbersByMethod = new Map()
let size = 0
/** @type {string[]} */
const texts = []
let last = 0

/**
 * @param {string} method
 * @param {string} url as it was asked for
 * @returns {number} of the name, above 0
 */
function numberOf (method, url) {
  const path = pathOf(url)
  const verb = shortMethod(method)
  const number = numbersByMethod.get(verb)?.get(path)
  if (number !== undefined) return number
  if (size >= TEXTS) forget()
  let numbers = numbersByMethod.get(verb)
  if (numbers === undefined) numbersByMethod.set(verb, numbers = new Map())
  const added = add(`${verb} ${path}`)
  numbers.set(copyOf(path), added)
  size++
  return added
}

/** @param {string} method @returns {string} */
const shortMethod = (method) => method.length > METHOD ? copyOf(`${method.slice(0, METHOD)}\u2026`) : method

/**
 * Copies a substring, which would keep its whole string alive (V8's SlicedString, src/objects/string.h).
 * @param {string} text
 */
const copyOf = (text) => ` ${text}`.slice(1)

/**
 * Prototype of requests that no program replaced: their properties are Node's.
 * @type {object | undefined}
 */
let nodePrototype

/**
 * Returns whether reading properties of a request runs no code of the program.
 * @param {object} request
 */
function hasNodePrototype (request) {
  nodePrototype ??= require('node:http').IncomingMessage.prototype
  return Object.getPrototypeOf(request) === nodePrototype
}

/** @param {string} text @returns {number} */
function add (text) {
  last = last % 0x7fffffff + 1
  texts[last & (2 * TEXTS - 1)] = copyOf(text)
  return last
}

function forget () {
  numbersByMethod = new Map()
  size = 0
}

/** @param {number} number @returns {string | undefined} */
function textAt (number) {
  const isValid = number > 0 && number <= last && last - number < 2 * TEXTS
  return isValid ? texts[number & (2 * TEXTS - 1)] : undefined
}

/**
 * Returns the name of a request with its route in place of its path.
 * @param {number} number of the name
 * @param {string} route that a framework reported
 * @returns {number}
 */
function withRoute (number, route) {
  const text = textAt(number)
  if (text === undefined) return number
  return numberOf(text.slice(0, text.indexOf(' ')), route)
}

/**
 * Returns the path alone, without the host of a request to a proxy and without a query string.
 * @param {string} url
 */
function pathOf (url) {
  let start = 0
  if (!url.startsWith('/') && url !== '*') {
    const host = url.indexOf('://')
    if (host !== -1) start = url.indexOf('/', host + '://'.length)
    if (start === -1) return '/'
  }
  const end = endOf(url)
  if (end < start) return '/'
  return end - start > LENGTH ? `${url.slice(start, start + LENGTH)}\u2026` : url.slice(start, end)
}

/** @param {string} url @returns {number} where its path ends */
function endOf (url) {
  const query = url.indexOf('?')
  const hash = url.indexOf('#')
  if (query === -1) return hash === -1 ? url.length : hash
  return hash === -1 || query < hash ? query : hash
}

module.exports = { hasNodePrototype, numberOf, withRoute, shortMethod, textAt }
