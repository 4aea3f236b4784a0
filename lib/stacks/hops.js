'use strict'

// The hops of this thread's contexts. Loaded with the first question or error.

const { queriedAt } = require('../context/clock')
const { root } = require('../context/context')
const { carryChain } = require('../hooks/threads')
const { settings } = require('../settings')
const { createChain } = require('./chain')
const { ImportedChains } = require('./imported-chains')
const capture = require('./capture')
const { mapFrame } = require('./source-maps')

carryChain(root)

/** hops that chains were cut by */
let dropped = 0
const imported = new ImportedChains(capture)

const { describe, foldLoops, hops } = createChain({
  stackOf: (context) => context.stack,
  options: () => settings.options,
  map: mapFrame,
  queriedAt,
  dropped: (count) => { dropped += count },
  imported
})

module.exports = { describe, droppedHops: () => dropped, foldLoops, hops, imported }
