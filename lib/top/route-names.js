'use strict'

// Names of routes: the template that a framework has, else the path, in which what looks like one of many is
// replaced. Remembered, since they are needed for each request.

const requests = require('../context/request-names')
const { isObject, own } = require('../objects')
const { nameOfMethod, nameOfPath } = require('../path-names')

const MAX_NAMES = 2048 // of paths
const MAX_MOUNTS = 64 // of a route
const MAX_URL = 200 // characters of one that is remembered

/**
 * @typedef {ReturnType<typeof createRouteNames>} RouteNames
 * @typedef {{ method: string, url: string, route: string | undefined }} Asked route: that Fastify reports
 */

/**
 * @param {object} deps
 * @param {(request: object) => string | undefined} deps.expressRoute
 * @param {(request: object) => string | undefined} deps.koaRoute
 */
function createRouteNames ({ expressRoute, koaRoute }) {
  /** by method, then URL as it was asked for @type {Map<string, Map<string, string>>} */
  let urlNames = new Map()
  let urlCount = 0
  /** by number of the name with the path @type {Map<number, string>} */
  let pathNames = new Map()
  /** by route of Express, then method and path before it @type {WeakMap<object, Map<string, string>>} */
  const routeNames = new WeakMap()

  /** @param {string} method @param {string} url */
  function byPath (method, url) {
    const name = urlNames.get(method)?.get(url)
    return name === undefined ? findByPath(method, url) : name
  }

  /** @param {string} method @param {string} url */
  function findByPath (method, url) {
    const name = nameByNumber(method, url)
    if (url.length > MAX_URL || url.includes('?')) return name // it will not come again as it is
    if (urlCount >= MAX_NAMES) {
      urlNames = new Map()
      urlCount = 0
    }
    const names = urlNames.get(method) ?? new Map()
    urlNames.set(method, names.set(url, name))
    urlCount++
    return name
  }

  /** @param {string} method @param {string} url */
  function nameByNumber (method, url) {
    const number = requests.numberOf(method, url)
    let name = pathNames.get(number)
    if (name !== undefined) return name
    const text = requests.textAt(number) ?? ''
    name = byTemplate(method, nameOfPath(text.slice(text.indexOf(' ') + 1)))
    if (pathNames.size >= MAX_NAMES) pathNames = new Map()
    pathNames.set(number, name)
    return name
  }

  /** @param {object} request @param {object} route @param {string} method */
  function byRoute (request, route, method) {
    const base = own(request, 'baseUrl')
    const key = typeof base === 'string' && base !== '' ? `${method} ${base}` : method
    let names = routeNames.get(route)
    if (names === undefined || names.size >= MAX_MOUNTS) routeNames.set(route, names = new Map())
    const existing = names.get(key)
    if (existing !== undefined) return existing
    const text = expressRoute(request)
    if (text === undefined) return undefined
    const name = byTemplate(method, text)
    names.set(key, name)
    return name
  }

  return {
    byPath,

    /** Returns the name of a request in flight. @param {Asked} asked */
    ofOpen: ({ method, url, route }) => route === undefined ? byPath(method, url) : byTemplate(method, route),

    /** Returns the name of an answered request. @param {object} request @param {Asked} asked */
    ofAnswered (request, { method, url, route: reported }) {
      if (reported !== undefined) return byTemplate(method, reported)
      const isPlain = requests.hasNodePrototype(request)
      const route = isPlain ? /** @type {any} */ (request).route : own(request, 'route')
      const name = isObject(route) ? byRoute(request, route, method) : undefined
      if (name !== undefined) return name
      const text = koaRoute(request)
      return text === undefined ? byPath(method, url) : byTemplate(method, text)
    }
  }
}

/** @param {string} method @param {string} template */
const byTemplate = (method, template) => `${nameOfMethod(method)} ${template}`

module.exports = { createRouteNames }
