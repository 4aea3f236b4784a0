'use strict'

const { obey } = require('../child')

const DEPTH = 10

/** @param {number} left @returns {Promise<number>} */
async function descend (left) {
  if (left === 0) {
    await null
    return 0
  }
  return 1 + await descend(left - 1)
}

/** Turns of the loop lie between, as in a program: nobody's idle moment is starved. @param {number} units */
async function run (units) {
  for (let done = 0; done < units; done++) {
    await descend(DEPTH)
    if (done % 1000 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

obey({ run })
