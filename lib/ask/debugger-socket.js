'use strict'

// A connection to the inspector of a process, on the loopback interface.

const http = require('node:http')

const REQUEST_MS = 2_000 // for an answer about the inspector
const MAX_BYTES = 1 << 29 // of an answer

/** @typedef {import('./ports').Address} Address */

/**
 * Returns the URL of the debugger that listens at an address.
 * @param {Address} address
 * @returns {Promise<string | undefined>} undefined: none does
 */
function debuggerUrl ({ host, port }) {
  return new Promise((resolve) => {
    const agent = /** @type {false} */ (false) // a connection of its own
    const options = { host, port, path: '/json/list', timeout: REQUEST_MS, agent }
    const request = http.get(options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part) => {
        text += part
        if (text.length > 1 << 20) response.destroy()
      })
      response.on('error', () => resolve(undefined)).on('close', () => resolve(urlIn(text, host, port)))
    })
    request.on('timeout', () => request.destroy()).on('error', () => resolve(undefined))
  })
}

/** @param {string} text JSON @param {string} host @param {number} port @returns {string | undefined} */
function urlIn (text, host, port) {
  try {
    const { id } = JSON.parse(text).find((/** @type {any} */ { type }) => type === 'node')
    return /^[\w-]+$/.test(id) ? `ws://${host.includes(':') ? `[${host}]` : host}:${port}/${id}` : undefined
  } catch {
    return undefined
  }
}

/** @param {string} url @returns {Promise<import('ws').WebSocket | undefined>} undefined: refused */
function openSocket (url) {
  const { WebSocket } = require('ws')
  return new Promise((resolve) => {
    const socket = new WebSocket(url, {
      perMessageDeflate: false,
      maxPayload: MAX_BYTES,
      handshakeTimeout: REQUEST_MS
    })
    socket.on('open', () => resolve(socket)).on('error', () => resolve(undefined))
  })
}

module.exports = { debuggerUrl, openSocket }
