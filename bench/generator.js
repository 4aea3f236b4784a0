'use strict'

// Starts load.js, a process that loads one server.

const path = require('node:path')
const { startChild } = require('./child-channel')

/**
 * @typedef {object} Figures
 * @property {number} units answered requests
 * @property {number} cpu µs of CPU time of the generator
 *
 * @typedef {object} Target
 * @property {number} port
 * @property {number} connections concurrent connections
 * @property {boolean} [fresh] open a new connection per unit; by default connections are kept
 */

const SPARE_MS = 30_000

/**
 * Starts a generator and opens its connections.
 * @param {string[]} pin prefix of its command
 * @param {Target} target
 */
async function createGenerator (pin, target) {
  const [command, ...args] = [...pin, process.execPath, path.join(__dirname, 'load.js')]
  const channel = startChild(command, args, { env: process.env, cwd: __dirname })
  try {
    await channel.request(undefined, SPARE_MS)
    await channel.request({ command: 'open', ...target }, SPARE_MS)
  } catch (error) {
    await channel.end()
    throw error
  }
  return {
    /** Loads the server for a time. @param {number} ms @returns {Promise<Figures>} */
    load: (ms) => channel.request({ command: 'load', ms, connections: target.connections }, ms + SPARE_MS),
    /** Closes the connections. @returns {Promise<unknown>} */
    close: () => channel.request({ command: 'close' }, SPARE_MS),
    /** Ends the process. @returns {Promise<void>} */
    end: channel.end
  }
}

/** @typedef {Awaited<ReturnType<typeof createGenerator>>} Generator */

module.exports = { createGenerator }
