'use strict'

// Route template of a request, and the error that a web framework responded to. Both are read from the
// framework's objects when the response is finished. Only Koa's context is noted when its route is set, since
// no reference leads to it. Fastify reports through diagnostics_channel.

const { types } = require('node:util')
const { on } = require('../core/on')
const { source } = require('../core/source')
const { createTag } = require('../core/tag')
const { isObject, own } = require('../objects')
const { nameOfPath } = require('../path-names')
const { cutCredentials } = require('../text')

const MAX_ROUTE = 512 // characters
const MAX_DEPTH = 16 // nested routers
const MAX_MOUNTS = 64 // per route
const PUBLISHED_ERRORS = Symbol.for('router.tracing.publishedErrors') // set by the router of Express 5
const KOA = /[\\/]koa[\\/]lib[\\/]context\.js$/

/** @typedef {{ segment: string, template: string }} Part of a path: as requested, and as declared */

/**
 * Returns a route as text. A route may be a regular expression or a list.
 * @param {unknown} value
 * @returns {string | undefined}
 */
function textOfRoute (value) {
  if (typeof value === 'string') return value
  if (types.isRegExp(value)) return String(value)
  return Array.isArray(value) ? value.map(textOfRoute).join('|') : undefined
}

/** Returns a value if its properties may be read. @param {unknown} value @returns {any} */
const fields = (value) => isObject(value) || typeof value === 'function' ? value : undefined

/**
 * Express routes as text, by route object, then by base path as requested.
 * @type {WeakMap<object, Map<string, string>>}
 */
const expressRoutes = new WeakMap()

/**
 * Returns the route in Express 4 and 5. A request has the path declared in the innermost router, and the base
 * path as requested; the outer routers have the declaration of the base path.
 * @param {object} request
 * @returns {string | undefined}
 */
function expressRoute (request) {
  const route = own(request, 'route')
  const path = isObject(route) ? textOfRoute(own(route, 'path')) : undefined
  if (path === undefined) return undefined
  const base = own(request, 'baseUrl')
  if (typeof base !== 'string' || base === '') return join('', path)
  let routes = expressRoutes.get(route)
  if (routes === undefined || routes.size >= MAX_MOUNTS) expressRoutes.set(route, routes = new Map())
  let text = routes.get(base)
  text ??= join(mountOf(request, route, base) ?? nameOfPath(cutCredentials(base)), path)
  routes.set(base, text)
  return text
}

/** @param {string} base @param {string} path */
function join (base, path) {
  if (base !== '' && path === '/') return base
  return `${base}${path.startsWith('/') || base === '' ? '' : '/'}${path}`
}

/**
 * Returns the base path of a route as declared.
 * @param {object} request
 * @param {object} route
 * @param {string} base
 */
function mountOf (request, route, base) {
  const apps = []
  // `app` is a property of the prototype that Express gave the request.
  let app = fields(/** @type {any} */ (request).app)
  for (; app !== undefined && apps.length < MAX_DEPTH; app = fields(app.parent)) apps.unshift(app)
  const mounts = apps.slice(1).map((inner) => textOfRoute(inner.mountpath) ?? '')
  const router = routerOf(apps[apps.length - 1])
  if (router === undefined) return undefined
  const remainingPath = base.split('/').slice(mounts.join('').split('/').length).join('/')
  const declared = declarationOf(router, route, remainingPath === '' ? '' : `/${remainingPath}`, 0)
  return declared === undefined ? undefined : `${mounts.join('')}${declared}`
}

/**
 * Returns the router. Express 5 creates it with the first route, in a getter; the getter of Express 4 throws.
 * @param {any} app
 */
function routerOf (app) {
  return app === undefined ? undefined : fields(own(app, '_router')) ?? fields(app.router)
}

/**
 * Searches a router for a route.
 * @param {any} router
 * @param {object} route
 * @param {string} base rest of the base path
 * @param {number} depth
 * @returns {string | undefined} that path as declared
 */
function declarationOf (router, route, base, depth) {
  const stack = own(router, 'stack')
  if (!Array.isArray(stack) || depth > MAX_DEPTH) return undefined
  for (const layer of stack) {
    if (own(layer, 'route') === route) {
      if (base === '') return ''
      continue
    }
    const inner = own(layer, 'handle')
    if (typeof inner !== 'function' || !Array.isArray(own(inner, 'stack'))) continue
    const part = partOf(layer, base)
    if (part === undefined) continue
    const remainder = declarationOf(inner, route, base.slice(part.segment.length), depth + 1)
    if (remainder !== undefined) return `${part.template}${remainder}`
  }
  return undefined
}

/**
 * Returns the part of a path that a layer matches.
 * @param {object} layer
 * @param {string} base
 * @returns {Part | undefined}
 */
function partOf (layer, base) {
  const raw = own(layer, 'rawPath') // router 2.3
  const matchers = own(layer, 'matchers')
  if (raw !== undefined && Array.isArray(matchers)) {
    return partByMatchers(Array.isArray(raw) ? raw : [raw], matchers, base)
  }
  const regexp = own(layer, 'regexp') // Express 4
  if (types.isRegExp(regexp)) return partByRegExp(regexp, own(layer, 'keys'), base)
  return base === '' || own(layer, 'slash') === true ? { segment: '', template: '' } : undefined
}

/** @param {unknown[]} paths @param {Function[]} matchers @param {string} base @returns {Part | undefined} */
function partByMatchers (paths, matchers, base) {
  for (let i = 0; i < paths.length; i++) {
    if (paths[i] === '/') return { segment: '', template: '' }
    const match = matchers[i](base === '' ? '/' : base)
    if (!match) continue
    const template = String(textOfRoute(paths[i])).replace(/\/$/, '')
    return { segment: String(match.path).replace(/\/$/, ''), template }
  }
  return undefined
}

/**
 * Returns the same for Express 4, which keeps only the regular expression. The names of its keys replace the
 * text that its groups matched.
 * @param {RegExp} regexp
 * @param {unknown} keys
 * @param {string} base
 * @returns {Part | undefined}
 */
function partByRegExp (regexp, keys, base) {
  if (own(regexp, 'fast_slash') === true) return { segment: '', template: '' }
  const match = new RegExp(regexp.source, `${regexp.flags.replace(/[dgy]/g, '')}d`).exec(base)
  if (match === null || match.index !== 0) return undefined
  const names = Array.isArray(keys) ? keys.map((key) => own(key, 'name')) : []
  let template = match[0]
  const groups = /** @type {any} */ (match).indices ?? []
  for (let i = groups.length - 1; i > 0; i--) {
    if (groups[i] === undefined || names[i - 1] === undefined) continue
    template = `${template.slice(0, groups[i][0])}:${String(names[i - 1])}${template.slice(groups[i][1])}`
  }
  return { segment: match[0].replace(/\/$/, ''), template: template.replace(/\/$/, '') }
}

/**
 * Returns the error that Express responded to. Its router records the errors passed to it.
 * @param {object} request
 * @returns {unknown}
 */
function expressError (request) {
  const errors = own(request, PUBLISHED_ERRORS)
  return types.isSet(errors) ? [...errors].pop() : undefined
}

/** The context that Koa created for a request. @type {ReturnType<typeof createTag<WeakRef<object>>>} */
const koaContexts = createTag()

// Koa's router writes the template to the context, which is not reachable from the request. A setter on the
// context's prototype observes this; the context still gets the same property as without the setter.

/** prototypes of Koa's contexts @type {Set<any>} */
const prototypes = new Set()
/** servers already checked @type {WeakSet<object>} */
let servers = new WeakSet()
const matchedRoute = {
  configurable: true,
  enumerable: false,
  get: () => undefined,
  /** @this {any} @param {unknown} value */
  set (value) {
    const plainProperty = { value, writable: true, enumerable: true, configurable: true }
    Object.defineProperty(this, '_matchedRoute', plainProperty)
    try {
      const request = own(this, 'req')
      if (isObject(request)) koaContexts.write(request, new WeakRef(this))
    } catch {}
  }
}

/** @param {any} prototype of Koa's contexts */
function extend (prototype) {
  if (!isObject(prototype) || prototypes.has(prototype) || '_matchedRoute' in prototype) return
  if (Reflect.defineProperty(prototype, '_matchedRoute', matchedRoute)) prototypes.add(prototype)
}

/**
 * Looks for Koa when a server gets a request: a program that uses Koa has loaded it by now.
 * @param {object} server
 */
function observeServer (server) {
  if (servers.has(server)) return
  servers.add(server)
  for (const file of Object.keys(require.cache)) if (KOA.test(file)) extend(require.cache[file]?.exports)
}

/** Restores the prototypes when tracing is disabled. */
function disable () {
  for (const prototype of prototypes) {
    const present = Object.getOwnPropertyDescriptor(prototype, '_matchedRoute')
    if (present?.set === matchedRoute.set) delete prototype._matchedRoute
  }
  prototypes.clear()
  servers = new WeakSet()
}

/** @param {object} request @returns {string | undefined} */
function koaRoute (request) {
  const context = koaContexts.read(request)?.deref()
  return context === undefined ? undefined : textOfRoute(own(context, '_matchedRoute'))
}

/** Returns the route of a request in Express or Koa. @param {object} request */
const routeTextOf = (request) => routeText(expressRoute(request) ?? koaRoute(request))

/** Returns a route as recorded. @param {unknown} route @returns {string | undefined} */
function routeText (route) {
  return textOfRoute(route)?.slice(0, MAX_ROUTE) || undefined
}

on('stopped', disable)
Object.assign(source, { routeTextOf })

module.exports = { expressError, observeServer, routeText, routeTextOf }
