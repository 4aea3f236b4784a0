'use strict'

// Serves GET /metrics on LONGSTACK_SOCKET, for collectors that read OpenMetrics over HTTP from a Unix socket.
// Supports only the part of HTTP/1 that they use: a request without a body, a response, then close.

const { slices } = require('../metrics/figures')
const { CONTENT_TYPE, formatOpenMetrics } = require('../metrics/openmetrics')
const { messageOf } = require('../warnings')

const requestLine = /^([A-Z]+) (\S+) HTTP\/1\.[01]\r?$/
const PLAIN = 'text/plain; charset=utf-8'

/**
 * Creates a reader for the lines of a connection that are not queries.
 * @param {import('node:net').Socket} socket
 * @param {typeof import('./session').runInSlices} runInSlices
 * @returns {(line: string) => void}
 */
function createHttpReader (socket, runInSlices) {
  /** @type {RegExpExecArray | null} */
  let request = null
  return (line) => {
    request ??= requestLine.exec(line)
    if (request === null || line.trim() !== '') return // headers follow the request line
    const [, method, target] = request
    request = null
    if (method !== 'GET') return respond('405 Method Not Allowed', 'Only GET is supported.\n')
    if (!/^\/metrics\/?(\?|$)/.test(target)) return respond('404 Not Found', 'Only /metrics exists.\n')
    runInSlices(slices('socket'), {
      done: (metrics) => respond('200 OK', formatOpenMetrics([metrics]), CONTENT_TYPE),
      failed: (error) => respond('500 Internal Server Error', `${messageOf(error)}\n`),
      isOver: () => socket.destroyed
    })
  }

  /** @param {string} status @param {string} body @param {string} [type] */
  function respond (status, body, type = PLAIN) {
    const length = Buffer.byteLength(body)
    const head = `HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n`
    socket.end(`${head}Connection: close\r\n\r\n${body}`)
  }
}

module.exports = { createHttpReader }
