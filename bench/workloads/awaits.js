'use strict'

// Measures a bare await; V8 and Node do most of the work.

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

/** Leaves an event loop iteration between chunks, as a program would. @param {number} units */
async function run (units) {
  await sum(units)
  await new Promise((resolve) => setImmediate(resolve))
}

obey({ run })
