'use strict'

// A client of a server in another process; BENCH_PORT has its port.

const { obey } = require('../child')

const AT_ONCE = 16
const url = `http://127.0.0.1:${process.env.BENCH_PORT}/`

/** @param {number} requests */
async function flow (requests) {
  for (let i = 0; i < requests; i++) await (await fetch(url)).text()
}

/** @param {number} units */
async function run (units) {
  await Promise.all(Array.from({ length: AT_ONCE }, () => flow(Math.ceil(units / AT_ONCE))))
}

obey({ run })
