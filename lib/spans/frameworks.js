'use strict'

// What web frameworks tell of a request: the template of its route, and the error they answered for. Read from their
// objects when the answer is done; only Koa's context, which nothing leads to, says itself when it is given its route.
// Fastify tells by diagnostics_channel, see requests/http1.js.

const { createTag } = require('../context/tag')
const { isObject, own } = require('../objects')

const LONGEST = 512 // characters of a route
const DEEPEST = 16 // routers in routers
const ERRORS = Symbol.for('router.tracing.publishedErrors') // of the router of Express 5
const KOA = /[\\/]koa[\\/]lib[\\/]context\.js$/

/** @typedef {{ segment: string, template: string }} Part of a path: as it was asked for, and as it was declared */

/** @param {unknown} value @returns {string | undefined} a route in words: there may be several, or a regular expression */
function word (value) {
  if (typeof value === 'string') return value
  if (value instanceof RegExp) return String(value)
  return Array.isArray(value) ? value.map(word).join('|') : undefined
}

/** @param {unknown} value @returns {any} with properties that may be read */
const fields = (value) => isObject(value) || typeof value === 'function' ? value : undefined

/**
 * The route of Express, 4 and 5: it tells the part that the innermost router knows, and the path before it as it was
 * asked for. How that was declared is found where the route is, in the routers around it.
 * @param {object} request
 * @returns {string | undefined}
 */
function expressRoute (request) {
  const route = own(request, 'route')
  const path = isObject(route) ? word(own(route, 'path')) : undefined
  if (path === undefined) return undefined
  const base = own(request, 'baseUrl')
  const before = typeof base === 'string' ? base : ''
  return join(before === '' ? '' : mountOf(request, /** @type {object} */ (route), before) ?? before, path)
}

/** @param {string} base @param {string} path */
function join (base, path) {
  return base !== '' && path === '/' ? base : `${base}${path.startsWith('/') || base === '' ? '' : '/'}${path}`
}

/** How what is before a route was declared. @param {object} request @param {object} route @param {string} base */
function mountOf (request, route, base) {
  const apps = []
  // Object.create()d: `app` is a property of the prototype that Express gave the request
  for (let app = fields(/** @type {any} */ (request).app); app !== undefined && apps.length < DEEPEST; app = fields(app.parent)) apps.unshift(app)
  const mounts = apps.slice(1).map((app) => word(app.mountpath) ?? '')
  const router = routerOf(apps[apps.length - 1])
  if (router === undefined) return undefined
  const inside = base.split('/').slice(mounts.join('').split('/').length).join('/')
  const found = search(router, route, inside === '' ? '' : `/${inside}`, 0)
  return found === undefined ? undefined : `${mounts.join('')}${found}`
}

/** Express 5 makes it with the first route, in a getter; that of Express 4 throws. @param {any} app */
function routerOf (app) {
  return app === undefined ? undefined : fields(own(app, '_router')) ?? fields(app.router)
}

/**
 * @param {any} router
 * @param {object} route
 * @param {string} base what is left of the path before the route
 * @param {number} depth
 * @returns {string | undefined} how that was declared
 */
function search (router, route, base, depth) {
  const stack = own(router, 'stack')
  if (!Array.isArray(stack) || depth > DEEPEST) return undefined
  for (const layer of stack) {
    if (own(layer, 'route') === route) {
      if (base === '') return ''
      continue
    }
    const inner = own(layer, 'handle')
    if (typeof inner !== 'function' || !Array.isArray(own(inner, 'stack'))) continue
    const part = partOf(layer, base)
    const rest = part === undefined ? undefined : search(inner, route, base.slice(part.segment.length), depth + 1)
    if (rest !== undefined) return `${part?.template}${rest}`
  }
  return undefined
}

/** What a layer takes of a path. @param {object} layer @param {string} base @returns {Part | undefined} */
function partOf (layer, base) {
  const raw = own(layer, 'rawPath') // router 2.3
  const matchers = own(layer, 'matchers')
  if (raw !== undefined && Array.isArray(matchers)) return declared(Array.isArray(raw) ? raw : [raw], matchers, base)
  const regexp = own(layer, 'regexp') // Express 4
  if (regexp instanceof RegExp) return undone(regexp, own(layer, 'keys'), base)
  return base === '' || own(layer, 'slash') === true ? { segment: '', template: '' } : undefined
}

/** @param {unknown[]} paths @param {Function[]} matchers @param {string} base @returns {Part | undefined} */
function declared (paths, matchers, base) {
  for (let i = 0; i < paths.length; i++) {
    if (paths[i] === '/') return { segment: '', template: '' }
    const match = matchers[i](base === '' ? '/' : base)
    if (match) return { segment: String(match.path).replace(/\/$/, ''), template: String(word(paths[i])).replace(/\/$/, '') }
  }
  return undefined
}

/**
 * Express 4 keeps the regular expression alone: what its groups matched gets the names of its keys.
 * @param {RegExp} regexp
 * @param {unknown} keys
 * @param {string} base
 * @returns {Part | undefined}
 */
function undone (regexp, keys, base) {
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
 * The error that Express answered for: its router notes what it was passed.
 * @param {object} request
 * @returns {unknown}
 */
function expressError (request) {
  const seen = own(request, ERRORS)
  return seen instanceof Set ? [...seen].pop() : undefined
}

/** The context that Koa made for a request @type {ReturnType<typeof createTag<WeakRef<object>>>} */
const koaContexts = createTag()
let hasKoaContexts = false

/**
 * @koa/router writes the template to the context, to which nothing leads from the request. A setter on the context's
 * prototype sees that; the context gets the very property it would have had.
 */
function createKoaRoutes () {
  /** @type {Set<any>} */
  const prototypes = new Set()
  /** @type {WeakSet<object>} */
  const servers = new WeakSet()
  const property = {
    configurable: true,
    enumerable: false,
    get: () => undefined,
    /** @this {any} @param {unknown} value */
    set (value) {
      Object.defineProperty(this, '_matchedRoute', { value, writable: true, enumerable: true, configurable: true })
      try {
        const request = own(this, 'req')
        if (!isObject(request)) return
        koaContexts.write(request, new WeakRef(this))
        hasKoaContexts = true
      } catch {}
    }
  }

  return {
    /** A server is seen at work: if the program has Koa, it is loaded by now. @param {object} server */
    observeServer (server) {
      if (servers.has(server)) return
      servers.add(server)
      for (const file of Object.keys(require.cache)) if (KOA.test(file)) this.extend(require.cache[file]?.exports)
    },

    /** @param {any} prototype of Koa's contexts */
    extend (prototype) {
      if (!isObject(prototype) || prototypes.has(prototype) || '_matchedRoute' in prototype) return
      if (Reflect.defineProperty(prototype, '_matchedRoute', property)) prototypes.add(prototype)
    },

    disable () {
      for (const prototype of prototypes) {
        if (Object.getOwnPropertyDescriptor(prototype, '_matchedRoute')?.set === property.set) delete prototype._matchedRoute
      }
      prototypes.clear()
    },

    /** @param {object} request @returns {string | undefined} */
    routeOf (request) {
      const context = hasKoaContexts ? koaContexts.read(request)?.deref() : undefined
      return context === undefined ? undefined : word(own(context, '_matchedRoute'))
    }
  }
}

/** @param {unknown} route @returns {string | undefined} */
function routeText (route) {
  return word(route)?.slice(0, LONGEST) || undefined
}

module.exports = { createKoaRoutes, expressError, expressRoute, routeText }
