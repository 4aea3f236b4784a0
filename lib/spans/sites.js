'use strict'

// The places of this thread's chains.

const registry = require('../handles/registry')
const { createWaitSites } = require('./wait-sites')

module.exports = createWaitSites({ stackOf: (context) => context.stack, registry })
