'use strict'

// What is done. `warm` and `units` are chosen such that the compiler has settled and a measured part is about a
// second of CPU of a bare Node; slow subjects stop at a time limit (run.js), their unit's price is still right.

/**
 * @typedef {object} Workload
 * @property {string} says
 * @property {string} unit
 * @property {number} warm units before anything is measured
 * @property {number} units measured
 * @property {{ connections: number, fresh?: boolean }} [load] for servers: how many connections at once, a new one per unit or kept
 * @property {string[]} peers packages that it needs
 */

/** @type {Record<string, Workload>} */
const workloads = {
  hello: {
    says: 'HTTP server, constant answer, keep-alive',
    unit: 'request',
    warm: 30_000,
    units: 20_000,
    load: { connections: 32 },
    peers: []
  },
  real: {
    says: 'HTTP server, promise-heavy: a 1 ms timer, fs.promises.readFile, setImmediate, Promise.all of three async functions, keep-alive',
    unit: 'request',
    warm: 6_000,
    units: 8_000,
    load: { connections: 32 },
    peers: []
  },
  fastify: {
    says: 'Fastify, two hooks and an async handler, keep-alive',
    unit: 'request',
    warm: 12_000,
    units: 14_000,
    load: { connections: 32 },
    peers: ['fastify']
  },
  connections: {
    says: 'TCP server, one new connection per unit',
    unit: 'connection',
    warm: 5_000,
    units: 8_000,
    load: { connections: 16, fresh: true },
    peers: []
  },
  timers: {
    says: '100 chains of setTimeout(1) that set themselves again',
    unit: 'timer',
    warm: 100_000,
    units: 300_000,
    peers: []
  },
  awaits: {
    says: 'an await chain of ten async functions',
    unit: 'chain',
    warm: 100_000,
    units: 300_000,
    peers: []
  },
  streams: {
    says: 'a large file piped from stream to stream, 64 KiB a piece',
    unit: 'MiB',
    warm: 512,
    units: 1_536,
    peers: []
  }
}

module.exports = { workloads }
