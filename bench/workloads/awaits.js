'use strict'

// Measures a bare await: most of the work is that of V8 and Node.

const { obey } = require('../child')

/** @param {number} value */
async function pass (value) {
  return value
}

/** @param {number} count */
async function sum (count) {
  let total = 0
  for (let i = 0; i < count; i++) total += await pass(i)
  return total
}

/** Leaves an event loop iteration between the chunks, as in a program. @param {number} units */
async function run (units) {
  await sum(units)
  await new Promise((resolve) => setImmediate(resolve))
}

obey({ run })
