'use strict'

// A worker that is terminated while it works.

const net = require('node:net')
const vm = require('node:vm')
const { workerData } = require('node:worker_threads')
const trace = require('../..')
const { endlessCode, globalsFor } = require('./workload')

const context = vm.createContext({ ...globalsFor(trace, net.createServer()), now: {} })
const { bodies, seed } = workerData
let turn = seed % bodies.length
setInterval(() => {
  const names = [bodies[turn++ % bodies.length], bodies[turn * 7 % bodies.length]]
  try {
    vm.runInContext(endlessCode(names, 0), context, { timeout: 3 })
  } catch {}
}, 1)
