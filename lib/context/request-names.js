'use strict'

// The requests that servers got, in words: `GET /config`. A record of a request (records.js) has the number
// of its words, for most requests come again and again. Bounded: the words of requests that came long ago are
// not known any more.
//
// No query string, and no text longer than LENGTH, is kept.

const TEXTS = 1 << 12 // distinct ones, before they are noted anew; those noted before are known for as many more. A power of two
const LENGTH = 200 // characters of a path
const METHOD = 32 // characters of a method: HTTP/2 lets a client make them up

/** number of the words of a path, by method @type {Map<string, Map<string, number>>} */
let known = new Map()
let size = 0
/** @type {string[]} */
const texts = []
let last = 0

/**
 * @param {string} method
 * @param {string} url as it was asked for
 * @returns {number} of the words, above 0
 */
function numberOf (method, url) {
  const path = pathOf(url)
  const verb = shortMethod(method)
  const number = known.get(verb)?.get(path)
  if (number !== undefined) return number
  if (size >= TEXTS) forget()
  let numbers = known.get(verb)
  if (numbers === undefined) known.set(verb, numbers = new Map())
  const added = add(`${verb} ${path}`)
  numbers.set(copyOf(path), added)
  size++
  return added
}

/** @param {string} method @returns {string} */
const shortMethod = (method) => method.length > METHOD ? copyOf(`${method.slice(0, METHOD)}\u2026`) : method

/**
 * A part keeps the whole text of which it is one (V8's SlicedString, src/objects/string.h).
 * @param {string} text
 */
const copyOf = (text) => ` ${text}`.slice(1)

/**
 * what requests descend from that a program did not make its own: their properties are Node's
 * @type {object | undefined}
 */
let plain

/** Says whether what Node set on a request can be read plainly. @param {object} request */
function hasNodePrototype (request) {
  plain ??= require('node:http').IncomingMessage.prototype
  return Object.getPrototypeOf(request) === plain
}

/** @param {string} text @returns {number} */
function add (text) {
  last = last % 0x7fffffff + 1
  texts[last & (2 * TEXTS - 1)] = copyOf(text)
  return last
}

function forget () {
  known = new Map()
  size = 0
}

/** @param {number} number @returns {string | undefined} */
function textAt (number) {
  return number > 0 && number <= last && last - number < 2 * TEXTS ? texts[number & (2 * TEXTS - 1)] : undefined
}

/**
 * @param {number} number of the words of a request
 * @param {string} route that a framework told
 * @returns {number}
 */
function withRoute (number, route) {
  const text = textAt(number)
  if (text === undefined) return number
  return numberOf(text.slice(0, text.indexOf(' ')), route)
}

/** The path alone: of a request to a proxy without the host, of none a query string. @param {string} url */
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
