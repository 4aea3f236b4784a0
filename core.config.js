'use strict'

// The configuration of `npm test`: the tests that matter most. ava.config.js has all of them.

const { coreFiles } = require('./test/helpers/scope')

module.exports = { ...require('./ava.config'), files: coreFiles() }
