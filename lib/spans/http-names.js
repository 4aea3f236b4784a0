'use strict'

// Methods, paths, hosts and names of requests, from what Node's objects and headers hold. No query string is
// kept.

const { shortMethod } = require('../context/request-names')
const { nameOfMethod } = require('../path-names')

const MAX_PATH = 2048 // characters of a path
const MAX_NAMES = 1000 // of requests, kept

/** @typedef {{ address?: string, port?: number }} Host */

/** Returns a string that is not empty. @param {unknown} value */
const textOf = (value) => typeof value === 'string' && value !== '' ? value : undefined

/** @param {unknown} value @returns {string | undefined} */
const methodOf = (value) => typeof value === 'string' && value !== '' ? shortMethod(value) : undefined

/** @param {unknown} url @returns {string | undefined} */
function pathOf (url) {
  const path = textOf(url)
  if (path === undefined) return undefined
  const hasMore = !path.startsWith('/') || path.includes('?') || path.includes('#')
  if (!hasMore && path.length < MAX_PATH) return path
  return path.replace(/^[a-z][\w+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '').slice(0, MAX_PATH)
}

/** The last text that was parsed, and its host. */
let lastText = ''
/** @type {Host} */
let lastHost = {}

/** Parses a host with its port. @param {string | undefined} text @returns {Host} */
function hostOf (text) {
  if (text === undefined) return {}
  if (text === lastText) return lastHost
  lastText = text
  const parts = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(text)
  lastHost = {}
  if (parts === null) return lastHost
  const port = parts[2] === undefined ? undefined : Number(parts[2])
  lastHost = { address: textOf(parts[1].replace(/^\[|\]$/g, '')), port }
  return lastHost
}

/**
 * Names by method and path or route, so that equal ones are one text.
 * @type {Map<string, Map<string, string>>}
 */
let names = new Map()
let nameCount = 0

/** @param {string} method @param {string} path or route @returns {string} */
function requestName (method, path) {
  const cached = names.get(method)?.get(path)
  if (cached !== undefined) return cached
  if (nameCount++ >= MAX_NAMES) {
    names = new Map()
    nameCount = 0
  }
  let namesOfMethod = names.get(method)
  if (namesOfMethod === undefined) names.set(method, namesOfMethod = new Map())
  const name = `${nameOfMethod(method)} ${path}`
  namesOfMethod.set(path, name)
  return name
}

module.exports = { hostOf, methodOf, pathOf, requestName, textOf }
