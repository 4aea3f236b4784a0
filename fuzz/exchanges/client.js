'use strict'

// Requests by http and https, with the notes of what became of them.

const http = require('node:http')
const https = require('node:https')
const net = require('node:net')

/**
 * @typedef {import('./world').World} World
 * @typedef {import('./world').Task} Task
 */

/**
 * Makes a request.
 * @param {World} world
 * @param {Task} task
 * @param {http.RequestOptions & { how?: string, secure?: boolean }} options how: what the server is asked for
 * @param {(request: http.ClientRequest) => void} [act] what is done with it; default it is sent
 * @param {(response: http.IncomingMessage) => void} [read] default it is read to its end
 * @returns {Promise<void>} resolved when it is over, or nobody may ever say so
 */
function ask (world, task, { how = '', secure = false, ...options }, act, read) {
  const from = secure ? https : http
  /** @type {import('./judge').Side} */
  const side = { outcome: 'cut' }
  task.truth.made.push(side)
  return new Promise((resolve) => {
    const request = from.request({
      host: '127.0.0.1',
      port: secure ? world.ports.https : world.ports.http,
      path: how === '' ? task.path : `${task.path}/${how}`,
      agent: secure ? world.secureAgent : world.agent,
      rejectUnauthorized: false,
      ...options
    }, (response) => {
      response.on('error', () => {})
      response.on('close', () => {
        if (response.complete) side.outcome = 'whole'
        resolve()
      })
      if (read === undefined) response.resume()
      else read(response)
    })
    request.on('error', () => resolve())
    request.on('close', () => resolve())
    request.on('upgrade', (response, socket) => {
      side.outcome = 'upgraded'
      handedOver(world, socket, resolve)
    })
    request.on('connect', (response, socket) => {
      side.outcome = 'upgraded'
      handedOver(world, socket, resolve)
    })
    if (act === undefined) request.end()
    else act(request)
    if (!task.truth.isGood) setTimeout(resolve, 20_000).unref() // nothing may ever be emitted
  })
}

/** Speaks on a connection for a while. @param {World} world @param {any} socket @param {() => void} done */
function handedOver (world, socket, done) {
  socket.on('error', () => {})
  socket.on('close', done)
  socket.resume()
  socket.write('hello')
  world.sometime(() => {
    if (world.below(2) === 0) socket.end()
    else socket.destroy()
  })
}

/**
 * Sends bytes, and does something at some instant.
 * @param {World} world
 * @param {string} text
 * @param {(socket: net.Socket) => void} act
 * @returns {Promise<void>} resolved when the connection is closed
 */
function sendRaw (world, text, act) {
  return new Promise((resolve) => {
    const allowHalfOpen = world.below(2) === 0
    const socket = net.connect({ port: world.ports.http, host: '127.0.0.1', allowHalfOpen })
    socket.on('error', () => {}).on('close', () => resolve()).resume()
    socket.on('connect', () => {
      socket.write(text)
      world.sometime(() => act(socket))
    })
    setTimeout(() => socket.destroy(), 300).unref()
  })
}

module.exports = { ask, sendRaw }
