'use strict'

// Starts load.js, the process that loads one server.

const path = require('node:path')
const { start } = require('./line')

/**
 * @typedef {object} Figures
 * @property {number} units answered
 * @property {number} cpu µs of CPU time of the generator
 *
 * @typedef {object} Target
 * @property {number} port
 * @property {number} connections at once
 * @property {boolean} [fresh] a new connection for each unit; kept ones without it
 */

const SPARE_MS = 30_000

/**
 * Starts a generator and opens its connections.
 * @param {string[]} pin what comes before its command
 * @param {Target} target
 */
async function createGenerator (pin, target) {
  const [command, ...args] = [...pin, process.execPath, path.join(__dirname, 'load.js')]
  const line = start(command, args, { env: process.env, cwd: __dirname })
  try {
    await line.ask(undefined, SPARE_MS)
    await line.ask({ ask: 'open', ...target }, SPARE_MS)
  } catch (error) {
    await line.end()
    throw error
  }
  return {
    /** Loads the server for a time. @param {number} ms @returns {Promise<Figures>} */
    load: (ms) => line.ask({ ask: 'load', ms, connections: target.connections }, ms + SPARE_MS),
    /** Closes the connections. @returns {Promise<unknown>} */
    close: () => line.ask({ ask: 'close' }, SPARE_MS),
    /** Ends the process. @returns {Promise<void>} */
    end: line.end
  }
}

/** @typedef {Awaited<ReturnType<typeof createGenerator>>} Generator */

module.exports = { createGenerator }
