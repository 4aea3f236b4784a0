'use strict'

// Nothing in a workload blocks for half a second: what is paid for is the watching.

/** @type {string[][]} */
const seen = []
require('blocked-at')((/** @type {number} */ time, /** @type {string[]} */ stack) => { seen.push(stack) }, { threshold: 500 })

module.exports = { seen }
