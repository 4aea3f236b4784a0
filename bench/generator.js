'use strict'

// Who loads a server: wrk where it is installed, else load.js, which also makes the new connections that wrk has
// no measure for. Both give units done and latencies.

const { execFile } = require('node:child_process')
const path = require('node:path')
const { start, ChildFailure } = require('./line')

/**
 * @typedef {object} Figures
 * @property {number} units
 * @property {number} p50 ms
 * @property {number} p99 ms
 *
 * @typedef {object} Generator
 * @property {(target: { port: number, connections: number, fresh?: boolean }) => Promise<unknown>} open
 * @property {(units: number, limit: number) => Promise<Figures>} load at most so many units, in at most so many ms
 * @property {() => Promise<unknown>} close
 * @property {() => Promise<void>} end
 */

const SPARE_MS = 15_000

/** @param {string[]} pin @returns {Promise<Generator>} */
async function own (pin) {
  const [command, ...args] = [...pin, process.execPath, path.join(__dirname, 'load.js')]
  const line = start(command, args, { env: process.env, cwd: __dirname })
  await line.ask(undefined, SPARE_MS)
  let count = 0
  return {
    open (target) {
      count = target.connections
      return line.ask({ ask: 'open', ...target }, SPARE_MS)
    },
    load: (units, limit) => line.ask({ ask: 'load', units, limit, connections: count }, limit + SPARE_MS),
    close: () => line.ask({ ask: 'close' }, SPARE_MS),
    end: line.end
  }
}

const MS = { us: 1e-3, ms: 1, s: 1e3, m: 6e4 }

/** @param {string} text what wrk --latency prints @returns {Figures} */
function read (text) {
  const at = (/** @type {string} */ share) => {
    const [, value, unit] = new RegExp(`^ +${share}% +([\\d.]+)(us|ms|s|m)$`, 'm').exec(text) ?? []
    return Number(value) * MS[/** @type {keyof typeof MS} */ (unit)]
  }
  const units = Number(/^ +(\d+) requests in /m.exec(text)?.[1])
  const bad = /^ +(Non-2xx.*|Socket errors.*)$/m.exec(text)
  if (bad !== null) throw new ChildFailure(`wrk: ${bad[1]}`)
  if (!(units > 0)) throw new ChildFailure('wrk: no request was answered')
  return { units, p50: at('50'), p99: at('99') }
}

/** wrk knows time only, in whole seconds: how many units fit is guessed from the last load. @param {string[]} pin @returns {Generator} */
function wrk (pin) {
  let port = 0
  let connections = 0
  let rate = 2_000 // units a second, before anything is known
  return {
    async open (target) { ({ port, connections } = target) },
    load (units, limit) {
      const seconds = Math.max(1, Math.round(Math.min(units / rate, limit / 1000)))
      const [command, ...args] = [...pin, 'wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '--latency', `http://127.0.0.1:${port}/`]
      return new Promise((resolve, reject) => execFile(command, args, { timeout: seconds * 1000 + SPARE_MS }, (error, stdout) => {
        try {
          if (error !== null) throw new ChildFailure(`wrk: ${error.message.split('\n')[0]}`)
          const figures = read(stdout)
          rate = figures.units / seconds
          resolve(figures)
        } catch (mistake) {
          reject(mistake)
        }
      }))
    },
    async close () {},
    async end () {}
  }
}

/**
 * @param {string[]} pin
 * @param {boolean} withWrk
 * @returns {Promise<Generator>}
 */
async function createGenerator (pin, withWrk) {
  const fallback = await own(pin)
  if (!withWrk) return fallback
  /** @type {Generator} */
  let present = fallback
  return {
    open (target) {
      present = target.fresh ? fallback : wrk(pin)
      return present.open(target)
    },
    load: (units, limit) => present.load(units, limit),
    close: () => present.close(),
    end: fallback.end
  }
}

module.exports = { createGenerator, read }
