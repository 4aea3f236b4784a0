'use strict'

// A worker that is terminated while it works.

const net = require('node:net')
const vm = require('node:vm')
const { inspect } = require('node:util')
const { parentPort, workerData } = require('node:worker_threads')
const trace = require('../..')
const { endlessCode, globalsFor, isOwnReason } = require('./workload')

const TIMEOUT_MS = 3

const globals = globalsFor(trace, net.createServer())
const context = vm.createContext({ ...globals, now: {} })
const { bodies, seed } = workerData
let turn = seed % bodies.length
setInterval(() => {
  const names = [bodies[turn++ % bodies.length], bodies[turn * 7 % bodies.length]]
  globals.allow(TIMEOUT_MS)
  try {
    vm.runInContext(endlessCode(names, 0), context, { timeout: TIMEOUT_MS })
  } catch {}
}, 1)

// Code was terminated before it could catch
process.on('unhandledRejection', (reason) => {
  if (!isOwnReason(reason)) parentPort?.postMessage(`rejected: ${inspect(reason)}`)
})
