'use strict'

// A request in words. Own data properties only: what the program has put in their way is not run.

const { shortMethod } = require('../core/request-names')
const { clean } = require('../text')
const { hidden, isObject, own } = require('../objects')

const MAX_CHARS = 256 // of host and path

/**
 * Method, host and path; never a query string, never credentials.
 * @param {object} request a ClientRequest, IncomingMessage or undici request
 * @returns {string}
 */
function requestLabel (request) {
  const method = word(own(request, 'method')) ?? 'GET'
  const origin = word(own(request, 'origin'))
  const host = hostHeader(request) ?? word(own(request, 'host'))
  const place = origin ?? (host === undefined ? '' : `${word(own(request, 'protocol')) ?? 'http:'}//${host}`)
  const path = word(own(request, 'path') ?? hidden(request, 'kPath')) ?? word(own(request, 'url')) ?? ''
  // The path of a request to a proxy is a whole URL.
  const address = /^[a-z][\w+.-]*:\/\//i.test(path) ? path : `${place}${path}`
  const text = address.replace(/[?#].*$/s, '').replace(/^([a-z][\w+.-]*:\/\/)[^/]*@/i, '$1')
  const short = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}\u2026` : text
  return clean(`${shortMethod(method)} ${short}`)
}

/** The Host header of a request that was made here has the port. @param {object} request */
function hostHeader (request) {
  const headers = hidden(request, 'kOutHeaders')
  const host = isObject(headers) ? own(headers, 'host') : undefined
  return Array.isArray(host) ? word(own(host, '1')) : undefined
}

/** @param {unknown} value */
function word (value) {
  return typeof value === 'string' && value !== '' ? value : undefined
}

module.exports = { requestLabel }
