'use strict'

// The hops of this thread's contexts. Loaded with the first question or error.

const { root } = require('../core/context')
const { carryChain } = require('../passing/threads')
const { describe, hops } = require('./chain')
const { droppedHops, foldLoops } = require('./loop-folding')

carryChain(root)

module.exports = { describe, droppedHops, foldLoops, hops }
