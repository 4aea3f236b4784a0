'use strict'

// The JSON of the first attributes of requests that come again. Hot path: bench/run.js, longstack-spans.

const { member } = require('../encoding/json')

const MAX_ENTRIES = 1000
const MAX_PATH = 256 // characters
const PREPARED_KEYS = 8 // attributes of a fully known request: five here, three that span-json.js adds

/**
 * @typedef {object} Entry
 * @property {string} scheme
 * @property {string} address
 * @property {number} port
 * @property {Uint8Array | undefined} json from the second such request on
 */

/** by method and path, or the path alone for GET @type {Map<string, Entry>} */
let entries = new Map()

/**
 * Returns the JSON of the first five attributes of a request, with what comes before the sixth; undefined for
 * the first such request.
 * @param {string} method
 * @param {string} path
 * @param {string} scheme
 * @param {string} address
 * @param {number} port
 * @returns {Uint8Array | undefined}
 */
function preparedAttributes (method, path, scheme, address, port) {
  if (path.length > MAX_PATH) return undefined
  const key = method === 'GET' ? path : `${method} ${path}`
  const entry = entries.get(key)
  if (entry === undefined || entry.port !== port || entry.address !== address || entry.scheme !== scheme) {
    if (entries.size >= MAX_ENTRIES) entries = new Map()
    entries.set(key, { scheme, address, port, json: undefined })
    return undefined
  }
  entry.json ??= jsonOf(method, path, entry)
  return entry.json
}

/** @param {string} method @param {string} path @param {Entry} entry @returns {Uint8Array} */
function jsonOf (method, path, { scheme, address, port }) {
  const members = [
    member('http.request.method', method),
    member('url.path', path),
    member('url.scheme', scheme),
    member('server.address', address),
    member('server.port', port)
  ]
  return Buffer.from(`${members.join()},"network.peer.address":`, 'latin1')
}

module.exports = { PREPARED_KEYS, preparedAttributes }
