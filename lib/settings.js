'use strict'

// Settings in force in this thread. Only tracer.js changes them.

const { defaultOptions } = require('./options')

/**
 * @typedef {object} Settings
 * @property {import('./options').Options} options
 * @property {boolean} enabled
 * @property {(type: string) => boolean} isSelected the filter
 */

/** @type {Settings} */
const settings = { options: defaultOptions(), enabled: false, isSelected: () => true }

module.exports = { settings }
