'use strict'

// A request in words. Own data properties only: what the program has put in their way is not run.

const { shortMethod } = require('../core/request-names')
const { hostHeaderOf } = require('../node-objects')
const { clean, cutCredentials } = require('../text')
const { hidden, own, textOf } = require('../objects')

const MAX_CHARS = 256 // of host and path

/**
 * Method, host and path; never a query string, never credentials.
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
  // The path of a request to a proxy is a whole URL.
  const address = /^[a-z][\w+.-]*:\/\//i.test(path) ? path : `${place}${path}`
  const text = cutCredentials(address.replace(/[?#].*$/s, ''))
  const short = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}\u2026` : text
  return clean(`${shortMethod(method)} ${short}`)
}

module.exports = { requestLabel }
