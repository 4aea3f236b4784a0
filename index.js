'use strict'

module.exports = require('./lib/shared').trace
