'use strict'

// Packages of other people, with their tests.

const path = require('node:path')
const { installPackages } = require('./install-packages')

/**
 * @returns {{ modules: string, offline?: undefined } | { modules?: undefined, offline: string }} the
 *   node_modules folder, or the reason why there is none; throws if it is required (CI)
 */
function install () {
  const { directory, offline } = installPackages('suites')
  return directory === undefined ? { offline } : { modules: path.join(directory, 'node_modules') }
}

module.exports = { install }
