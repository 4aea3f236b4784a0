'use strict'

// Request names: `GET /config`, with a framework's route instead of the path, or with the pattern that
// path-names.js derives from it. Most requests repeat, so the record of a server's request (records.js) holds
// the number of a name with the whole path. Never kept: query strings, credentials, texts beyond MAX_PATH.

const { cutCredentials } = require('../text')

const MAX_NUMBERS = 1 << 12 // distinct names; older ones stay valid for as many more. A power of two
const MAX_NAMES = 1000
const MAX_PATH = 200 // characters of a path
const MAX_METHOD = 32 // characters of a method: HTTP/2 clients can make them up

/**
 * Bounded cache by method and path. One combined key made spans a tenth more expensive (bench/run.js, hello
 * with spans).
 * @template Value
 */
class ByMethod {
  /** @type {Map<string, Map<string, Value>>} */
  #values = new Map()
  #size = 0
  #maxSize

  /** @param {number} maxSize */
  constructor (maxSize) {
    this.#maxSize = maxSize
  }

  /** @param {string} method @param {string} path @returns {Value | undefined} */
  get (method, path) {
    return this.#values.get(method)?.get(path)
  }

  /** @param {string} method @param {string} path @param {Value} value */
  set (method, path, value) {
    if (this.#size >= this.#maxSize) {
      this.#values = new Map()
      this.#size = 0
    }
    this.#size++
    const values = this.#values.get(method)
    if (values === undefined) this.#values.set(method, new Map([[path, value]]))
    else values.set(path, value)
    return value
  }
}

/** @type {ByMethod<number>} */
const numbers = new ByMethod(MAX_NUMBERS)
/** by template: route, or path with `*` @type {ByMethod<string>} */
const names = new ByMethod(MAX_NAMES)
/** @type {string[]} */
const texts = []
let last = 0

/**
 * @param {string} method
 * @param {string} url as requested
 * @returns {number} of the name, above 0
 */
function numberOf (method, url) {
  return numberOfPath(method, pathOf(url))
}

/** @param {string} method @param {string} wholePath @returns {number} */
function numberOfPath (method, wholePath) {
  const path = wholePath.length > MAX_PATH ? `${wholePath.slice(0, MAX_PATH)}\u2026` : wholePath
  const verb = shortMethod(method)
  return numbers.get(verb, path) ?? numbers.set(verb, copyOf(path), add(`${verb} ${path}`))
}

/** @param {string} method @returns {string} */
const shortMethod = (method) => {
  return method.length > MAX_METHOD ? copyOf(`${method.slice(0, MAX_METHOD)}\u2026`) : method
}

/**
 * Copies a substring, which would keep its whole string alive (V8's SlicedString, src/objects/string.h).
 * @param {string} text
 */
const copyOf = (text) => ` ${text}`.slice(1)

/** @param {string} text @returns {number} */
function add (text) {
  last = last % 0x7fffffff + 1
  texts[last & (2 * MAX_NUMBERS - 1)] = copyOf(text)
  return last
}

/** @param {number} number @returns {string | undefined} */
function textAt (number) {
  const isValid = number > 0 && number <= last && last - number < 2 * MAX_NUMBERS
  return isValid ? texts[number & (2 * MAX_NUMBERS - 1)] : undefined
}

/**
 * Returns the name of a request with its route instead of its path.
 * @param {number} number of the name
 * @param {string} route reported by a framework
 * @returns {number}
 */
function withRoute (number, route) {
  const text = textAt(number)
  if (text === undefined) return number
  return numberOfPath(text.slice(0, text.indexOf(' ')), withoutQuery(route))
}

/** Returns a name; equal names share one string. @param {string} method @param {string} template */
function requestName (method, template) {
  return names.get(method, template) ??
    names.set(method, template, `${require('../path-names').nameOfMethod(method)} ${template}`)
}

/** Returns the name of a request whose route is unknown. @param {string} method @param {string} url */
function nameOfUrl (method, url) {
  return requestName(method, require('../path-names').nameOfPath(pathOf(url)))
}

/**
 * Returns the path alone, without a proxy request's host, credentials and query string.
 * @param {string} url
 */
const pathOf = (url) => cutCredentials(withoutQuery(url))

/** @param {string} url */
function withoutQuery (url) {
  const host = url.startsWith('/') ? null : /^[a-z][\w+.-]*:\/\/[^/?#]*/i.exec(url)
  const start = host === null ? 0 : host[0].length
  const end = endOf(url)
  return host !== null && end === start ? '/' : url.slice(start, end)
}

/** @param {string} url @returns {number} end index of the path */
function endOf (url) {
  const query = url.indexOf('?')
  const hash = url.indexOf('#')
  if (query === -1) return hash === -1 ? url.length : hash
  return hash === -1 || query < hash ? query : hash
}

/** prototype of unmodified requests: their properties are Node's @type {object | undefined} */
let nodePrototype

/** Returns whether reading a request's properties runs no code of the program. @param {object} request */
function hasNodePrototype (request) {
  nodePrototype ??= require('node:http').IncomingMessage.prototype
  return Object.getPrototypeOf(request) === nodePrototype
}

module.exports = {
  hasNodePrototype, nameOfUrl, numberOf, pathOf, requestName, shortMethod, textAt, withRoute
}
