'use strict'

// Whose code the event loop of this thread ran, and when.

const { typeOfStep } = require('../core/context')
const { LoopTime } = require('./loop-time')

module.exports = { loop: new LoopTime(typeOfStep) }
