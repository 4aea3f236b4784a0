'use strict'

// Requests of this thread that wait for a free socket: an http.Agent has as many as maxSockets lets it have.
// Agents are found by the sockets in use. Nothing here runs code of the program.

const { isProxy } = require('node:util').types
const { isObject, own } = require('../objects')
const { connections } = require('./requests-in-flight')

const CHUNK = 256 // connections that are looked at, at once

/**
 * @typedef {object} AgentQueue
 * @property {string} peer `127.0.0.1:8080`
 * @property {number} waiting requests
 * @property {number} sockets in use
 * @property {number} max maxSockets, or maxTotalSockets
 */

/** @returns {Generator<void, AgentQueue[], void>} the longest first */
function * agentQueues () {
  /** @type {Set<object>} */
  const agents = new Set()
  let looked = 0
  for (const { socket } of connections()) {
    if (++looked % CHUNK === 0) yield
    const message = own(socket, '_httpMessage')
    const agent = isObject(message) ? own(message, 'agent') : undefined
    if (isObject(agent) && !isProxy(agent)) agents.add(agent)
  }
  return [...agents].flatMap(queuesOf).sort((a, b) => b.waiting - a.waiting)
}

/** @param {object} agent @returns {AgentQueue[]} */
function queuesOf (agent) {
  const [requests, sockets] = [own(agent, 'requests'), own(agent, 'sockets')]
  if (!isObject(requests) || isProxy(requests)) return []
  const max = Math.min(limit(agent, 'maxSockets'), limit(agent, 'maxTotalSockets'))
  return Object.keys(requests).map((name) => ({
    peer: name.split(':', 2).join(':'),
    waiting: lengthOf(requests, name),
    sockets: lengthOf(sockets, name),
    max
  })).filter(({ waiting, sockets: inUse }) => waiting > 0 && inUse > 0)
}

/** @param {object} agent @param {string} name @returns {number} */
function limit (agent, name) {
  const value = own(agent, name)
  return typeof value === 'number' ? value : Infinity
}

/** @param {unknown} lists @param {string} name */
function lengthOf (lists, name) {
  const list = isObject(lists) ? own(lists, name) : undefined
  return Array.isArray(list) ? list.length : 0
}

module.exports = { agentQueues }
