'use strict'

// Counts the async resources that each layer creates per connection and per request.

const { fork } = require('node:child_process')
const { once } = require('node:events')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')
const { load, end, register, cleanEnvironment } = require('../common/measure')
const { LAYERS, openServer } = require('./servers')

const VISIBLE = 0.05 // resources; fewer are printed as 0

/** The child: counts its own resources and replies to every message with the sums. @param {string} layer */
async function countOwn (layer, style = 'hoisted') {
  const trace = require('../../..')
  const counts = {}
  trace.hook({ init ({ type }) { counts[type] = (counts[type] ?? 0) + 1 } })
  const { port } = await openServer(layer, style)
  process.on('message', () => process.send({ counts }))
  process.send({ port })
}

/** @param {string} layer @param {{ connections: number, requests: number }} amounts */
async function countLayer (layer, { connections, requests }) {
  const child = fork(path.join(__dirname, 'index.js'), ['count', layer],
    { execArgv: ['-r', register], env: cleanEnvironment(), stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const query = async () => {
    await delay(100) // time for connections to close
    child.send('count')
    return (await once(child, 'message'))[0].counts
  }
  try {
    const [{ port }] = await once(child, 'message')
    const sums = [await query(), await query()]
    for (const number of [connections, requests + connections]) {
      await load({ port, connections, requests: number })
      sums.push(await query())
    }
    return perUnit(sums, connections, requests)
  } finally {
    child.kill()
    await end()
  }
}

/**
 * Compares two loads that differ only in requests. Resources of the query itself, in an idle process, are
 * subtracted.
 */
function perUnit (sums, connections, requests) {
  return Object.keys(sums.at(-1)).map((type) => {
    const [first, second, third, last] = sums.map((sum) => sum[type] ?? 0)
    const [question, few, many] = [second - first, third - second, last - third]
    const request = (many - few) / requests
    return { type, connection: (few - question) / connections - request, request }
  }).filter(({ connection, request }) => connection > VISIBLE || request > VISIBLE)
}

/** Counts for all layers by name. @param {{ connections: number, requests: number }} amounts */
async function countAll (amounts) {
  const counts = {}
  for (const layer of LAYERS) counts[layer] = await countLayer(layer, amounts)
  return counts
}

/** @param {number} value */
const format = (value) => Math.abs(value) < VISIBLE ? '0' : value.toFixed(1).replace(/\.0$/, '')

module.exports = { countOwn, countAll, format }
