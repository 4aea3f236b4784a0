'use strict'

// No callback of a workload blocks for 500 ms, so this measures the cost of observation.

/** @type {string[][]} */
const stacks = []
const onBlocked = (/** @type {number} */ time, /** @type {string[]} */ stack) => { stacks.push(stack) }
require('blocked-at')(onBlocked, { threshold: 500 })

module.exports = { stacks }
