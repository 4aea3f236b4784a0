'use strict'

// A mark-sweep moves and frees code, which invalidates everything cached by code address. This measures the
// cost until all functions of a large program have run once more. The collection itself does not count.

const fs = require('node:fs')
const path = require('node:path')
const { cpu, obey } = require('../child')

const FUNCTIONS = 3_000

const file = path.join(process.cwd(), 'functions.js')
fs.writeFileSync(file, Array.from({ length: FUNCTIONS }, (_, number) =>
  `exports.fn${number} = async function fn${number} () { await null; return ${number} }\n`).join(''))
/** @type {Array<() => Promise<number>>} */
const functions = Object.values(require(file))

async function runAll () {
  for (const fn of functions) await fn()
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
