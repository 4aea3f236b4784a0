'use strict'

const vm = require('node:vm')
const { obey } = require('../child')
const { kinds } = require('../error-kinds')

/** @typedef {(number: number) => number} Fail throws, catches and reads one error */

/** @type {Array<(use: (fail: Fail) => void) => void>} */
const chains = Object.entries(kinds).map(([kind, source]) =>
  vm.runInThisContext(source, { filename: `${kind}.js` }))

/** @param {number} units */
async function run (units) {
  const each = Math.ceil(units / chains.length)
  await Promise.all(chains.map((chain) => new Promise((resolve) => chain((fail) => {
    for (let i = 0; i < each; i++) fail(i)
    resolve(undefined)
  }))))
}

obey({ run })
