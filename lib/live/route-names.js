'use strict'

// Names of routes: the template that a framework has, else the path, in which what looks like one of many is
// replaced. Remembered, since they are needed for each request.

const requests = require('../context/request-names')
const { isObject, own } = require('../objects')
const { nameOfMethod, nameOfPath } = require('../spans/path-names')

const MAX_NAMES = 2048 // of paths
const MAX_MOUNTS = 64 // of a route

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
  /** by number of the name with the path @type {Map<number, string>} */
  let pathNames = new Map()
  /** by route of Express, then method and path before it @type {WeakMap<object, Map<string, string>>} */
  const routeNames = new WeakMap()

  /** @param {string} method @param {string} url */
  function byPath (method, url) {
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

    /** Returns the name of a request that was answered. @param {object} request @param {Asked} asked */
    ofAnswered (request, { method, url, route: reported }) {
      if (reported !== undefined) return byTemplate(method, reported)
      const route = own(request, 'route')
      if (isObject(route)) return byRoute(request, route, method) ?? byPath(method, url)
      const text = koaRoute(request)
      return text === undefined ? byPath(method, url) : byTemplate(method, text)
    }
  }
}

/** @param {string} method @param {string} template */
const byTemplate = (method, template) => `${nameOfMethod(method)} ${template}`

module.exports = { createRouteNames }
