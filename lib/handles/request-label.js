'use strict'

// Label of a request. Reads only own data properties, so no getter or proxy of the program runs.

const { shortMethod } = require('../core/request-names')
const { hostHeaderOf } = require('../node-objects')
const { clean, cutCredentials } = require('../text')
const { hidden, own, textOf } = require('../objects')

const MAX_CHARS = 256 // of host and path

/**
 * Returns method, host and path, never a query string or credentials.
 * @param {object} request a ClientRequest, IncomingMessage or undici request
 * @returns {string}
 */
function requestLabel (request) {
  const method = textOf(own(request, 'method')) ?? 'GET'
  const origin = textOf(own(request, 'origin'))
  const host = hostHeaderOf(request)
  const protocol = textOf(own(request, 'protocol')) ?? 'http:'
  const place = origin ?? (host === undefined ? '' : `${protocol}//${host}`)
  const path = textOf(own(request, 'path') ?? hidden(request, 'kPath')) ?? textOf(own(request, 'url')) ?? ''
  // A request to a proxy has a whole URL as its path.
  const address = /^[a-z][\w+.-]*:\/\//i.test(path) ? path : `${place}${path}`
  const text = cutCredentials(address.replace(/[?#].*$/s, ''))
  const short = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}\u2026` : text
  return clean(`${shortMethod(method)} ${short}`)
}

module.exports = { requestLabel }
