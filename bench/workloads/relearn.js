'use strict'

// A mark-sweep moves and frees code, so that everything that knew a stack by its addresses begins anew: what
// it costs until all places of a large program have run once again. The collection itself does not count.

const fs = require('node:fs')
const path = require('node:path')
const { cpu, obey } = require('../child')

const PLACES = 3_000

const file = path.join(process.cwd(), 'places.js')
fs.writeFileSync(file, Array.from({ length: PLACES }, (_, number) =>
  `exports.place${number} = async function place${number} () { await null; return ${number} }\n`).join(''))
/** @type {Array<() => Promise<number>>} */
const places = Object.values(require(file))

async function runAll () {
  for (const place of places) await place()
}

/** @param {number} units @returns {Promise<number>} µs of CPU time without the collections */
async function run (units) {
  let total = 0
  for (let i = 0; i < units; i++) {
    /** @type {() => void} */ (global.gc)()
    await new Promise((resolve) => setImmediate(resolve))
    const began = cpu()
    await runAll()
    total += cpu() - began
  }
  return total
}

obey({ run })
